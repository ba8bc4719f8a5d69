package agentevents

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents/internal/jsonwire"
	"github.com/agentevents/agentevents/internal/secret"
)

// emitted emits a payload under a policy and returns the recorded event and its
// line.
func emitted(t testing.TB, policy *Policy, p Payload) (Event, string) {
	t.Helper()
	r, log := startRun(t, EmitterOptions{Redaction: policy})
	require.NoError(t, errOf(r.Agent("a").Record(t.Context(), Event{Payload: p})))
	var back Event
	require.NoError(t, back.UnmarshalJSON([]byte(log.lines[0])), "the recorded line can be read")
	return log.last(t), log.lines[0]
}

// redactedJSON returns tool arguments as a policy lets them be recorded.
func redactedJSON(t testing.TB, policy *Policy, j JSON) (JSON, Marks) {
	t.Helper()
	ev, _ := emitted(t, policy, &ToolCalled{CallID: "c", ToolID: "t", Arguments: j})
	return ev.Payload.(*ToolCalled).Arguments, ev.Marks
}

func redactedText(t testing.TB, policy *Policy, s string) (string, Marks) {
	t.Helper()
	ev, _ := emitted(t, policy, &TextCompleted{Text: s})
	return ev.Payload.(*TextCompleted).Text, ev.Marks
}

func TestDefaultPolicyMasksValuesNamedLikeCredentials(t *testing.T) {
	for _, name := range []string{
		"api_key", "apiKey", "X-API-Key", "Set-Cookie", "cookies", "client.secret", "clientSecret", "PASSWORD", "db password", "passwd", "pwd", "passphrase",
		"access_token", "refreshToken", "id-token", "token", "Authorization", "Proxy-Authorization", "aws_secret_access_key", "private_key", "credentials",
		"connectionString", "signing-key", strings.Repeat("x", 500) + "_password",
	} {
		member := string(JSONString(name))
		for _, value := range []string{`"hunter2"`, `["hunter2"]`, `{"a":"hunter2"}`} {
			got, marks := redactedJSON(t, nil, JSON(`{"a":[1,{"b":{`+member+`:`+value+`,"keep":"me"}}]}`))
			require.Equal(t, JSON(`{"a":[1,{"b":{`+member+`:"[REDACTED:key]","keep":"me"}}]}`), got)
			require.Equal(t, MarkRedacted, marks)
		}
	}
	got, _ := redactedJSON(t, nil, `{"password":12345678,"\u0070assword2_password":"x"}`)
	require.Equal(t, JSON(`{"password":"[REDACTED:key]","\u0070assword2_password":"[REDACTED:key]"}`), got)
	got, _ = redactedJSON(t, nil, `{"p\u0061ssword":"x"}`)
	require.NotContains(t, got, `"x"`, "however the name is spelled")
}

func TestDefaultPolicyKeepsCredentialLookalikes(t *testing.T) {
	for _, j := range []JSON{
		`{"max_tokens":100}`, `{"tokenCount":5}`, `{"token":5}`, `{"token":-1}`, `{"nextPageToken":"abc"}`, `{"continuation_token":"abc"}`, `{"cancelToken":"x"}`,
		`{"password":null}`, `{"password":true}`, `{"secret":false}`, `{"password":""}`, `{"apiKey":"[REDACTED:key]"}`,
		`{"passwords_seen":"no"}`, `{"tokens":"many"}`, `{"keyboard":"x"}`, `"password"`, `["token","secret"]`, `"a password is asked for"`, `{}`, `[]`, `null`, `3`,
	} {
		got, marks := redactedJSON(t, nil, j)
		require.Equal(t, j, got)
		require.Zero(t, marks, j)
	}
}

func TestDefaultPolicyMasksInEveryFieldOfRawJSON(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		n := setJSONs(reflect.ValueOf(p).Elem(), `{"deep":[{"password":"hunter2"}]}`)
		r, log := startRun(t, EmitterOptions{Mode: ModeObserve})
		require.NoError(t, r.Emit(t.Context(), p))
		require.NotContains(t, log.lines[0], "hunter2")
		require.NotContains(t, fmt.Sprintf("%#v", log.events[0].Payload), "hunter2")
		require.Equal(t, n, strings.Count(log.lines[0], secret.Marker(secret.Key)))
		require.Equal(t, n > 0, log.events[0].Marks.Has(MarkRedacted))
	})
	ev, line := emitted(t, nil, &Unknown{Type: "x.y", Raw: `{"password":"hunter2"}`})
	require.NotContains(t, line, "hunter2")
	require.Equal(t, JSON(`{"password":"[REDACTED:key]"}`), ev.Payload.(*Unknown).Raw)
}

