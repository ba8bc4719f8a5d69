package columns

import (
	"encoding/json"

	"github.com/agentevents/agentevents"
)

const dollars = "USD"

// usage sets the columns of tokens and cost.
func (r *Row) usage(e *agentevents.Effect) {
	if !e.Spends || e.Run == (agentevents.Usage{}) && e.Own == (agentevents.Usage{}) && len(e.Models) == 0 {
		return
	}
	u := &e.Run
	r.InputTokens, r.OutputTokens = agentevents.Some(u.InputTokens), agentevents.Some(u.OutputTokens)
	r.CacheReadTokens, r.CacheWriteTokens = u.CacheReadInputTokens, u.CacheCreationInputTokens
	r.ReasoningTokens, r.TotalTokens = u.ReasoningOutputTokens, u.TotalTokens
	if r.Cost = u.CostUSD; r.Cost.OK {
		r.Currency = dollars
	}
	if r.Model == "" && r.ModelCallID == "" && len(e.Models) == 1 && !e.Models[0].Gone { // else it would answer a call
		r.Model = e.Models[0].Model
	}
	if !r.simple(e) {
		r.UsageSplit = r.split(e)
	}
}

// simple reports whether the row is the whole change for its agent and its model.
func (r *Row) simple(e *agentevents.Effect) bool {
	if e.Agent != nil && e.Own != e.Run {
		return false
	}
	switch len(e.Models) {
	case 0:
		return r.Model == "" || e.Run == agentevents.Usage{}
	case 1:
		m := &e.Models[0]
		return m.Model == r.Model && m.Usage == e.Run && !m.Gone
	}
	return false
}

// A change is an entry of the column usage_split.
type change struct {
	AgentID    string   `json:"agent_id,omitempty"`
	AgentName  string   `json:"agent_name,omitempty"`
	Model      string   `json:"model,omitempty"`
	Input      int64    `json:"input"`
	Output     int64    `json:"output"`
	CacheRead  int64    `json:"cache_read"`
	CacheWrite int64    `json:"cache_write"`
	Reasoning  int64    `json:"reasoning"`
	Total      int64    `json:"total"`
	Cost       *float64 `json:"cost"`
	Gone       bool     `json:"gone"`
}

func newChange(u *agentevents.Usage) change {
	c := change{
		Input: u.InputTokens, Output: u.OutputTokens,
		CacheRead: u.CacheReadInputTokens.V, CacheWrite: u.CacheCreationInputTokens.V,
		Reasoning: u.ReasoningOutputTokens.V, Total: u.TotalTokens.V,
	}
	if u.CostUSD.OK {
		c.Cost = &u.CostUSD.V
	}
	return c
}

// split is the text of the column usage_split.
func (r *Row) split(e *agentevents.Effect) string {
	var s struct {
		Agents []change `json:"agents"`
		Models []change `json:"models"`
	}
	s.Agents, s.Models = []change{}, []change{}
	if e.Agent != nil && e.Own != (agentevents.Usage{}) {
		c := newChange(&e.Own)
		c.AgentID, c.AgentName = r.AgentID, r.AgentName
		s.Agents = append(s.Agents, c)
	}
	for i := range e.Models {
		m := &e.Models[i]
		c := newChange(&m.Usage)
		c.Model, c.Gone = m.Model, m.Gone
		s.Models = append(s.Models, c)
	}
	text, err := json.Marshal(&s)
	if err != nil {
		return "" // impossible: costs of events are finite, and so are their differences
	}
	return string(text)
}
