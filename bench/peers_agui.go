package main

import (
	"fmt"

	agui "github.com/ag-ui-protocol/ag-ui/sdks/community/go/pkg/core/events"

	ae "github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/bench/internal/measure"
)

// aguiDelta is a line of AG-UI's own protocol, which is all that its Go SDK reads. A text
// delta is the nearest comparison: its line has four members, ours has nine.
const aguiDelta = `{"type":"TEXT_MESSAGE_CONTENT","timestamp":1777971601412,"messageId":"msg_1:0","delta":"and then the next few words"}`

func aguiComparison() comparison {
	ours := &cell{Name: "Event.UnmarshalJSON", Setup: func(*cell) (func(int) error, error) {
		for _, s := range samples {
			if s.name == "D" {
				line, err := s.event.AppendJSON(nil)
				return func(n int) error {
					for range n {
						var ev ae.Event
						if err := ev.UnmarshalJSON(line); err != nil {
							return err
						}
					}
					return nil
				}, err
			}
		}
		return nil, fmt.Errorf("no sample D")
	}}
	theirs := &cell{Name: "EventFromJSON", Control: true, Setup: measure.Each(func() error {
		_, err := agui.EventFromJSON([]byte(aguiDelta))
		return err
	})}
	return versus("F6",
		"a text delta: Event.UnmarshalJSON / AG-UI SDK EventFromJSON of its own, shorter line", bar{}, ours, theirs)
}