// setJSONs sets every JSON field in v and counts them.
func setJSONs(v reflect.Value, j JSON) int {
	n := 0
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[JSON]() {
			v.SetString(string(j))
			return 1
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += setJSONs(v.Field(i), j)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += setJSONs(v.Index(i), j)
		}
	}
	return n
}

func TestPolicyKeysAndKeepKeysChangeTheList(t *testing.T) {
	policy := &Policy{Keys: []string{"Social-Security No.", "--"}, KeepKeys: []string{"public_token"}}
	got, _ := redactedJSON(t, policy, `{"my_socialSecurityNo":"1","publicToken":"2","api_token":"three","x":"4"}`)
	require.Equal(t, JSON(`{"my_socialSecurityNo":"[REDACTED:key]","publicToken":"2","api_token":"[REDACTED:key]","x":"4"}`), got)
	got, _ = redactedJSON(t, nil, `{"my_socialSecurityNo":"1","publicToken":"two"}`)
	require.Equal(t, JSON(`{"my_socialSecurityNo":"1","publicToken":"[REDACTED:key]"}`), got, "one policy does not change another")
}

func TestRegisteredSecretsAreMaskedWhereverTheyStand(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add(`s3cr"et/é`, "tiger-tiger"))
	policy := &Policy{Secrets: secrets}
	text, marks := redactedText(t, policy, `a tiger-tiger b s3cr"et/é tiger-tigertiger-tiger`)
	require.Equal(t, "a [REDACTED:secret] b [REDACTED:secret] [REDACTED:secret][REDACTED:secret]", text)
	require.Equal(t, MarkRedacted, marks)

	got, _ := redactedJSON(t, policy, `{"a":["x s3cr\"et\/\u00e9 y"],"\u0074iger-tiger":{"tiger\u002dtiger":1},"n":1}`)
	require.Equal(t, JSON(`{"a":["x [REDACTED:secret] y"],"[REDACTED:secret]":{"[REDACTED:secret]":1},"n":1}`), got)
	text, marks = redactedText(t, policy, "tiger tiger")
	require.Equal(t, "tiger tiger", text)
	require.Zero(t, marks)
}

func TestSecretsInMemberNamesLeaveNoDuplicates(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("one-one", "two-two"))
	got, _ := redactedJSON(t, &Policy{Secrets: secrets}, `{"one-one":1,"two-two":2,"[REDACTED:secret]":3,"one-one two-two":4,"x":{"one-one":5}}`)
	require.NotContains(t, got, "one-one")
	require.NotContains(t, got, "two-two")
	for _, v := range "12345" {
		require.Contains(t, got, ":"+string(v))
	}
	require.Contains(t, got, `"x":{"[REDACTED:secret]":5}`)

	// Members that no field holds.
	for _, policy := range []*Policy{{Secrets: secrets}, {Secrets: secrets, Content: ActionMask}, {Secrets: secrets, Content: ActionDrop}} {
		var ev Event
		require.NoError(t, ev.UnmarshalJSON([]byte(`{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.text","one-one":1,"two-two":2,"runId":"r","[REDACTED:secret]":3,"payload":{"text":"x","one-one":"one-one"}}`)))
		r, log := startRun(t, EmitterOptions{Redaction: policy})
		require.NoError(t, errOf(r.Record(t.Context(), ev)))
		require.NotContains(t, log.lines[0], "one-one")
		require.NotContains(t, log.lines[0], "two-two")
		require.NoError(t, new(Event).UnmarshalJSON([]byte(log.lines[0])), log.lines[0])
	}
}

func TestOverlappingSecretsAreMaskedLongestFirst(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("abcd", "abcdefgh", "cdef"))
	text, _ := redactedText(t, &Policy{Secrets: secrets}, "abcdefgh abcd cdefg")
	require.Equal(t, "[REDACTED:secret] [REDACTED:secret] [REDACTED:secret]g", text)
}

func TestSecretsAddRefusesShortValuesAndKeepsTheOthers(t *testing.T) {
	secrets := new(Secrets)
	require.ErrorIs(t, secrets.Add("abc", "long enough", ""), ErrSecretTooShort)
	text, _ := redactedText(t, &Policy{Secrets: secrets}, "abc long enough")
	require.Equal(t, "abc [REDACTED:secret]", text)
	require.NoError(t, secrets.Add("long enough", "four"))
	require.Len(t, secrets.values.Load().list, 2)
	text, _ = redactedText(t, &Policy{}, "long enough")
	require.Equal(t, "long enough", text, "no Secrets, nothing masked")
}

func TestConcurrentSafeSecretsMayBeAddedWhileEmitting(t *testing.T) {
	secrets := new(Secrets)
	r, log := startRun(t, EmitterOptions{Redaction: &Policy{Secrets: secrets}})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				secret := fmt.Sprintf("secret %d/%d.", g, i)
				if err := errors.Join(secrets.Add(secret), r.Emit(context.Background(), &TextCompleted{Text: "say " + secret})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, secrets.values.Load().list, 400)
	require.Len(t, log.lines, 400)
	for _, line := range log.lines {
		require.NotContains(t, line, "secret 7/")
		require.NotRegexp(t, `secret \d`, line)
	}
}

