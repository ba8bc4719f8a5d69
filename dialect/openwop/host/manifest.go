package host

import (
	"strconv"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop"
	"github.com/agentevents/agentevents/dialect/openwop/internal/schemas"
	"github.com/agentevents/agentevents/internal/jsonwire"
)

// A Manifest holds a host's facts of an agent: see [ParseManifest]. For an agent
// without a manifest, one with an id of [TierHost], it holds the host's decisions.
type Manifest struct {
	HarnessRole string // defined by the host
	// Tools is the toolAllowlist. Nil declares no list and allows every tool. An
	// empty list allows none.
	Tools []string
	// Threshold is confidence.defaultThreshold. Absent means [openwop.DefaultThreshold].
	Threshold agentevents.Opt[float64]
}

// ParseManifest reads the manifest of an agent as a pack has it (agent-manifest.schema.json).
// It returns the facts for a [Host], and a reference with the agent's id and model class for
// the events of its nodes. toolAllowlist, confidence.defaultThreshold, modelClass and
// harnessRole, which the schema leaves to the host, may be missing. Other members are
// not looked at.
//
// Its error is a [*agentevents.RuleError] for a member of another form and for an id that a
// manifest must not have: hosts do not accept [TierHost] (section A1).
func ParseManifest(text []byte) (agentevents.AgentRef, Manifest, error) {
	raw := string(text)
	if err := jsonwire.Valid(raw); err != nil { // this finds duplicates too
		return agentevents.AgentRef{}, Manifest{}, err
	}
	if fault := schemas.Table(schemas.RFC0002)["manifest"].Check(raw); fault != nil {
		return agentevents.AgentRef{}, Manifest{}, schemas.Breach(schemas.RFC0002, "", fault)
	}
	id := jsonwire.Text(jsonwire.Member(raw, "agentId"))
	if of, ok := ParseAgentID(id); !ok || !of.Manifest() || !openwop.ValidID(openwop.SchemaV1, openwop.AgentID, id) {
		return agentevents.AgentRef{}, Manifest{},
			&agentevents.RuleError{Rule: openwop.RuleID, Pointer: "/agentId", Detail: jsonwire.Brief(id) +
				" is not the id of an agent with a manifest; legal: " +
				"core.<name>, or <tier>.<org>.<pack>.<agent> with the tier vendor, community, private or local"}
	}
	ref := agentevents.AgentRef{AgentID: id,
		ModelClass: agentevents.ModelClass(jsonwire.Text(jsonwire.Member(raw, "modelClass")))}
	m := Manifest{HarnessRole: jsonwire.Text(jsonwire.Member(raw, "harnessRole"))}
	if list := jsonwire.Member(raw, "toolAllowlist"); list != "" {
		m.Tools = []string{}
		for raw := range jsonwire.Elements(list) {
			m.Tools = append(m.Tools, jsonwire.Text(raw))
		}
	}
	if v, err := strconv.ParseFloat(jsonwire.Member(jsonwire.Member(raw, "confidence"), "defaultThreshold"),
		64); err == nil && isConfidence(v) {
		m.Threshold = agentevents.Some(v)
	}
	return ref, m, nil
}
