package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/playback"
	"github.com/agentevents/agentevents/report"
	"github.com/agentevents/agentevents/tree"
)

func replayCommand() command {
	return command{
		name:    "replay",
		args:    "[flags] FILE...",
		purpose: "show the events of a run one after another, in their own time or faster",
		about: `
On a terminal replay draws the run anew after each event, as 'agentevents tree' draws it. It
leaves out the middle of a drawing that is higher than the terminal, except at the end. The
environment variable LINES has the height in lines; default: 24. Without a terminal, and if
TERM is dumb, replay prints a line for each event: the time since the first event of the
run, the sequence, the kind, the agent and the subject. At the end it draws the run once.

Replay only reads the log: it calls no tool and no model. An interrupt (Ctrl-C) ends it, and
is not an error. If the log has several runs, choose one with --run.`,
		examples: []string{
			"agentevents replay --speed 10 run.jsonl",
			"agentevents replay --speed 0 --from 120 run.jsonl | less",
		},
		flags: func(fs *flag.FlagSet) action {
			var l logReader
			p := player{options: playback.Options{Fold: agentevents.FoldOptions{KeepCalls: math.MaxInt, MaxViolations: -1}}}
			var d drawing
			l.flags(fs)
			fs.Float64Var(&p.timing.Speed, "speed", 1, "play `N` times as fast; default: 1; 0 does not wait")
			fs.DurationVar(&p.timing.MaxWait, "max-wait", 3*time.Second,
				"wait `DURATION` at most between two events; default: 3s; 0 has no limit")
			var from sequence
			fs.Var(&from, "from", "begin with the event of sequence `SEQ`")
			run := fs.String("run", "", "play the run `ID`")
			d.flags(fs)
			return func(in *invocation) error {
				if p.timing.Speed < 0 || math.IsNaN(p.timing.Speed) || p.timing.MaxWait < 0 {
					return usageError("--speed and --max-wait must not be below 0")
				}
				events, err := l.events(in)
				if err != nil {
					return err
				}
				var all []agentevents.Event
				ids := map[string]bool{}
				for _, ev := range events {
					if *run == "" || ev.RunID == *run {
						all = append(all, ev)
						ids[ev.RunID] = true
					}
				}
				switch {
				case len(ids) > 1:
					return usageError(fmt.Sprintf("the log has %d runs: "+
						"choose one with --run; 'agentevents ls' lists them", len(ids)))
				case len(all) == 0 && *run != "":
					return noRun(*run)
				case len(all) == 0:
					return l.result()
				}
				p.in, p.drawn = in, in.terminal()
				p.tree = d.options(in, new(report.Details))
				ctx, stop := in.interrupted()
				defer stop()
				if err := p.play(ctx, all, uint64(from)); err != nil && !errors.Is(err, context.Canceled) {
					return err
				}
				return l.result()
			}
		},
	}
}

// A player shows a run while it is played.
type player struct {
	in      *invocation
	options playback.Options
	timing  playback.Timing
	tree    tree.Options
	drawn   bool // again with every event

	at    *playback.Player
	began time.Time // the run
	next  time.Time // it is drawn, unless the run is over
	shown bool      // an event
}

func (p *player) play(ctx context.Context, events []agentevents.Event, from uint64) error {
	var err error
	if p.at, err = playback.New(slices.Values(events), p.options); err != nil {
		return err
	}
	first, _ := p.at.Peek()
	p.began = first.Time
	for i := range events {
		if events[i].Sequence < from {
			p.tree.Details.Add(&events[i])
		}
	}
	if err := p.at.Seek(from); err != nil {
		return err
	}
	if err := p.at.Play(ctx, p.timing, p.show); err != nil {
		return err
	}
	if p.drawn {
		return nil
	}
	p.tree.Ended = true
	if p.shown {
		if _, err := p.in.stdout.Write([]byte("\n")); err != nil {
			return err
		}
	}
	return tree.Write(p.in.stdout, p.at.Snapshot(), p.tree)
}

// frame is how often a terminal is drawn at most. A drawing that takes long is drawn so seldom
// that events have most of the time: the time of all drawings would be quadratic otherwise.
const (
	frame = 40 * time.Millisecond
	share = 4 // how many times as long as a drawing took, events come without one
)

// Sequences of a terminal.
const (
	home      = "\x1b[H"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

func (p *player) show(ev agentevents.Event) error {
	p.shown = true
	p.tree.Details.Add(&ev)
	at := fmt.Sprintf("%10s", "?")
	if agentevents.TimeKnown(ev.Time) {
		if !agentevents.TimeKnown(p.began) {
			p.began = ev.Time
		}
		at = fmt.Sprintf("%+9.3fs", ev.Time.Sub(p.began).Seconds())
	}
	line := fmt.Sprintf("%s  %5d  %-24s %s", at, ev.Sequence, visible(string(ev.Kind())), visible(about(&ev)))
	line = strings.TrimRight(line, " ") + "\n"
	if !p.drawn {
		if _, err := p.in.stdout.Write([]byte(line)); err != nil {
			return err
		}
		return p.in.stdout.Flush()
	}
	_, more := p.at.Peek()
	began := time.Now()
	if more && began.Before(p.next) {
		return nil
	}
	defer func() {
		ended := time.Now()
		p.next = began.Add(max(frame, (1+share)*ended.Sub(began)))
	}()
	var b bytes.Buffer
	p.tree.Ended = !more
	if err := tree.Write(&b, p.at.Snapshot(), p.tree); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%d of %d  %s", p.at.Position(), p.at.Len(), line)
	drawing := b.String()
	if more {
		drawing = p.fit(drawing)
	}
	text := home + strings.ReplaceAll(drawing, "\n", clearLine+"\n") + clearRest
	if _, err := p.in.stdout.Write([]byte(text)); err != nil {
		return err
	}
	return p.in.stdout.Flush()
}

// fit leaves out the middle of a drawing that is higher than the terminal, which would scroll. Most
// activity is at the end.
func (p *player) fit(drawing string) string {
	rows, err := strconv.Atoi(p.in.env("LINES"))
	if err != nil || rows < 4 {
		rows = 24
	}
	lines := strings.SplitAfter(drawing, "\n")
	over := len(lines) - rows
	if over <= 0 {
		return drawing
	}
	cut := fmt.Sprintf("… %d more lines …\n", over+1)
	return lines[0] + cut + strings.Join(lines[over+2:], "")
}

// about returns the agent of an event and its texts.
func about(ev *agentevents.Event) string {
	i := report.Event(ev)
	if i.Subject == string(ev.Kind()) { // the line has it
		i.Subject = ""
	}
	text := strings.Join(strings.Fields(i.Subject+" "+i.Status), " ")
	if i.Text != "" {
		text = strings.TrimPrefix(text+": "+i.Text, ": ")
	}
	return strings.TrimSpace(i.Agent + "  " + text)
}
