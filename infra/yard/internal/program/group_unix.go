//go:build unix

package program

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// lookEvery is how often a group is asked whether it is gone: the system has no call that waits for one.
	lookEvery = 10 * time.Millisecond
	// reapWithin bounds the wait for what was killed. One that hangs in the kernel is left to it.
	reapWithin = time.Second
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

// awaitGroup waits until all that the program started has ended, and no longer than patience. The program itself has.
func awaitGroup(p *os.Process, patience time.Duration) {
	poll(patience, func() bool {
		reap(p)
		return errors.Is(signalGroup(p, 0), os.ErrProcessDone)
	})
}

// buryGroup takes what was killed off the table of processes, if it is this process's to do: the first one of a container
// inherits what the others leave behind.
func buryGroup(p *os.Process) { poll(reapWithin, func() bool { return reap(p) }) }

// reap takes leave of those of the group that have ended and are children of this process; none: no other child is in it.
func reap(p *os.Process) (none bool) {
	for {
		switch pid, err := syscall.Wait4(-p.Pid, nil, syscall.WNOHANG, nil); {
		case errors.Is(err, syscall.EINTR), err == nil && pid > 0:
		default:
			return err != nil
		}
	}
}

// poll asks until done, or until patience is over.
func poll(patience time.Duration, done func() bool) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for until := time.Now().Add(patience); !done() && time.Now().Before(until); {
		<-look.C
	}
}

func signalGroup(p *os.Process, signal syscall.Signal) error {
	err := syscall.Kill(-p.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
