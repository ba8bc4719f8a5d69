package agentevents

import (
	"log/slog"
	"time"
)

// LogValue makes the event a group of its identity, without its content: kind, run,
// sequence, id, time, and agent, step and marks where it has them. It is for logs of the
// program.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("kind", string(e.Kind())), slog.String("run", e.RunID), slog.Uint64("sequence", e.Sequence),
		slog.String("id", e.ID), slog.String("time", e.Time.UTC().Format(time.RFC3339Nano)),
	}
	if e.AgentID != "" {
		attrs = append(attrs, slog.String("agent", e.AgentID))
	}
	if e.Step.OK {
		attrs = append(attrs, slog.Int("step", e.Step.V))
	}
	if e.Marks != 0 {
		attrs = append(attrs, slog.String("marks", e.Marks.String()))
	}
	return slog.GroupValue(attrs...)
}

// LogValue makes the error a group of its fields, for logs of the program.
func (e *RuleError) LogValue() slog.Value {
	if e == nil {
		return slog.Value{}
	}
	attrs := []slog.Attr{slog.String("rule", string(e.Rule)), slog.String("kind", string(e.Kind)), slog.String("run", e.RunID), slog.Uint64("sequence", e.Sequence)}
	for _, a := range [...]struct{ name, value string }{
		{"agent", e.AgentID}, {"event", e.EventID}, {"pointer", e.Pointer}, {"subject", e.Subject}, {"state", e.State}, {"detail", e.Detail},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.name, a.value))
		}
	}
	return slog.GroupValue(append(attrs, slog.Bool("refused", e.Refused))...)
}
