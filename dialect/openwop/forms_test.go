package openwop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
)

const goodSubject = `{"issuer":"https://id.example","subjectId":"u1","tenant":"acme","lane":"oidc","kind":"user"}`

// strictTo writes events under a profile and decodes the lines by its rules.
func strictTo(t *testing.T, p Profile, events []agentevents.Event) []agentevents.Event {
	t.Helper()
	text, _ := encodeAll(t, p, events)
	return decodeAll(t, Options{Profile: p, Strict: true, Folded: true}, text)
}

// An extra member is written only in the form that the profile declares for it.
func TestKeptMembersHaveTheFormOfTheProfile(t *testing.T) {
	const (
		kept     = "dropped /openwop/~1payload~1"
		id       = `"interruptId":"acme/int-000000000001"`
		resolved = `"nodeId":"n1",` + id + `,"kind":"clarification"`
		message  = `"channel":"messages","value":{"messageId":"m","from":"abc","content":1,"ts":1},"reducer":"append","writtenAt":"2026-05-19T10:00:01.000Z"`
	)
	for _, c := range []struct {
		from, to           Profile
		typ, payload, gone string
	}{
		{SchemaV1, SchemaV2, "run.started", `{"workflowId":"wf","engineVersion":"1.2.3"}`, "engineVersion"},
		{SchemaV1, SchemaV2, "run.started", `{"workflowId":"wf","owner":{"tenant":"acme","principal":"ann"}}`, "owner"},
		{SchemaV2, SchemaV1, "run.started", `{"workflowId":"wf","owner":{"tenant":"acme","subject":` + goodSubject + `}}`, "owner"},
		{SchemaV1, SchemaV2, "run.cancelled", `{"parentRunId":"run-parent"}`, "parentRunId"},
		{SchemaV1, SchemaV2, "channel.written", `{` + message + `,"sourceRunId":"run-src"}`, "sourceRunId"},
		{SchemaV1, SchemaV2, "cap.breached", `{"kind":"schema","limit":1,"observed":2,"nodeId":"n 1"}`, "nodeId"},
		{RFC0002, SchemaV1, "agent.decided", `{"agentId":"abc","decision":1,"causationHostId":""}`, "causationHostId"},
		{RFC0002, SchemaV1, "approval.granted", `{"gateId":"g","principal":"p","quorumProgress":{"granted":-1}}`, "quorumProgress"},
		{RFC0002, SchemaV1, "approval.requested", `{"nodeId":"n1","artifactId":"a","artifactType":"t","actions":["ask"],"requiredApprovals":0}`, "requiredApprovals"},
		{RFC0002, SchemaV2, "interrupt.resolved", `{` + resolved + `,"action":"edit"}`, "action"},
		{RFC0002, SchemaV2, "interrupt.resolved", `{` + resolved + `,"decision":5}`, "decision"},
		{RFC0002, SchemaV2, "interrupt.resolved", `{` + resolved + `,"refineFeedback":{"text":"more"}}`, "refineFeedback"},
		{RFC0002, SchemaV2, "interrupt.resolved", `{` + resolved + `,"resolvedBy":{}}`, "resolvedBy"},
		{SchemaV1, SchemaV2, "approval.requested", `{"nodeId":"n1",` + id + `,"artifactId":"a","artifactType":"t","title":"T","actions":["ask"],"description":5}`, "description"},
	} {
		lines := documents(c.typ, c.payload)
		out, losses := converted(t, c.from, c.to, lines)
		require.NotContains(t, out, `"`+c.gone+`"`)
		require.Contains(t, losses, kept+c.gone, c.payload)
		strictTo(t, c.to, decodeAll(t, Options{Profile: c.from}, lines))

		back, _ := converted(t, c.from, c.from, lines)
		require.Contains(t, back, `"`+c.gone+`"`, "the profile that it was read under")
	}

	// Members in this form come along, and so do those that broke the form under the
	// same profile.
	for _, c := range []struct {
		from, to     Profile
		typ, payload string
	}{
		{SchemaV1, SchemaV2, "run.failed", `{"error":{"code":"c","message":"m"},"failedNodeId":"step-one"}`},
		{SchemaV2, SchemaV2, "run.started", `{"workflowId":"wf","engineVersion":"1.2.3"}`},
		{SchemaV1, SchemaV1, "node.failed", `{"nodeId":"n1","error":{"code":"c","message":"m"},"attempts":0}`},
		{RFC0002, SchemaV2, "interrupt.resolved", `{` + resolved + `,"resolvedBy":` + goodSubject + `,"refineFeedback":{"scope":"items","itemIds":["a"]}}`},
	} {
		out, losses := converted(t, c.from, c.to, documents(c.typ, c.payload))
		require.Equal(t, c.typ+" "+c.payload, out)
		require.NotContains(t, strings.Join(losses, " "), "/payload")
	}

	// The nodeId of an interrupt may be any value; the nodeId of a request is a text.
	out, losses := converted(t, SchemaV2, SchemaV1, documents("interrupt.requested",
		`{"kind":"approval","key":"k","nodeId":true,"data":{"artifactId":"a","artifactType":"t","title":"T","actions":["ask"]}}`))
	require.Contains(t, out, `"nodeId":"n1"`)
	require.Contains(t, losses, kept+"nodeId")
}

