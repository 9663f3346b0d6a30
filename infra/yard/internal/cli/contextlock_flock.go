//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cli

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks f, or fails at once: errContextsLocked if another handle has the lock.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return errContextsLocked
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
		return nil // a file system without locks: as on systems without them
	}
	return err
}
