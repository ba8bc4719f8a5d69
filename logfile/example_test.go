package logfile_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/logfile"
)

// Events are on disk before Emit returns. A log that another process still writes is
// waited for.
func Example() {
	dir, err := os.MkdirTemp("", "logfile-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	o := logfile.Options{Sync: logfile.SyncEvery, MaxBytes: 64 << 20, Compress: true, Keep: 30}
	l, err := logfile.Open(filepath.Join(dir, "runs.jsonl"), o)
	for errors.Is(err, logfile.ErrLocked) {
		time.Sleep(100 * time.Millisecond)
		l, err = logfile.Open(filepath.Join(dir, "runs.jsonl"), o)
	}
	if err != nil {
		log.Fatal(err)
	}
	if torn := l.Torn(); torn != nil {
		log.Print(torn) // the last process was killed while it wrote
	}

	ctx := context.Background()
	em, err := agentevents.NewEmitter(agentevents.EmitterOptions{Sinks: []agentevents.Sink{l}})
	if err != nil {
		log.Fatal(err)
	}
	run, err := em.Run("run-1")
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range []agentevents.Payload{&agentevents.RunStarted{Name: "survey"}, &agentevents.RunCompleted{}} {
		if err := run.Emit(ctx, p); err != nil {
			log.Fatal(err) // it may not be on disk
		}
	}
	if err := em.Close(ctx); err != nil { // closes the log, too
		log.Fatal(err)
	}
	fmt.Printf("%+v\n", l.Stats())
	// Output: {Lines:2 Held:0 Dirty:0 Lost:0}
}
