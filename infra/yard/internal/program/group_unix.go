//go:build unix

package program

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives the program a process group, so that a terminal's Ctrl-C is the worker's alone,
// and what the program starts can be stopped with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// terminate asks the program and what it started to end.
func terminate(p *os.Process) error { return signalGroup(p, syscall.SIGTERM) }

// killGroup ends what is left of the program and what it started.
func killGroup(p *os.Process) {
	_ = signalGroup(p, syscall.SIGKILL) // no one left is the usual case
}

func signalGroup(p *os.Process, signal syscall.Signal) error {
	err := syscall.Kill(-p.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
