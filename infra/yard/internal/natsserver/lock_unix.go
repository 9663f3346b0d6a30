//go:build unix

package natsserver

import (
	"os"
	"syscall"
)

// lockFile fails at once if another process has the lock. It goes with the file's
// handle, and so with the process, however that ends.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
