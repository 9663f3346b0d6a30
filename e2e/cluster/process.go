package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// stopWithin bounds the end of a process that was asked to stop. It is longer than
// a service's own limit (20 s).
const stopWithin = 40 * time.Second

// process is one that can be started again and again; all its lives write to one
// log. Its methods may be called by several goroutines.
type process struct {
	name string
	log  string // path
	argv []string
	env  []string // besides the test's own

	mu   sync.Mutex
	life *life // the last one; nil before the first start
}

// life is one run of a process.
type life struct {
	cmd *exec.Cmd
	// gone is closed when it has ended.
	gone chan struct{}
	// state is set before gone is closed.
	state *os.ProcessState
	// wanted tells that the test ended it.
	wanted bool
}

// start starts it; it must not run. The kernel binds the child's life to the thread
// that started it, so one thread is kept for as long as the child lives.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != nil && !p.life.over() {
		return fmt.Errorf("%s runs already", p.name)
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	l := &life{cmd: exec.Command(p.argv[0], p.argv[1:]...), gone: make(chan struct{})}
	l.cmd.Stdout, l.cmd.Stderr = out, out
	l.cmd.Env = append(os.Environ(), p.env...)
	l.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := l.cmd.Start()
		_ = out.Close() // the child has its own copy
		started <- err
		if err == nil {
			_ = l.cmd.Wait() // the state tells it all
			l.state = l.cmd.ProcessState
		}
		close(l.gone)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.life = l
	return nil
}

// signal ends the current life with sig and waits for it. It returns how long that
// took; a process that is gone already is an error, unless force is set.
func (p *process) signal(sig syscall.Signal, force bool) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.life
	if l == nil || l.over() && force {
		return 0, nil
	}
	if l.over() && !l.wanted {
		return 0, fmt.Errorf("%s ended by itself: %v", p.name, l.state)
	}
	l.wanted = true
	began := time.Now()
	_ = l.cmd.Process.Signal(sig) // an error means that it has just ended
	select {
	case <-l.gone:
	case <-time.After(stopWithin):
		_ = l.cmd.Process.Kill() // as above
		<-l.gone
		return 0, fmt.Errorf("%s did not end within %v of %v", p.name, stopWithin, sig)
	}
	if sig == syscall.SIGTERM && !l.state.Success() {
		return 0, fmt.Errorf("%s ended uncleanly after %v: %v", p.name, sig, l.state)
	}
	return time.Since(began), nil
}

// send sends a signal that does not end the process.
func (p *process) send(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == nil || p.life.over() {
		return fmt.Errorf("send %v: %s does not run", sig, p.name)
	}
	return p.life.cmd.Process.Signal(sig)
}

// runs tells whether it does.
func (p *process) runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life != nil && !p.life.over()
}

// failed tells why the process is not running although it should be.
func (p *process) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.life; l != nil && l.over() && !l.wanted {
		return fmt.Errorf("%s ended by itself: %v", p.name, l.state)
	}
	return nil
}

func (l *life) over() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}
