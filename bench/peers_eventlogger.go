package main

import (
	"context"

	"github.com/hashicorp/eventlogger"
	"github.com/hashicorp/eventlogger/sinks/writer"
)

// eventlogger returns hashicorp/eventlogger's Send with two pipelines: JSON to a
// buffered file, and JSON to a sink that does nothing. Its events are stamped
// beforehand, which favors the peer.
func (l load) eventlogger() (func(int) error, error) {
	f, err := newOverwriter()
	if err != nil {
		return nil, err
	}
	b, err := eventlogger.NewBroker()
	if err != nil {
		return nil, err
	}
	for id, node := range map[eventlogger.NodeID]eventlogger.Node{
		"json": &eventlogger.JSONFormatter{}, "file": &writer.Sink{Writer: &lineBuffer{w: f}}, "none": noSink{},
	} {
		if err := b.RegisterNode(id, node); err != nil {
			return nil, err
		}
	}
	for _, sink := range []eventlogger.NodeID{"file", "none"} {
		err := b.RegisterPipeline(eventlogger.Pipeline{
			PipelineID: eventlogger.PipelineID(sink), EventType: "event", NodeIDs: []eventlogger.NodeID{"json", sink},
		})
		if err != nil {
			return nil, err
		}
	}
	var events []*envelope
	for i, m := range l.mirrors {
		e := *samples[0].mirror
		e.Type, e.Payload = string(kindOf(l.payloads[i])), m
		events = append(events, &e)
	}
	return func(i int) error {
		_, err := b.Send(context.Background(), "event", events[i])
		return err
	}, nil
}

type noSink struct{}

func (noSink) Process(context.Context, *eventlogger.Event) (*eventlogger.Event, error) {
	return nil, nil
}
func (noSink) Reopen() error              { return nil }
func (noSink) Type() eventlogger.NodeType { return eventlogger.NodeTypeSink }
