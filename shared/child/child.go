// Package child runs programs that end with this process.
//
// Owns: the life of one program, from its start to its end. Never does: start one again, or read what it prints.
//
// On failure: on Linux the kernel kills the program when this process dies, however it dies. Elsewhere it may stay behind.
package child

import (
	"os"
	"os/exec"
	"runtime"
)

// Process is a program that was started. It is safe for concurrent use.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts cmd. The kernel binds the life of a child to the thread that started it, so one thread is kept for as long as
// the child lives.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = dieWithParent()
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // State tells how it ended
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended, and all that it printed was read.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Over reports whether the process has ended.
func (p *Process) Over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// State says how the process ended, once Ended is closed.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Signal sends a signal. It fails if the process has ended.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the process at once, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended already
	<-p.ended
}
