// Package filelock has processes share files.
//
// Owns: a lock that is taken or refused, and a write that is whole or not at all. A lock belongs to the handle, and so ends
// with the process, however that ends. Never does: wait for a process that keeps a lock. On failure: ErrLocked if another handle has the lock. On a system or a
// file system without locks every call succeeds; Works tells of the system.
package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// ErrLocked means that another handle has the lock.
var ErrLocked = errors.New("another process has the lock")

// A child that this process starts has its handles for a moment, also those that are closed meanwhile. So a lock that was
// given up just now may still be held, for no longer than ChildStarts.
const (
	ChildStarts = 500 * time.Millisecond
	lookEvery   = 5 * time.Millisecond
)

// Take locks the named file, which it makes if there is none, until the handle is closed. It waits until ctx ends, and no longer than
// within.
func Take(ctx context.Context, name string, within time.Duration) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = Try(f)
	for errors.Is(err, ErrLocked) && backoff.Sleep(ctx, lookEvery) {
		err = Try(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Replace writes a file that only its owner reads, whole or not at all.
func Replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