// requireNowhere looks for text in all that can be reached from v, unexported
// fields included.
func requireNowhere(t *testing.T, secret string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		require.NotContains(t, v.String(), secret)
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Elem().Type().Name() != "place" { // places of roster.Opens refer to each other, and have no text
			requireNowhere(t, secret, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			requireNowhere(t, secret, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			requireNowhere(t, secret, v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			requireNowhere(t, secret, it.Key())
			requireNowhere(t, secret, it.Value())
		}
	}
}

// setContents sets every text that is neither an id nor a closed word.
func setContents(v reflect.Value, tag reflect.StructTag, s string) {
	switch v.Kind() {
	case reflect.String:
		_, closed := v.Interface().(interface{ known() bool })
		switch class := tag.Get("class"); {
		case v.Type() == reflect.TypeFor[JSON]():
			v.SetString(`{"` + s + `":["` + s + `",{"deep":"x` + s + `y"}]}`)
		case !closed && (class == "content" || class == "meta") && v.Type() == reflect.TypeFor[string]():
			v.SetString("before " + s + " after")
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if f.Tag == "" || f.Name == "V" {
					f.Tag = tag
				}
				setContents(v.Field(i), f.Tag, s)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			setContents(v.Index(i), tag, s)
		}
	case reflect.Map:
		v.SetZero() // TestSecretsInModelNamesAreMasked
	}
}

func TestSecretsAreReachableNowhereAfterwards(t *testing.T) {
	const hunter = "hunter2-hunter2"
	secrets := new(Secrets)
	require.NoError(t, secrets.Add(hunter))
	eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
		setContents(reflect.ValueOf(p).Elem(), "", hunter)
		plain := &struct{ events []Event }{}
		behind := &sinkLog{}
		var violations []*RuleError
		buffer := Buffered(behind, 8, OverflowBlock)
		r, log := startRun(t, EmitterOptions{
			Lifecycle:   LifecycleStrict,
			Mode:        ModeObserve,
			Redaction:   &Policy{Secrets: secrets},
			OnViolation: func(v *RuleError) { violations = append(violations, v) },
			Sinks: []Sink{SinkFunc(func(_ context.Context, ev Event) error {
				plain.events = append(plain.events, ev)
				return errors.New("sink")
			}), buffer},
		})
		ev := Event{Payload: p, origin: `{"secret":"` + hunter + `"}`}
		require.NoError(t, ev.SetExtra("x", JSON(`{"a":"`+hunter+`","`+hunter+`":1}`)))
		_, err := r.Agent("a").Record(t.Context(), ev)
		require.ErrorAs(t, err, new(*SinkError))
		require.NotContains(t, err.Error(), hunter)
		require.NoError(t, buffer.Close())

		require.Len(t, log.lines, 1)
		require.NotContains(t, log.lines[0], hunter)
		require.Contains(t, log.lines[0], secret.Marker(secret.Value))
		for _, events := range [][]Event{log.events, plain.events, behind.events} {
			require.Len(t, events, 1)
			requireNowhere(t, hunter, reflect.ValueOf(events))
			require.True(t, events[0].Marks.Has(MarkRedacted))
		}
		requireNowhere(t, hunter, reflect.ValueOf(violations))
		for _, v := range violations {
			require.NotContains(t, v.Error(), hunter)
		}
		requireNowhere(t, hunter, reflect.ValueOf(r.s.m))
		snapshots, err := foldSeq(log.all, FoldOptions{})
		require.NoError(t, err)
		require.NotContains(t, string(snapshots[0].AppendJSON(nil)), hunter)
		requireNowhere(t, hunter, reflect.ValueOf(snapshots))
	})
}

func TestSecretsInModelNamesAreMasked(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("hunter2-hunter2", "hunter3-hunter3"))
	ev, line := emitted(t, &Policy{Secrets: secrets}, &AgentEnded{ModelUsage: map[string]Usage{"my hunter2-hunter2": {InputTokens: 1}, "my hunter3-hunter3": {InputTokens: 2}}})
	require.NotContains(t, line, "hunter2")
	require.Len(t, ev.Payload.(*AgentEnded).ModelUsage, 2, "none is lost")
}

