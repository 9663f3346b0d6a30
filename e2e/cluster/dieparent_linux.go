package cluster

import "syscall"

// dieWithParent asks the kernel to kill the child when the thread that started it
// ends, so that a killed test run leaves no processes behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
