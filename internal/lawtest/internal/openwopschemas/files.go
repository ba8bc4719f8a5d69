package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// An origin is a published file: where it stands, and the sum of its bytes. One without a sum
// is not in the folder.
type origin struct{ path, from, sum string }

// The extracts have some of the definitions of their files, and nothing else is changed but
// that the one of v2 lacks descriptions.
var origins = []origin{
	{"v1/agent-ref.schema.json", "openwop-sdks@257db0f3", "b411bd51439e26d862393d546215d6b26d9349e6c9bdd92b353ca0fde2a51fb2"},
	{"v1/channel-written-payload.schema.json", "openwop-sdks@257db0f3", "54723a56bc5a35232f64544ca686ac1ac959a5fb05b32b2401facca6b3ef51a3"},
	{"v1/orchestrator-decision.schema.json", "openwop-sdks@257db0f3", "58bcacc99ca9385d8dba3fb7926f7d1dbd92c2dff64ea5e68547cfde963fe65a"},
	{"v1/prompt-kind.schema.json", "openwop-sdks@257db0f3", "fcf4305b430dc9d2d34b6f2971f4185fd2ed7f617013720d975bfc3ab665e000"},
	{"v1/run-event-payloads.extract.schema.json", "openwop-sdks@257db0f3, 58 definitions", "6fdd442847480a66e2809b51e110607546a6d4fee5707b517a47795c9122e171"},
	{"v1/run-event.schema.json", "openwop-sdks@da53e382", "120120938878c8b29b4721c92112f6fcc42d3aa60e05cc9f28e4fb6097079c26"},
	{"v1/run-snapshot.schema.json", "openwop-sdks@257db0f3", "2bd0f56bd446aed35740e1bde9b8fee7daf5b4ba8c0e0942ec834e6a70779a07"},
	{"v1/suspend-request.schema.json", "openwop-sdks@257db0f3", "11e3f835075662191906c72263c0e999db9890d9951bf143ce1fd52e57e464c1"},
	{"v2/agent-ref.schema.json", "openwop@11ad7804", "3d94801d76f6d4726a1c4f9c7ffc7456d5d73dd054eb0be134f6b1a9cbb7c5e9"},
	{"v2/channel-written-payload.schema.json", "openwop-sdks@fd8e5544", "ccecff3c71a3275ad8db035ac0e04db25e6f8d23cf091ddbcd5a60d1be1cbb6b"},
	{"v2/conversation-event.schema.json", "openwop@11ad7804", "c256a7da75b45beefa00d74c9a10efd91b6141cb9b35937f213310287b62bf7f"},
	{"v2/ids.schema.json", "openwop@6809add4", "6c9edba12cf9aab2be64ce9836f26a63d5246283cfd5f2295c0bfadebdc5cbda"},
	{"v2/orchestrator-decision.schema.json", "openwop-sdks@fd8e5544", "2da17538e84cfbe70151eb118f1ccf670cff58b8697148e394074d32ac4af6b4"},
	{"v2/part.schema.json", "", ""},
	{"v2/run-event-payloads.extract.schema.json", "openwop@11ad7804, 49 definitions", "28c37b39ebd9e2ae11071bd716a93a5efd7487bebeeb539b4d4386cce7880501"},
	{"v2/run-event.schema.json", "openwop-sdks@22c3e6af", "2f0d7416bd376c56affe97b6b2b49981532e8e9ff45c0a162cf806c78b3e7fb7"},
	{"v2/run-snapshot.schema.json", "openwop-sdks@04b5b6a0", "0ee8a50c6be210db415a7c4345298e70a6ae3dd0dd764ccc514bc1c501437586"},
	{"v2/subject.schema.json", "openwop-sdks@33f1a23f", "094e981fb20052a911393e219ea5f2065d8b8417b65080a70c5ea99fd960a8fe"},
}

// A file is a published file that was read.
type file struct {
	origin
	id  string
	doc object
}

// name returns the first part of the file's name.
func (f *file) name() string {
	name, _, _ := strings.Cut(filepath.Base(f.path), ".")
	return name
}

// address returns the address to which a reference in the file refers.
func (f *file) address(ref string) string {
	switch {
	case strings.HasPrefix(ref, "#"):
		return f.id + ref
	case strings.HasPrefix(ref, "https://"):
		return ref
	default:
		return f.id[:strings.LastIndex(f.id, "/")+1] + strings.TrimPrefix(ref, "./")
	}
}

// load reads the files of a version from the folder. It refuses files that differ from
// the origins.
func load(folder, version string) (map[string]*file, error) {
	byID := map[string]*file{}
	for _, o := range origins {
		if !strings.HasPrefix(o.path, version) && o.path != suspended {
			continue
		}
		if o.sum == "" {
			byID[root+o.path] = &file{origin: o, id: root + o.path, doc: object{}}
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, o.path))
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != o.sum {
			return nil, fmt.Errorf("%s is not the file of %s: its SHA-256 is %x", o.path, o.from, sum)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.path, err)
		}
		f := &file{origin: o, doc: doc.(object)}
		f.id = f.doc["$id"].(string)
		if o.path == "v2/orchestrator-decision.schema.json" {
			delete(f.doc, "additionalProperties")
		}
		byID[f.id] = f
	}
	return byID, nil
}
