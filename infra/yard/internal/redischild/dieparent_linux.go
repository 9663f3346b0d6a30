package redischild

import "syscall"

// dieWithParent asks the kernel to kill the child when the thread that started it
// ends, so that a killed stack leaves no server behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
