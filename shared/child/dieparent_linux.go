package child

import "syscall"

// dieWithParent asks the kernel to kill the child when the thread that started it ends. A process group of its own keeps a
// terminal's Ctrl-C from the child: its parent stops it, after what needs it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
