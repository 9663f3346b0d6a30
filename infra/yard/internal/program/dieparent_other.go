//go:build unix && !linux

package program

import "syscall"

// dieWithParent does nothing: only Linux can.
func dieWithParent(*syscall.SysProcAttr) {}
