// Package filelock locks files between processes.
//
// Owns: one call that locks or fails at once. A lock belongs to the handle, and so ends with the process, however that
// ends. Never does: wait, or write to the file. On failure: ErrLocked if another handle has the lock. On a system or a
// file system without locks every call succeeds; Works tells of the system.
package filelock

import "errors"

// ErrLocked means that another handle has the lock.
var ErrLocked = errors.New("another process has the lock")