// Subjects and feedback have the forms of version 2.
func TestSubjectsAndFeedback(t *testing.T) {
	subject := func(members string) string {
		return strings.Replace(goodSubject, `"lane":"oidc","kind":"user"`, members, 1)
	}
	owner := func(subject string) string {
		return `{"type":"run.started","payload":{"workflowId":"w","owner":{"tenant":"t","subject":` + subject + `}}}`
	}
	deep := goodSubject
	for range 4 {
		deep = goodSubject[:len(goodSubject)-1] + `,"actor":` + deep + `}`
	}
	feedback := func(text string) string {
		return `{"type":"interrupt.resolved","payload":{"nodeId":"n","interruptId":"acme/int-000000000001","kind":"clarification","refineFeedback":` + text + `}}`
	}
	for line, rule := range map[string]agentevents.Rule{
		owner(goodSubject): "",
		owner(deep):        "",
		owner(goodSubject[:len(goodSubject)-1] + `,"actor":` + deep + `}`):                RuleClosed,
		owner(subject(`"lane":"saml","kind":"user","keyClass":"opaque-idp"`)):             "",
		owner(subject(`"lane":"saml","kind":"user"`)):                                     RuleRequired,
		owner(subject(`"lane":"oidc","kind":"user","keyClass":"opaque-idp"`)):             RuleForm,
		owner(subject(`"lane":"anonymous","kind":"anonymous"`)):                           "",
		owner(subject(`"lane":"anonymous","kind":"user"`)):                                RuleEnum,
		owner(subject(`"lane":"oidc"`)):                                                   RuleRequired,
		owner(subject(`"lane":"pigeon","kind":"user"`)):                                   RuleEnum,
		owner(subject(`"lane":"oidc","kind":"user","x":1`)):                               RuleClosed,
		owner(strings.Replace(goodSubject, `"u1"`, `"u/1"`, 1)):                           RuleID,
		owner(strings.Replace(goodSubject, `"acme"`, `"a b"`, 1)):                         RuleID,
		feedback(`{"scope":"whole","sectionPath":"a","itemIds":[],"tags":[],"text":"t"}`): "",
		feedback(`{}`):                              RuleRequired,
		feedback(`{"scope":"all"}`):                 RuleEnum,
		feedback(`{"scope":"whole","tags":[1]}`):    RuleForm,
		feedback(`{"scope":"whole","urgent":true}`): RuleClosed,
	} {
		got, _ := strictly(t, SchemaV2, line)
		require.Equal(t, rule, got, line)
	}
}

// The payload decides between the forms of a type.
func TestLook(t *testing.T) {
	const m = `{"messageId":"m"}`
	for _, c := range []struct{ typ, payload, want string }{
		{exchanged, `{"turn":` + m + `}`, ofTurn}, {exchanged, `{"turn":{"messageId":1}}`, ""}, {exchanged, `{"turn":{"to":"a"}}`, ""}, {exchanged, `{"turn":1}`, ""},
		{"channel.written", `{"channel":"messages","value":` + m + `}`, "channel.written"}, {"channel.written", `{"channel":"x","value":` + m + `}`, ""},
		{"channel.written", `{"channel":"messages","value":{}}`, ""},
		{"clarification.requested", `{"kind":"clarification","data":{}}`, "clarification"}, {"clarification.requested", `{"kind":"clarification"}`, "clarification.requested"},
		{"clarification.requested", `{"kind":"approval","data":{}}`, "clarification.requested"},
		{"approval.requested", `{"kind":"approval","data":{}}`, "approval"}, {"approval.requested", `{"data":{}}`, "approval.requested"},
		{"clarification.resolved", `{"resumeValue":1}`, "answer"}, {"clarification.resolved", `{"answers":1}`, "clarification.resolved"},
		{"interrupt.requested", `{"kind":"clarification"}`, "clarification"}, {"interrupt.requested", `{"kind":"approval"}`, "approval"}, {"interrupt.requested", `{"kind":"custom"}`, ""},
		{"approval.granted", `{"interruptId":"i"}`, "approval.granted"}, {"approval.granted", `{"interruptId":"i","decision":"granted","gateId":"g"}`, "approval.granted"},
		{"approval.granted", `{"decision":"granted"}`, "approval.granted"}, {"approval.granted", `{"interruptId":"i","decision":"granted"}`, "granted"},
		{"approval.rejected", `{"interruptId":"i","decision":"rejected"}`, "rejected"}, {"approval.rejected", `{"interruptId":"i","decision":"x"}`, ""},
		{"approval.granted", `{"interruptId":"i","decision":"granted","kind":"clarification"}`, "answer"},
		{"interrupt.resolved", `{"kind":"clarification"}`, "answer"}, {"interrupt.resolved", `{"kind":"approval","decision":"granted"}`, "granted"},
		{"interrupt.resolved", `{"kind":"approval","decision":"rejected"}`, "rejected"}, {"interrupt.resolved", `{"kind":"approval"}`, ""},
		{"interrupt.resolved", `{"kind":"custom","decision":"granted"}`, ""},
	} {
		require.Equal(t, c.want, look(`{"payload":`+c.payload+"}", c.typ, ""), "%s %s", c.typ, c.payload)
	}
}
