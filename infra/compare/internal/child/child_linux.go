// Package child runs servers as child processes and reads the CPU time that they use.
//
// Owns: the start of a process in a process group of its own, so that ctrl-C in a terminal reaches this program alone;
// its stop, by the signal that it wants and then by force; and the CPU time of the process with all its descendants.
//
// Never does: know which server it is. It runs on Linux only, since it reads /proc.
//
// On failure: an error has the last lines that the process wrote. If this program is killed, the kernel stops the
// processes.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyWithin bounds the start of a server.
	readyWithin = 30 * time.Second
	// stopWithin bounds its stop, before it is killed.
	stopWithin = 20 * time.Second
	// between two checks whether a server is ready.
	between = 20 * time.Millisecond
	// outputMax is how much of the output is kept, bytes.
	outputMax = 4096
)

// Config of a process.
type Config struct {
	// Command is the program with its arguments.
	Command []string
	// Dir is the folder that it runs in.
	Dir string
	// User that it runs as. Default: the user of this program.
	User *syscall.Credential
	// Stop is the signal that ends it. Default: SIGTERM.
	Stop syscall.Signal
}

// Child is a running process.
type Child struct {
	cmd    *exec.Cmd
	stop   syscall.Signal
	output output
	ended  chan struct{}
	err    error // set before ended is closed
}

// Start starts a process.
func Start(cfg Config) (*Child, error) {
	c := &Child{cmd: exec.Command(cfg.Command[0], cfg.Command[1:]...), stop: cfg.Stop, ended: make(chan struct{})}
	if c.stop == 0 {
		c.stop = syscall.SIGTERM
	}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = cfg.Dir, &c.output, &c.output
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: c.stop, Credential: cfg.User}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Command[0], err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// FirstLine returns the first line that the process writes, which it does when it is ready.
func (c *Child) FirstLine(ctx context.Context) (line string, err error) {
	err = c.Await(ctx, func() error {
		var found bool
		if line, _, found = strings.Cut(c.output.String(), "\n"); !found {
			return errors.New("it wrote no line")
		}
		return nil
	})
	return line, err
}

// Await returns when ready returns no error. It fails if the process ends, or takes too long.
func (c *Child) Await(ctx context.Context, ready func() error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(between):
		case <-c.ended:
			return fmt.Errorf("%s ended: %w: %s", c.cmd.Path, errors.Join(c.err, err), c.output.String())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %s", c.cmd.Path, errors.Join(ctx.Err(), err), c.output.String())
		}
	}
}

// Stop ends the process and all its descendants in its group.
func (c *Child) Stop() error {
	_ = c.cmd.Process.Signal(c.stop) // a process that has ended needs no signal
	select {
	case <-c.ended:
		return nil
	case <-time.After(stopWithin):
	}
	err := syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	<-c.ended
	return errors.Join(fmt.Errorf("%s did not stop within %v and was killed", c.cmd.Path, stopWithin), err)
}

// CPU is the CPU time of the process, its descendants, and those of them that have ended.
func (c *Child) CPU() time.Duration { return cpuOfTree(c.cmd.Process.Pid) }

// output keeps the beginning of what a process writes.
type output struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p[:min(len(p), outputMax-len(o.text))]...)
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// Own is the CPU time of this program.
func Own() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// MeasureSync writes a block to a file in dir and syncs it, n times, and returns how long each sync took.
func MeasureSync(dir string, n int) (took []time.Duration, err error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return nil, fmt.Errorf("measure a sync: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, 4096)
	for range n {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, fmt.Errorf("measure a sync: %w", err)
		}
		if err := f.Sync(); err != nil {
			return nil, fmt.Errorf("measure a sync: %w", err)
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
