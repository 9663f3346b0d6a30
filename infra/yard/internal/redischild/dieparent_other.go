//go:build !linux

package redischild

import "syscall"

// dieWithParent has no equivalent outside Linux: there a killed stack may leave its
// redis-server behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
