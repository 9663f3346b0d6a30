// Package scratch makes folders that last as long as the process.
//
// Owns: one folder below the system's folder for temporary files, with a lock on it. New also removes the folders of
// processes that were killed: no one has their locks any more. Never does: keep anything. On failure: an error of New; a
// folder of another process that cannot be removed stays.
package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/filelock"
)

const (
	pattern  = "yardmaster-*"
	lockFile = "lock"
)

// Dir is a folder.
type Dir struct {
	Path string
	lock *os.File
}

// New makes a folder. The caller removes it.
func New() (*Dir, error) {
	removeAbandoned()
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return nil, fmt.Errorf("folder for temporary files: %w", err)
	}
	lock, err := filelock.Take(context.Background(), filepath.Join(dir, lockFile), filelock.ChildStarts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("folder for temporary files: %w", err), os.RemoveAll(dir))
	}
	return &Dir{dir, lock}, nil
}

// Remove removes the folder and what is in it.
func (d *Dir) Remove() error { return errors.Join(os.RemoveAll(d.Path), d.lock.Close()) }

// removeAbandoned removes the folders whose lock is free. A folder without a lock file is about to get one, or is not ours.
func removeAbandoned() {
	if !filelock.Works {
		return
	}
	locks, err := filepath.Glob(filepath.Join(os.TempDir(), pattern, lockFile))
	if err != nil {
		return // the pattern is a constant
	}
	for _, name := range locks {
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue // another user's
		}
		if filelock.Try(lock) == nil {
			_ = os.RemoveAll(filepath.Dir(name)) // what stays is tried again by the next process
		}
		_ = lock.Close() // nothing was written
	}
}
