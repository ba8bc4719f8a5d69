// Package index keeps answers about files that do not change any more, in a folder of the user's
// cache. An answer about files that have changed is not found.
//
// An answer is encrypted. Its key is made from the question and, of each file, the path, size,
// time of the last change, number on its disk and a hash of the first and the last 64 KiB. So the
// folder has nothing of the files that can be read without them, and no name of them.
//
// A file with the same size, time, number, beginning and end is taken for the same one. A check, which
// must not err, does not use this package.
package index

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agentevents/agentevents/internal/disk"
)

const (
	// edge is how many bytes at each end of a file are hashed.
	edge = 64 << 10
	// rest is for how long a file must not have changed. Within the resolution of a clock a file
	// may change again without another time.
	rest = 2 * time.Second
	// MaxSize is how much a folder keeps, in bytes: the oldest answers go first.
	MaxSize = 64 << 20
	// slack is how much of it may be kept before the folder is looked through again.
	slack = MaxSize / 16
)

// An Index is a folder with answers. Several processes may use one at once. All methods work
// without one: a nil Index knows no answer and keeps none.
type Index struct {
	folder, program string
	room            atomic.Int64 // bytes that may be kept before the folder is looked through
	looked          atomic.Int64 // how often it was
}

// New returns the index in a folder, which is made when there is something to keep. Program names
// the version of the program: another one does not see its answers. Without a folder there is nil.
func New(folder, program string) *Index {
	if folder == "" {
		return nil
	}
	return &Index{folder: folder, program: program}
}

// A Question is a question about files as they were when it was asked.
type Question struct {
	index *Index
	words []string
	files []string
	path  string   // of the answer
	key   [32]byte // of the answer
}

// Ask asks a question about files. The words are all that the answer depends on beside the files,
// in a fixed order. It returns nil if no answer can be kept: a file cannot be read, is not a regular
// one, or changed a moment ago.
func (x *Index) Ask(files []string, words ...string) *Question {
	if x == nil || len(files) == 0 {
		return nil
	}
	q := &Question{index: x, words: words}
	name, key := sha256.New(), sha256.New()
	now := time.Now()
	for _, h := range []hash.Hash{name, key} {
		add(h, append([]string{"agentevents index 1"}, words...)...)
	}
	add(key, x.program)
	for _, file := range files {
		abs, err := filepath.Abs(file)
		if err != nil || look(key, abs, now) != nil {
			return nil
		}
		add(name, abs)
		q.files = append(q.files, abs)
	}
	q.path = filepath.Join(x.folder, hex.EncodeToString(name.Sum(nil)))
	key.Sum(q.key[:0])
	return q
}

// add adds texts to a hash, so that no two lists of texts give the same bytes.
func add(h hash.Hash, texts ...string) {
	for _, text := range texts {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(text)))
		_, _ = io.WriteString(h, text)
	}
}

var errMoving = errors.New("not a regular file that rests")

// look adds the state of a file to a hash.
func look(h hash.Hash, path string, now time.Time) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || now.Sub(info.ModTime()) < rest {
		return errMoving
	}
	size := info.Size()
	add(h, path, fmt.Sprint(size, " ", info.ModTime().UnixNano(), " ", number(info)))
	for _, from := range [...]int64{0, max(0, size-edge)} {
		n, err := io.Copy(h, io.NewSectionReader(f, from, edge))
		if err != nil {
			return err
		}
		add(h, fmt.Sprint(n))
	}
	return nil
}

// Answer returns the answer that was kept, or nil.
func (q *Question) Answer() []byte {
	if q == nil {
		return nil
	}
	sealed, err := os.ReadFile(q.path)
	if err != nil {
		return nil
	}
	answer, err := q.cipher().Open(nil, nil, sealed, nil)
	if err != nil {
		return nil // of other files, or damaged
	}
	return answer
}

// Keep keeps the answer, unless a file has changed since the question. After an error the
// program can go on: the next answer takes time.
func (q *Question) Keep(answer []byte) error {
	if q == nil || len(answer) > MaxSize/4 {
		return nil
	}
	if now := q.index.Ask(q.files, q.words...); now == nil || now.key != q.key {
		return nil
	}
	if err := os.MkdirAll(q.index.folder, 0o700); err != nil {
		return err
	}
	sealed := q.cipher().Seal(nil, nil, answer, nil)
	if err := disk.Replace(q.path, sealed); err != nil {
		return err
	}
	if q.index.room.Add(-int64(len(sealed))) >= 0 {
		return nil
	}
	return q.index.trim()
}

// cipher returns the cipher for the answer.
func (q *Question) cipher() cipher.AEAD {
	block, err := aes.NewCipher(q.key[:])
	if err != nil {
		panic("index: " + err.Error()) // impossible: the key has 32 bytes
	}
	c, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("index: " + err.Error()) // impossible: a block of AES has 16 bytes
	}
	return c
}

// trim removes the oldest files until the folder has room for slack.
func (x *Index) trim() error {
	x.looked.Add(1)
	entries, err := os.ReadDir(x.folder)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	size := int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() { // else another process removed it
			files = append(files, info)
			size += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		if size <= MaxSize-slack {
			break
		}
		size -= info.Size()
		_ = os.Remove(filepath.Join(x.folder, info.Name())) // another process may have
	}
	x.room.Store(slack)
	return nil
}
