// Package filelock has processes share files.
//
// Owns: a lock that is taken or refused at once, and a write that is whole or not at all. A lock belongs to the handle, and so ends
// with the process, however that ends. Never does: wait. On failure: ErrLocked if another handle has the lock. On a system or a
// file system without locks every call succeeds; Works tells of the system.
package filelock

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrLocked means that another handle has the lock.
var ErrLocked = errors.New("another process has the lock")

// Take locks the named file, which it makes if there is none, until the handle is closed.
func Take(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := Try(f); err != nil {
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
