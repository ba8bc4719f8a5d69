package openwop

// CoreSystem is the reserved agent of a call that no agent made (OpenWOP RFC
// 0002, section A1).
const CoreSystem = "core.system"

// CapConfidenceEscalationSuppressed is the Cap of the [agentevents.CapBreached]
// that a host emits when it has opted out of escalation (RFC 0002, section F).
const CapConfidenceEscalationSuppressed = "confidence-escalation-suppressed"

// DefaultThreshold is the confidence below which a decision escalates, unless the
// run or the agent has its own threshold (section F).
const DefaultThreshold = 0.7

// ReasonLowConfidence is the reason of a node that is suspended because of a
// decision below the threshold.
const ReasonLowConfidence = "low-confidence"