func TestSecretsAreGoneFromUnknownPayloadsAndMembers(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("hunter2-hunter2"))
	line := `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"new.kind","future":["hunter2-hunter2"],"runId":"r","password":"pw","payload":{"a":"hunter2\u002dhunter2"}}`
	var ev Event
	require.NoError(t, ev.UnmarshalJSON([]byte(line)))
	r, log := startRun(t, EmitterOptions{Redaction: &Policy{Secrets: secrets}})
	require.NoError(t, errOf(r.Record(t.Context(), ev)))
	require.Equal(t, `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"new.kind","future":["[REDACTED:secret]"],"runId":"r","password":"[REDACTED:key]","schemaVersion":"1.0","marks":["redacted"],"payload":{"a":"[REDACTED:secret]"}}`, log.lines[0])

	for range NewReader(strings.NewReader(line), ReaderOptions{Verbatim: true}).All() {
	}
	for ev, err := range NewReader(strings.NewReader(line), ReaderOptions{Verbatim: true}).All() {
		require.NoError(t, err)
		r, log := startRun(t, EmitterOptions{Redaction: &Policy{Secrets: secrets}})
		require.NoError(t, errOf(r.Record(t.Context(), ev)))
		require.NotContains(t, log.lines[0], "hunter2", "the line a Reader kept is not written back")
		requireNowhere(t, "hunter2", reflect.ValueOf(log.events))
	}
}

func TestIDsClosedWordsNumbersAndLifecycleNeverChange(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("thinking", "tool_call", "call-1", "agent-1", "session-1"))
	policy := &Policy{Secrets: secrets, Content: ActionMask, Meta: ActionMask, Reasoning: VerbosityOff,
		Redactor: redactorFunc(func(Place, string) (string, error) { return "changed", nil })}
	r, log := startRun(t, EmitterOptions{Redaction: policy})
	a := r.With(Scope{SessionID: "session-1", WorkflowID: "w", Phase: "tool_call"}).Agent("agent-1")
	require.NoError(t, a.Emit(t.Context(), &AgentStarted{}))
	require.NoError(t, a.To(t.Context(), StatusToolCall))
	ev := log.last(t)
	require.Equal(t, &AgentTransition{From: StatusThinking, To: StatusToolCall}, ev.Payload)
	require.Equal(t, "agent-1", ev.AgentID)
	require.Equal(t, Scope{SessionID: "session-1", WorkflowID: "w", Phase: "tool_call"}, ev.Scope)
	require.Zero(t, ev.Marks)
	require.NoError(t, a.Emit(t.Context(), &ToolCalled{CallID: "call-1", ToolID: "tool_call", Transport: TransportMCP, Attempt: Some(7), Principal: "me"}))
	require.Equal(t, &ToolCalled{CallID: "call-1", ToolID: "tool_call", Transport: TransportMCP, Attempt: Some(7), Principal: maskedClass}, log.last(t).Payload)
}

func TestEveryActionLeavesLinesThatKeepTheFieldRules(t *testing.T) {
	for _, act := range []Action{ActionMask, ActionDrop} {
		for _, policy := range []*Policy{{Content: act}, {Meta: act}, {Content: act, Meta: act}} {
			eachKind(t, func(t *testing.T, k Kind, p payloadOps) {
				r, log := startRun(t, EmitterOptions{Mode: ModeObserve, Redaction: policy})
				require.NoError(t, errOf(r.Agent("a").Record(t.Context(), Event{Payload: p})))
				var back Event
				require.NoError(t, back.UnmarshalJSON([]byte(log.lines[0])), log.lines[0])
				require.Nil(t, back.check(ops(back.Payload), false), log.lines[0])
				require.Nil(t, p.check())
			})
		}
	}
}

func TestActionsPerClass(t *testing.T) {
	p := &AgentErrored{ErrorType: "network_error", Message: "no route", Severity: SeverityError, Details: `{"a": 1}`}
	for _, tc := range []struct {
		policy Policy
		want   AgentErrored
		marks  Marks
	}{
		{Policy{}, AgentErrored{ErrorType: "network_error", Message: "no route", Severity: SeverityError, Details: `{"a":1}`}, 0},
		{Policy{Content: ActionKeep, Meta: ActionKeep}, AgentErrored{ErrorType: "network_error", Message: "no route", Severity: SeverityError, Details: `{"a":1}`}, 0},
		{Policy{Meta: ActionMask}, AgentErrored{ErrorType: maskedClass, Message: "no route", Severity: SeverityError, Details: `{"a":1}`}, MarkRedacted},
	} {
		ev, _ := emitted(t, &tc.policy, p)
		require.Equal(t, &tc.want, ev.Payload)
		require.Equal(t, tc.marks, ev.Marks)
	}
	ev, _ := emitted(t, &Policy{Content: ActionMask}, p)
	got := ev.Payload.(*AgentErrored)
	require.Equal(t, maskedClass, got.Message)
	require.Contains(t, got.Details, maskedClass)
	require.NotContains(t, got.Details, `"a"`)
	require.Equal(t, "network_error", got.ErrorType)
	ev, _ = emitted(t, &Policy{Content: ActionDrop}, p)
	got = ev.Payload.(*AgentErrored)
	require.Empty(t, got.Message)
	require.NotContains(t, got.Details, `"a"`)

	// Keep means that nothing is looked for.
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("hunter2"))
	text, marks := redactedText(t, &Policy{Content: ActionKeep, Secrets: secrets, Redactor: redactorFunc(func(Place, string) (string, error) { panic("called") })}, "hunter2")
	require.Equal(t, "hunter2", text)
	require.Zero(t, marks)
}

