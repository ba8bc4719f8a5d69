package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// A tracked is a file of a module. It is a [zip.File].
type tracked struct{ name, disk string }

func (f tracked) Path() string                 { return f.name }
func (f tracked) Lstat() (fs.FileInfo, error)  { return os.Lstat(f.disk) }
func (f tracked) Open() (io.ReadCloser, error) { return os.Open(f.disk) }

// pack writes a module to a folder that GOPROXY can name. The license of the root is part of
// every module, as in those that the go command makes.
func (t *tree) pack(m *mod, version, proxy string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"list": []byte(version + "\n"),
		version + ".info": info, version + ".mod": m.text} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return t.zip(m, version, filepath.Join(dir, version+".zip"))
}

func (t *tree) zip(m *mod, version, name string) (err error) {
	var files []zip.File
	for _, f := range m.files {
		files = append(files, tracked{f, filepath.Join(t.root, m.dir, f)})
	}
	if !slices.Contains(m.files, "LICENSE") {
		files = append(files, tracked{"LICENSE", filepath.Join(t.root, "LICENSE")})
	}
	w, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closing := w.Close(); err == nil {
			err = closing
		}
	}()
	if err := zip.Create(w, module.Version{Path: m.path, Version: version}, files); err != nil {
		return fmt.Errorf("it cannot be packed: %w", err)
	}
	return nil
}
