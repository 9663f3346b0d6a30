//go:build !linux

package child

import "syscall"

// dieWithParent has no equivalent outside Linux.
func dieWithParent() *syscall.SysProcAttr { return nil }