func TestMaskLeavesMembersSpelledOutAtTheirZeroValue(t *testing.T) {
	line := `{"id":"1","sequence":0,"timestamp":"2026-05-05T09:00:00.000Z","type":"agent.started","runId":"r","sessionId":null,"agentId":"a","actor":"","schemaVersion":"1.0","marks":["future"],"payload":{"task":"","attempt":null,"resumed":false}}`
	for _, act := range []Action{ActionScan, ActionKeep, ActionMask, ActionDrop} {
		var ev Event
		require.NoError(t, ev.UnmarshalJSON([]byte(line)))
		r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Redaction: &Policy{Content: act}})
		require.NoError(t, errOf(r.Record(t.Context(), ev)))
		require.Equal(t, line, log.lines[0])
	}
}

func TestClassSecretIsAlwaysMasked(t *testing.T) {
	for _, policy := range []*Policy{nil, {Content: ActionKeep, Meta: ActionKeep}} {
		c := newRedaction(policy).cleaner("")
		text, changed := c.text("x", ClassSecret, "s")
		require.Equal(t, maskedClass, text)
		require.True(t, changed)
		j, _ := c.json("x", ClassSecret, `"hunter2"`)
		require.Equal(t, JSON(`"[REDACTED:class]"`), j)
		require.True(t, c.redacted)
	}
	require.Equal(t, "secret", Class(0).String(), "a field without a class counts as secret")
}

func TestOffTurnsTheWholeStepOff(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("hunter2"))
	policy := &Policy{Off: true, Secrets: secrets, Content: ActionMask, Meta: ActionDrop, Reasoning: VerbosityOff,
		Redactor: redactorFunc(func(Place, string) (string, error) { panic("called") })}
	got, marks := redactedJSON(t, policy, `{"password": "hunter2"}`)
	require.Equal(t, JSON(`{"password":"hunter2"}`), got)
	require.Zero(t, marks)
	ev, _ := emitted(t, policy, &AgentReasoned{Reasoning: "hunter2", Verbosity: VerbosityOff})
	require.Equal(t, "hunter2", ev.Payload.(*AgentReasoned).Reasoning)
	// Lines stay lines all the same.
	text, marks := redactedText(t, policy, "a\xffb")
	require.Equal(t, "a\uFFFDb", text)
	require.Equal(t, MarkSanitized, marks)
}

func TestRedactorSeesWhereATextStands(t *testing.T) {
	var seen []string
	policy := &Policy{Keys: []string{"hidden"}, Redactor: redactorFunc(func(f Place, text string) (string, error) {
		seen = append(seen, fmt.Sprintf("%s %s %s %s: %s", f.Kind, f.Name, f.Key, f.Class, text))
		return text, nil
	})}
	ev, _ := emitted(t, policy, &ToolReturned{CallID: "id", ToolID: "id", Status: ToolStatusError, OneEvent: true, Result: `{"a":["1",{"b":"2"},"3"],"hidden":"no","n":5,"e":""}`,
		Error: Some(ErrorInfo{Code: "code", Message: "message", Details: `"top"`})})
	require.Equal(t, MarkRedacted, ev.Marks, "for the key alone")
	require.ElementsMatch(t, []string{
		"agent.toolReturned result a content: 1",
		"agent.toolReturned result b content: 2",
		"agent.toolReturned result a content: 3",
		"agent.toolReturned code  meta: code",
		"agent.toolReturned message  content: message",
		"agent.toolReturned details  content: top",
	}, seen)
}

func TestRedactorChangesTextAndTheEventIsMarked(t *testing.T) {
	policy := &Policy{Redactor: redactorFunc(func(f Place, text string) (string, error) {
		return strings.ReplaceAll(text, "4111", "\xff\"<>"), nil
	})}
	text, marks := redactedText(t, policy, "card 4111")
	require.Equal(t, "card \uFFFD\"<>", text, "its result is made valid")
	require.Equal(t, MarkRedacted, marks)
	got, _ := redactedJSON(t, policy, `{"n":["4111","x"],"4111":4111}`)
	require.Equal(t, JSON("{\"n\":[\"\uFFFD\\\"<>\",\"x\"],\"4111\":4111}"), got)
}

