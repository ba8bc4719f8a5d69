// Command release sets the version of the modules of a tree, and proves that others can get
// them. Run it in the root folder of the repository.
//
//	go run ./tools/release set VERSION       # requirements between the modules name VERSION
//	go run ./tools/release prove [VERSION]   # builds and runs programs that get the modules
//	go run ./tools/release tags [VERSION]    # prints the tags of a release
//
// Without VERSION, prove and tags take the version that the requirements name.
//
// A module is released if a program can import a package of it: one that is neither main nor
// internal. The comment "// Not released: REASON" above the module line of its go.mod keeps
// a module back. All modules have one version. Their replace directives stay: the tree is
// built by them, and Go ignores them in a program that gets a module.
//
// The command prove packs the files that git knows, with their content on disk, as the module
// proxy would. It writes a program for each released module outside of the tree, which
// imports all packages that can be imported, gets the module with go get, and runs the
// program. Then it installs the commands in the folders cmd, or gets them as tools of that program.
// The go command has a module cache and a proxy in a temporary folder for that, and reads other
// modules from the download folder of the user's module cache. So an invented version stays
// nowhere.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
)

var errUsage = errors.New("usage: release set VERSION | prove [VERSION] | tags [VERSION]")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || len(args) > 2 {
		return errUsage
	}
	t, err := load(".")
	if err != nil {
		return err
	}
	version := t.version()
	if len(args) == 2 {
		version = args[1]
	}
	switch {
	case args[0] == "set" && len(args) == 2:
		return t.set(version, out)
	case args[0] == "prove":
		return t.prove(ctx, version, ownPrograms, out)
	case args[0] == "tags":
		return t.tags(version, out)
	}
	return errUsage
}
