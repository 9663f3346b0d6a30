//go:build !linux

package testkit

import "syscall"

// dieWithParent has no equivalent outside Linux: there a killed test run may leave
// its servers behind.
func dieWithParent() *syscall.SysProcAttr {
	return nil
}
