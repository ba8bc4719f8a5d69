// Command openwopschemas writes the facts of the published JSON Schemas of OpenWOP, which
// are outside the project, into dialect/openwop/internal/schemas, which strict readers go by. The files are
// in a folder with the folders v1 and v2.
//
//	go run ./internal/openwopschemas -schemas FOLDER           # in lawtest
//	go run ./internal/openwopschemas -schemas FOLDER -check
//	go run ./internal/openwopschemas -schemas FOLDER -verify
//
// With -verify it writes nothing. It has the published schemas, the table and package facts
// judge the same lines, and fails at the first one where they differ. -check only compares the
// table with the files.
//
// Three published schemas of v2 are not taken as they are. The one for decisions refuses
// every decision, as it forbids all members but those beside its alternatives; that condition
// is left out. The schemas for interrupts and for parts of messages are not in the folder: the
// one of v1 for interrupts stands in, and parts have no conditions.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/agentevents/agentevents/internal/lawtest/internal/schematable"
)

const (
	root      = "https://openwop.dev/spec/" // the beginning of the names of all schemas
	suspended = "v1/suspend-request.schema.json"
)

func main() {
	log.SetFlags(0)
	folder := flag.String("schemas", "", "the `FOLDER` of the published schemas")
	to := flag.String("to", "../../dialect/openwop/internal/schemas", "the folder of the tables")
	check := flag.Bool("check", false, "compare the tables with the schemas")
	judge := flag.Bool("verify", false, "compare them and their verdicts")
	flag.Parse()
	for _, version := range []string{"v1", "v2"} {
		path := filepath.Join(*to, version+".txt")
		do := write
		if *check {
			do = upToDate
		}
		if *judge {
			do = verify
		}
		if err := do(*folder, version, path); err != nil {
			log.Fatalf("%s: %v", version, err)
		}
	}
}

// write writes the table of a version.
func write(folder, version, path string) error {
	files, err := load(folder, version)
	if err != nil {
		return err
	}
	text, err := tableOf(files, version)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// upToDate fails if the table of a version and the files differ.
func upToDate(folder, version, path string) error {
	files, err := load(folder, version)
	if err != nil {
		return err
	}
	want, err := tableOf(files, version)
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(path); err != nil {
		return err
	} else if string(text) != want {
		return fmt.Errorf("%s is not up to date", path)
	}
	return nil
}

// tableOf returns the text of the table of a version. It fails if the text is not exactly
// the schemas without their annotations.
func tableOf(files map[string]*file, version string) (string, error) {
	c := &collector{files: files, table: schematable.Table{}, used: map[string]bool{}}
	for name, address := range roots(files, version) {
		target, err := c.add(address)
		if err != nil {
			return "", err
		}
		c.table[name] = object{"$ref": "#/$defs/" + target}
	}
	text, err := c.table.String()
	if err != nil {
		return "", err
	}
	again, err := schematable.Parse(text)
	if err != nil {
		return "", err
	}
	if !reflect.DeepEqual(again, c.table) {
		return "", errors.New("the text of the table is another table")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Facts of the JSON Schemas of OpenWOP %s. Written by "+
		"internal/lawtest/internal/openwopschemas from these files:\n#\n", version)
	for _, o := range origins {
		if !c.used[o.path] {
			continue
		}
		if o.sum == "" {
			fmt.Fprintf(&b, "#\t%s was not there; a schema without conditions stands in for it\n", o.path)
		} else {
			fmt.Fprintf(&b, "#\t%s (%s) SHA-256 %s\n", o.path, o.from, o.sum)
		}
	}
	return b.String() + "\n" + text, nil
}

// roots returns the addresses of the envelope, of the snapshot and of the payloads, by the
// name in the table.
func roots(files map[string]*file, version string) map[string]string {
	list := map[string]string{"envelope": root + version + "/run-event.schema.json",
		"snapshot": root + version + "/run-snapshot.schema.json"}
	payloads := root + version + "/run-event-payloads.schema.json"
	doc := files[payloads].doc
	index, ok := doc["_typeIndex"].(object)
	if !ok {
		index = doc["$defs"].(object)["_typeIndex"].(object) // v1
	}
	for typ, s := range index["properties"].(object) {
		list["payload:"+typ] = payloads + s.(object)["$ref"].(string)
	}
	if version == "v2" {
		list["payload:interrupt.requested"] = root + suspended
	}
	return list
}
