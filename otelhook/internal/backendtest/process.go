package backendtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long a back end may take for anything. Machines are busy.
const patience = 60 * time.Second

// poll calls f until it returns no error. The test fails with the last one.
func poll(t testing.TB, f func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v: %v", patience, err)
		}
	}
}

// binary returns the path of the program that tools/build has built, or skips the test.
func binary(t testing.TB, name string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	build := filepath.Join(filepath.Dir(here), "..", "..", "..", "tools", "build")
	out, err := exec.Command("bash", build, "-path", name).Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("needs bash: install it, as tools/build is a script of it")
	}
	if err != nil {
		t.Fatalf("tools/build -path %s: %v", name, err)
	}
	path := strings.TrimSpace(string(out))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs %s: run tools/build (%v)", name, err)
	}
	return path
}

// watched starts a program that ends when its file 3 does, which is when the one who has
// started it does, whatever happened to that. The program gets the shell's process id.
const watched = `{ read -r _ <&3; kill -TERM $$; } & exec 3<&-; exec "$@"`

// start runs a program with a configuration of ports that are free, until the test ends.
// ready is an error as long as the program does not answer. A program that ends before
// it is ready may have lost a port to another one, and is started again.
func start(t testing.TB, name string, ports int, config func(ports []any) string, ready func(ports []any) error) []any {
	t.Helper()
	path := binary(t, name)
	dir := t.TempDir()
	for try := 1; ; try++ {
		free := freePorts(t, ports)
		file := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(file, []byte(config(free)), 0o600); err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(dir, fmt.Sprintf("log%d.txt", try))
		ended := run(t, log, path, "--config", "file:"+file)
		died := false
		poll(t, func() error {
			select {
			case err := <-ended:
				died = true
				if try == 3 {
					text, _ := os.ReadFile(log)
					t.Fatalf("%s ended: %v\n%s", name, err, text)
				}
				return nil
			default:
				return ready(free)
			}
		})
		if !died {
			return free
		}
	}
}

// run starts a program and has it stopped at the end of the test. Its output goes to the file log.
// The channel reports its end.
func run(t testing.TB, log, path string, args ...string) <-chan error {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", append([]string{"-c", watched, "sh", path}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{r}
	err = cmd.Start()
	_, _ = out.Close(), r.Close() // the program has them
	if err != nil {
		t.Fatal(err)
	}
	ended, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		err := cmd.Wait()
		_ = w.Close() // now, as later the process id may be somebody else's
		ended <- err
	}()
	t.Cleanup(func() {
		_ = w.Close() // asks for the end
		select {
		case <-done:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-done
		}
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("%s printed:\n%s", filepath.Base(path), text[max(0, len(text)-4000):])
		}
	})
	return ended
}

// freePorts returns ports of the loopback interface that nobody listened on just now.
func freePorts(t testing.TB, n int) (ports []any) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // only then, or the next one may be the same
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

var client = &http.Client{Timeout: patience}

// get returns the body of an answer with status 200.
func get(url string) ([]byte, error) {
	resp, err := client.Get(url)
	return body(resp, err)
}

// Post sends a request of OTLP/JSON, as to the path /v1/traces of an endpoint. It returns the
// answer of status 200.
func Post(url, request string) ([]byte, error) {
	resp, err := client.Post(url, "application/json", strings.NewReader(request))
	return body(resp, err)
}

func body(resp *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", resp.Request.URL, resp.Status, text)
	}
	return text, err
}
