package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/child"
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
	*child.Process
	// wanted tells that the test ended it.
	wanted bool
}

// start starts it; it must not run.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != nil && !p.life.Over() {
		return fmt.Errorf("%s runs already", p.name)
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the child has its own copy
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), p.env...)
	started, err := child.Start(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.life = &life{Process: started}
	return nil
}

// signal ends the current life with sig and waits for it. It returns how long that
// took; a process that is gone already is an error, unless force is set.
func (p *process) signal(sig syscall.Signal, force bool) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.life
	if l == nil || l.Over() && force {
		return 0, nil
	}
	if l.Over() && !l.wanted {
		return 0, fmt.Errorf("%s ended by itself: %v", p.name, l.State())
	}
	l.wanted = true
	began := time.Now()
	_ = l.Signal(sig) // an error means that it has just ended
	select {
	case <-l.Ended():
	case <-time.After(stopWithin):
		l.Kill()
		return 0, fmt.Errorf("%s did not end within %v of %v", p.name, stopWithin, sig)
	}
	if sig == syscall.SIGTERM && !l.State().Success() {
		return 0, fmt.Errorf("%s ended uncleanly after %v: %v", p.name, sig, l.State())
	}
	return time.Since(began), nil
}

// send sends a signal that does not end the process.
func (p *process) send(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == nil || p.life.Over() {
		return fmt.Errorf("send %v: %s does not run", sig, p.name)
	}
	return p.life.Signal(sig)
}

// runs tells whether it does.
func (p *process) runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life != nil && !p.life.Over()
}

// failed tells why the process is not running although it should be.
func (p *process) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.life; l != nil && l.Over() && !l.wanted {
		return fmt.Errorf("%s ended by itself: %v", p.name, l.State())
	}
	return nil
}
