package redischild

import "syscall"

// dieWithParent asks the kernel to kill the child when the thread that started it
// ends, so that a killed stack leaves no server behind. A process group of its own
// keeps a terminal's Ctrl-C from it: the stack stops it, after the services.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