func TestAFailingRedactorDropsTheTextAndKeepsTheEvent(t *testing.T) {
	cause := errors.New("model is down")
	for name, redact := range map[string]redactorFunc{
		"error": func(f Place, text string) (string, error) { return text, cause },
		"panic": func(Place, string) (string, error) { panic(cause) },
	} {
		t.Run(name, func(t *testing.T) {
			var reported []error
			r, log := startRun(t, EmitterOptions{Lifecycle: LifecycleStrict, Redaction: &Policy{Redactor: redact}, OnError: func(err error) { reported = append(reported, err) }})
			p := &ToolCalled{CallID: "c", ToolID: "t", Arguments: `{"a":"original","n":1}`, ArgumentsSummary: "original"}
			require.NoError(t, errOf(r.Agent("a").Record(t.Context(), Event{Payload: p})))
			require.Equal(t, &ToolCalled{CallID: "c", ToolID: "t", Arguments: `{"a":"[REDACTED:error]","n":1}`, ArgumentsSummary: maskedError}, log.last(t).Payload)
			require.True(t, log.last(t).Marks.Has(MarkRedacted))
			require.Len(t, reported, 1, "once an event")
			require.ErrorIs(t, reported[0], cause)
			require.ErrorContains(t, reported[0], `run "r", sequence 0`)
			require.NotContains(t, reported[0].Error(), "original")
		})
	}
}

func TestInvalidUTF8IsReplacedAndMarkedInContentAndRefusedInIDs(t *testing.T) {
	text, marks := redactedText(t, nil, "a\xff\xfeb\xc3")
	require.Equal(t, "a\uFFFDb\uFFFD", text)
	require.Equal(t, MarkSanitized, marks)
	require.Equal(t, "redacted,sanitized", (MarkRedacted | MarkSanitized).String())

	r, log := startRun(t, EmitterOptions{})
	var broken *RuleError
	for pointer, ev := range map[string]Event{
		"/payload/callId":    {Payload: &ToolCalled{CallID: "\xff", ToolID: "t"}},
		"/payload/principal": {Payload: &ToolCalled{CallID: "c", ToolID: "t", Principal: "\xff"}},
		"/agentId":           {AgentID: "\xff", Payload: &TextDelta{}},
		"/phase":             {Scope: Scope{WorkflowID: "w", Phase: "\xff"}, Payload: &TextDelta{}},
	} {
		require.ErrorAs(t, errOf(r.Record(t.Context(), ev)), &broken)
		require.Equal(t, RuleFieldUTF8, broken.Rule)
		require.Equal(t, pointer, broken.Pointer)
	}
	require.Empty(t, log.events)
}

func TestRawJSONKeepsItsBytes(t *testing.T) {
	raw := JSON(`{"z":9007199254740993,"a":1.0,"e":1E400,"h":"<>&\u2028\/","esc":"\u0041\ud83d\ude00","nul":"\u0000","é":-0}`)
	for _, policy := range []*Policy{nil, {Off: true}, {Redactor: redactorFunc(func(_ Place, s string) (string, error) { return s, nil })}} {
		got, marks := redactedJSON(t, policy, raw)
		require.Equal(t, raw, got)
		require.Zero(t, marks)
		got, _ = redactedJSON(t, policy, "\t{ \"z\" : [ 1 ,\n2 ] }\r\n")
		require.Equal(t, JSON(`{"z":[1,2]}`), got, "but for insignificant whitespace")
	}
	// The members beside a masked value keep their bytes.
	got, _ := redactedJSON(t, nil, `{"z":9007199254740993,"api_token":"x","h":"<\u0041"}`)
	require.Equal(t, JSON(`{"z":9007199254740993,"api_token":"[REDACTED:key]","h":"<\u0041"}`), got)
}

