package program

import "syscall"

// dieWithParent asks the kernel to kill the program when the worker dies without stopping it: the
// engine gives its task to another worker then.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
