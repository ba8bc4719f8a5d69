package agentevents

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type closedWord[T any] interface {
	~string
	known() bool
	words() []T
}

// listOf returns the words of a list, each of which is known, and the error for
// another one.
func listOf[T closedWord[T]](t *testing.T) (words []string, err *fieldError) {
	for _, word := range T("").words() {
		require.True(t, word.known(), word)
		words = append(words, string(word))
	}
	require.False(t, T("no word").known())
	return words, otherWord("name", T("no word"))
}

// A closed list has every constant of its type, and its error names them all.
func TestClosedLists(t *testing.T) {
	constants, closed := map[string][]string{}, map[string]bool{}
	for _, file := range packageSource(t) {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "known" {
				closed[fn.Recv.List[0].Type.(*ast.Ident).Name] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				if typ, ok := spec.Type.(*ast.Ident); ok {
					if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
						if word, err := strconv.Unquote(lit.Value); err == nil {
							constants[typ.Name] = append(constants[typ.Name], word)
						}
					}
				}
			}
			return true
		})
	}
	lists := map[string]func(*testing.T) ([]string, *fieldError){
		"AgentOutcome": listOf[AgentOutcome], "AgentSharing": listOf[AgentSharing], "AgentStatus": listOf[AgentStatus],
		"AuditResult": listOf[AuditResult], "Lifecycle": listOf[Lifecycle], "MemoryChange": listOf[MemoryChange],
		"ModelClass": listOf[ModelClass], "PatchOp": listOf[PatchOp], "Severity": listOf[Severity],
		"ToolStatus": listOf[ToolStatus], "Transport": listOf[Transport], "Verbosity": listOf[Verbosity],
	}
	for name := range closed {
		require.Contains(t, lists, name, "add the list to this test")
	}
	for name, list := range lists {
		words, err := list(t)
		want := constants[name]
		if name == "AgentSharing" {
			want = append(want, "shared:<group>") // any group
		}
		require.Equal(t, want, words, name)
		require.Equal(t, `a text of 7 bytes is not one of: `+strings.Join(want, ", "), err.detail)
	}
	require.Equal(t, ToolStatusOK, ToolStatus("ok").constant())
	require.Equal(t, ToolStatus("new"), ToolStatus("new").constant())
}
