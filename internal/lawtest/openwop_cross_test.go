package lawtest

import (
	"bytes"
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentevents/agentevents"
	"github.com/agentevents/agentevents/dialect/openwop"
)

// beyondSchemas are the rules of a strict decoder that no schema has.
var beyondSchemas = []agentevents.Rule{
	openwop.RuleCausation, openwop.RuleResult, openwop.RuleDuration, openwop.RuleNode, openwop.RuleType, openwop.RuleEscalate, openwop.RuleInvocation, openwop.RuleMemory,
}

// Every line that a schema describes can be read, and keeps the rules of a strict decoder but
// those that no schema has. A strict decoder refuses payloads of types without a kind that
// break their schema. Every event that is read under one
// profile and written under another keeps the published schema of the other, and can be
// read again. Of the data of an interrupt that the vocabulary does not have only the type is
// checked, so there the result keeps the schema only if the line that was read does.
func TestOpenWOPProfilesKeepThePublishedSchemasOfEachOther(t *testing.T) {
	schemas := map[openwop.Profile]published{openwop.SchemaV1: loadPublished(t, "v1"), openwop.SchemaV2: loadPublished(t, "v2")}
	profiles := []openwop.Profile{openwop.RFC0002, openwop.SchemaV1, openwop.SchemaV2}
	lines, err := OpenWOPLines(vectors)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	written, others, valid, refused := 0, 0, 0, 0
	otherTypes := map[string]bool{}
	for _, list := range otherPayloads {
		for _, other := range list {
			otherTypes[other[0]] = true
		}
	}
	for i := range 40 * len(lines) {
		line := lines[i%len(lines)]
		if i >= len(lines) {
			line = Strange(r, line)
		}
		for _, from := range profiles {
			verbatim := i%2 == 0 // the event has its line, which another profile may not take as it is
			read := agentevents.NewReader(strings.NewReader(line), agentevents.ReaderOptions{Decoder: openwop.NewDecoder(openwop.Options{Profile: from}), Verbatim: verbatim})
			next, stop := iter.Pull2(read.All())
			ev, err, _ := next()
			stop()
			described := false
			if s := schemas[from]; s != nil {
				typ, checked, broken := s.check(line)
				described = checked && broken == nil
				_, strict := openwop.NewDecoder(openwop.Options{Profile: from, Strict: true, Folded: true}).Decode(nil, []byte(line))
				var rule *agentevents.RuleError
				if described && errors.As(strict, &rule) {
					require.Contains(t, beyondSchemas, rule.Rule, "%s\n%s\n%v", from, line, strict)
				}
				if otherTypes[typ] && checked && broken != nil && !(typ == "interrupt.requested" && strings.Contains(broken.Error(), "- at '/data'")) {
					require.Error(t, strict, "%s\n%s\n%v", from, line, broken)
					refused++
				}
			}
			if described {
				require.NoError(t, err, "%s\n%s", from, line)
				valid++
			}
			if err != nil {
				continue
			}
			_, other := ev.Payload.(*agentevents.Unknown)
			interrupt := ev.Kind() == "interrupt.requested"
			for _, to := range profiles {
				out, err := openwop.NewEncoder(openwop.EncoderOptions{Profile: to}).Append(nil, ev)
				if err != nil {
					require.False(t, described && from == to && !other, "%s\n%s\n%v", to, line, err)
					continue
				}
				_, err = openwop.NewDecoder(openwop.Options{Profile: to}).Decode(nil, bytes.TrimSuffix(out, []byte("\n")))
				require.NoError(t, err, "%s to %s\n%s\n%s", from, to, line, out)
				if to == openwop.RFC0002 || !described && (from == to || other && interrupt) {
					continue // no schema applies, or the line itself did not keep one
				}
				_, _, err = schemas[to].check(string(out))
				require.NoError(t, err, "%s to %s\n%s\n%s", from, to, line, out)
				written++
				if other {
					others++
				}
			}
		}
	}
	require.Greater(t, written, 10*len(lines))
	require.Greater(t, others, len(lines))
	require.Greater(t, valid, 5*len(lines))
	require.Greater(t, refused, len(lines)/2)
}
