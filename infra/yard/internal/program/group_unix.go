//go:build unix

package program

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

const (
	// lookEvery is how often a group is asked whether it is gone: the system has no call that waits for one.
	lookEvery = 10 * time.Millisecond
	// reapWithin bounds the wait for what was killed. One that hangs in the kernel is left to it.
	reapWithin = time.Second
)

const (
	// startScript begins the program once the guard stands: it reads a line from descriptor 3. If the worker dies before, there is none.
	startScript = `read -r line <&3 && exec 3<&- && exec sh -c "$0"`
	// guardScript waits for the end of its input, and then kills the group that it is given, unless it reads a line before that.
	guardScript = `trap '' HUP INT QUIT TERM; read -r line || kill -s KILL -- "-$0"`
)

// command is a command of the shell in a process group of its own, so that a terminal's Ctrl-C is the worker's alone,
// and what the program starts can be stopped with it.
func command(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", startScript, text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// start starts a program with a guard: a process that kills the program's group if this process dies, however it dies.
// The caller calls release once nothing of the group is left.
func start(cmd *exec.Cmd) (release func(), err error) {
	begin, line, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = line.Close() }()
	cmd.ExtraFiles = []*os.File{begin}
	err = cmd.Start()
	_ = begin.Close() // the program has its own
	if err != nil {
		return nil, err
	}
	guard := exec.Command("sh", "-c", guardScript, strconv.Itoa(cmd.Process.Pid))
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's signals are not for it
	alive, err := guard.StdinPipe()                        // the kernel closes this end when this process dies
	if err == nil {
		err = guard.Start()
	}
	if err == nil {
		_, err = line.WriteString("begin\n")
	}
	if err != nil {
		killGroup(cmd.Process)
		_ = cmd.Wait() // it has not begun
		return nil, err
	}
	return func() {
		_, _ = alive.Write([]byte("done\n")) // an error means that the guard was killed by someone else
		_ = guard.Wait()
	}, nil
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

// reapGroup collects what was killed, if that is for this process to do: the first process of a container inherits what the
// others leave behind.
func reapGroup(p *os.Process) { poll(reapWithin, func() bool { return reap(p) }) }

// reap collects those of the group that have ended and are children of this process; none: no other child is in it.
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
