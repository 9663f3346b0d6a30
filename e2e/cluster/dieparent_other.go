//go:build !linux

package cluster

import "syscall"

// dieWithParent has no equivalent outside Linux: there a killed test run may leave
// processes behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
