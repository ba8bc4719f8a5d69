package querytest

import (
	_ "embed"

	"github.com/agentevents/agentevents"
)

//go:embed fixture.schema.json
var schema string

// Schema returns the JSON Schema of a fixture (draft 2020-12). It is generated from
// [Fixture], and allows further members, as [Parse] does.
func Schema() agentevents.JSON { return agentevents.JSON(schema) }