func TestReasoningFollowsTheStricterOfPolicyAndEvent(t *testing.T) {
	long := strings.Repeat("é", 50)
	for _, tc := range []struct {
		policy, asked, verbosity Verbosity
		chars                    int
	}{
		{"", "", "", 50},
		{"", VerbosityFull, VerbosityFull, 50},
		{"", VerbositySummary, VerbositySummary, 20},
		{"", VerbosityOff, VerbosityOff, 0},
		{VerbosityFull, "", "", 50},
		{VerbosityFull, VerbositySummary, VerbositySummary, 20},
		{VerbosityFull, VerbosityOff, VerbosityOff, 0},
		{VerbositySummary, "", VerbositySummary, 20},
		{VerbositySummary, VerbosityFull, VerbositySummary, 20},
		{VerbositySummary, VerbosityOff, VerbosityOff, 0},
		{VerbosityOff, "", VerbosityOff, 0},
		{VerbosityOff, VerbosityFull, VerbosityOff, 0},
		{VerbosityOff, VerbositySummary, VerbosityOff, 0},
	} {
		policy := &Policy{Reasoning: tc.policy, ReasoningTokens: 5}
		want := strings.Repeat("é", tc.chars)
		var marks Marks
		if tc.chars < 50 {
			marks = MarkRedacted
		}
		ev, _ := emitted(t, policy, &AgentReasoned{Reasoning: long, Verbosity: tc.asked})
		require.Equal(t, &AgentReasoned{Reasoning: want, Verbosity: tc.verbosity}, ev.Payload, "%+v", tc)
		require.Equal(t, marks, ev.Marks)
		ev, _ = emitted(t, policy, &AgentReasoningDelta{Delta: long, Verbosity: tc.asked})
		require.Equal(t, &AgentReasoningDelta{Delta: want, Verbosity: tc.verbosity}, ev.Payload, "%+v", tc)
		if tc.asked != "" {
			continue
		}
		ev, _ = emitted(t, policy, &AgentDecided{Decision: "1", Reasoning: long})
		require.Equal(t, want, ev.Payload.(*AgentDecided).Reasoning)
		require.Equal(t, marks, ev.Marks)
		ev, _ = emitted(t, policy, &IntentClassified{Intent: "i", Reasoning: long})
		require.Equal(t, want, ev.Payload.(*IntentClassified).Reasoning)
	}
	ev, _ := emitted(t, &Policy{Reasoning: VerbositySummary}, &AgentReasoned{Reasoning: strings.Repeat("x", 3000)})
	require.Len(t, ev.Payload.(*AgentReasoned).Reasoning, 4*512, "the default limit")
	ev, _ = emitted(t, &Policy{Reasoning: VerbositySummary}, &AgentReasoned{Reasoning: "short"})
	require.Equal(t, &AgentReasoned{Reasoning: "short", Verbosity: VerbositySummary}, ev.Payload)
	require.Zero(t, ev.Marks, "nothing was taken out")
}

// deltas emits pieces of one block and returns the recorded pieces.
func deltas(t *testing.T, policy *Policy, block string, pieces ...string) []string {
	t.Helper()
	r, log := startRun(t, EmitterOptions{Redaction: policy})
	var out []string
	for i, piece := range pieces {
		recordOf(t, r.Agent("a"), &AgentReasoningDelta{BlockID: block, Delta: piece, Index: Some(i)})
		out = append(out, log.last(t).Payload.(*AgentReasoningDelta).Delta)
	}
	return out
}

func TestReasoningLimitIsCountedOverTheBlock(t *testing.T) {
	policy := &Policy{Reasoning: VerbositySummary, ReasoningTokens: 3} // 12 characters
	require.Equal(t, []string{"ééééé", "ééééé", "éé", "", ""}, deltas(t, policy, "b", "ééééé", "ééééé", "ééééé", "ééééé", "é"))
	require.Equal(t, []string{"ééééé", "ééééé", "éé", ""}, deltas(t, policy, "", "ééééé", "ééééé", "ééééé", "ééééé"))

	r, log := startRun(t, EmitterOptions{Redaction: policy})
	for _, block := range []string{"b1", "b2"} {
		recordOf(t, r.Agent("a"), &AgentReasoningDelta{BlockID: block, Delta: "0123456789abcdef"})
		require.Equal(t, "0123456789ab", log.last(t).Payload.(*AgentReasoningDelta).Delta, "each block has its own")
	}
	recordOf(t, r.Agent("other"), &AgentReasoningDelta{BlockID: "b1", Delta: "0123456789abcdef"})
	require.Equal(t, "0123456789ab", log.last(t).Payload.(*AgentReasoningDelta).Delta, "each agent has its own")
}

// Runs may have verbosities of their own.
func TestRunsHaveTheirOwnVerbosity(t *testing.T) {
	of := map[string]Verbosity{"off": VerbosityOff, "summary": VerbositySummary, "full": VerbosityFull, "wrong": "loud"}
	e, log := startEmitter(t, EmitterOptions{Redaction: &Policy{Reasoning: VerbositySummary, ReasoningTokens: 1, RunReasoning: func(run string) Verbosity {
		return of[run]
	}}})
	for run, want := range map[string][2]string{"off": {"", ""}, "summary": {"abcd", "abcd"}, "full": {"abcdefgh", "abcdefgh"}, "default": {"abcd", "abcd"}, "wrong": {"", ""}} {
		r, err := e.Run(run)
		require.NoError(t, err)
		require.NoError(t, r.Emit(t.Context(), &AgentReasoned{Reasoning: "abcdefgh"}))
		require.Equal(t, want[0], log.last(t).Payload.(*AgentReasoned).Reasoning, run)
		require.NoError(t, r.Emit(t.Context(), &AgentReasoningDelta{Delta: "abcdefgh"}))
		require.Equal(t, want[1], log.last(t).Payload.(*AgentReasoningDelta).Delta, run)
	}
}

