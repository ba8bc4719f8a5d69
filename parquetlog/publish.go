package parquetlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentevents/agentevents/internal/disk"
)

// listName is the name of the list of files that are complete and about to get their names.
const listName = "agentevents.publish"

// publishListed gives the listed files their names, and removes the list.
func publishListed(dir string) error {
	list := filepath.Join(dir, listName)
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	days := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		path := filepath.FromSlash(name)
		if !filepath.IsLocal(path) || filepath.Ext(path) != ".parquet" {
			return fmt.Errorf("%s: %q is no file of the folder", list, name)
		}
		path = filepath.Join(dir, path)
		switch err := os.Rename(path+temporary, path); {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist): // it has its name
		default:
			return err
		}
		days[filepath.Dir(path)] = true
	}
	for day := range days {
		if err := (disk.OS{}).SyncDir(day); err != nil {
			return err
		}
	}
	if err := os.Remove(list); err != nil {
		return err
	}
	return disk.OS{}.SyncDir(dir)
}

// recoverFolder completes the work of a writer that was killed while it published, and removes the
// temporary files of one that was killed before.
func recoverFolder(dir string) error {
	if err := publishListed(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.RemoveTemporary(dir); err != nil {
		return err
	}
	days, err := partitions(dir)
	if err != nil {
		return err
	}
	for _, day := range days {
		left, err := filepath.Glob(filepath.Join(escaped(day), "part-*.parquet"+temporary))
		if err != nil {
			return err
		}
		for _, name := range left {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}