func TestCountTokensDecidesHowMuchReasoningStays(t *testing.T) {
	words := func(s string) int { return len(strings.Fields(s)) }
	ev, _ := emitted(t, &Policy{Reasoning: VerbositySummary, ReasoningTokens: 3, CountTokens: words}, &AgentReasoned{Reasoning: "one zwei drei vier fünf"})
	got := ev.Payload.(*AgentReasoned).Reasoning
	require.Equal(t, "one zwei drei", strings.TrimSpace(got))

	runes := func(s string) int { return len([]rune(s)) }
	policy := &Policy{Reasoning: VerbositySummary, ReasoningTokens: 5, CountTokens: runes}
	for _, text := range []string{"é日😀é日😀é", "abc", "日日日日日日", "a\u0301bcdefg", "😀😀😀😀😀😀😀"} {
		ev, _ := emitted(t, policy, &AgentReasoned{Reasoning: text})
		want := []rune(text)
		require.Equal(t, string(want[:min(5, len(want))]), ev.Payload.(*AgentReasoned).Reasoning, "the longest prefix of whole characters")
	}
}

func TestCountTokensBoundsTheWholeBlock(t *testing.T) {
	runes := func(s string) int { return len([]rune(s)) }
	policy := &Policy{Reasoning: VerbositySummary, ReasoningTokens: 10, CountTokens: runes}
	got := strings.Join(deltas(t, policy, "b", "abcd", "efgh", "ijkl", "mnop", "qrst"), "")
	require.Equal(t, "abcdefghij", got, "10 tokens in all, as CountTokens counts them")
}

func TestReasoningIsCutAfterSecretsAreMasked(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("hunter2-hunter2"))
	ev, line := emitted(t, &Policy{Secrets: secrets, Reasoning: VerbositySummary, ReasoningTokens: 3}, &AgentReasoned{Reasoning: "abcd hunter2-hunter2"})
	require.NotContains(t, line, "hunter2", "not even half of it")
	require.Equal(t, "abcd [REDAC", ev.Payload.(*AgentReasoned).Reasoning[:11])
}

func TestCleanDoesNotAllocateWhenNothingMatches(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("hunter2-hunter2"))
	for name, policy := range map[string]*Policy{
		"default": nil,
		"secrets": {Secrets: secrets, Keys: []string{"mine"}, KeepKeys: []string{"yours"}},
		"off":     {Off: true},
	} {
		red := newRedaction(policy)
		p := &ToolReturned{CallID: "c", ToolID: "t", Status: ToolStatusOK, ResultSummary: "some text, long enough to need a look", Result: `{"a":[1,"two",{"three":null,"tokens":3}],"b":"plain"}`}
		var c cleaner
		require.Zero(t, leastAllocs(100, func() {
			c = red.cleaner(KindToolReturned)
			if _, changed := cleanPayload(p, &c); changed || c.redacted {
				panic("changed")
			}
		}), name)
	}
}

// Reading an escaped name allocates, so the number of allocations tells how
// often the names are read.
func TestMaskingManyNamesReadsEachAFewTimes(t *testing.T) {
	const n = 40
	secrets := new(Secrets)
	for i := range n {
		require.NoError(t, secrets.Add(fmt.Sprintf("secret%03d", i)))
	}
	for what, name := range map[string]string{"different": "\\u0041secret%03[1]d-%03[2]d", "the same": "\\u0041secret%03dsecret%03d"} {
		var members []string
		for i := range n {
			for j := range n {
				members = append(members, `"`+fmt.Sprintf(name, i, j)+`":1`)
			}
		}
		object := JSON("{" + strings.Join(members, ",") + "}")
		red := newRedaction(&Policy{Secrets: secrets})
		var masked JSON
		allocs := testing.AllocsPerRun(1, func() {
			c := red.cleaner(KindToolCalled)
			masked, _ = c.json("arguments", ClassContent, object)
		})
		require.Less(t, allocs, 20.*n*n, what)
		names := map[string]bool{}
		for name := range jsonwire.Members(string(masked)) {
			require.NotContains(t, name, "secret0")
			names[name] = true
		}
		require.Len(t, names, n*n, "no name comes twice")
	}
}

func TestMaskedNamesBeginAnewInEveryObject(t *testing.T) {
	secrets := new(Secrets)
	require.NoError(t, secrets.Add("C4N4RY", "S3CR3T"))
	got, _ := redactedJSON(t, &Policy{Secrets: secrets}, `[{"C4N4RY":1,"S3CR3T":2},{"S3CR3T":{"C4N4RY":3},"[REDACTED:secret]":4}]`)
	require.Equal(t, JSON(`[{"[REDACTED:secret]":1,"[REDACTED:secret]-2":2},{"[REDACTED:secret]-2":{"[REDACTED:secret]":3},"[REDACTED:secret]":4}]`), got)
}
