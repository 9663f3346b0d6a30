// Package redischild runs the redis-server found on this machine as a child
// process: the tables of the embedded stack.
//
// Owns: the child's life. It keeps nothing on disk, because everything in it can
// be rebuilt; it listens on a unix socket in the folder that it is given, so no one else
// reaches it; and it dies with this process (on Linux, however that ends).
//
// Never does: look into it.
//
// On failure: a child that cannot be started is an error of Run before Ready. One
// that ends later is started again, empty, after a pause.
package redischild

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/child"
)

// Binary is the program looked for in PATH.
const Binary = "redis-server"

const (
	answerWithin = 20 * time.Second
	askEvery     = 5 * time.Millisecond
	askTimeout   = time.Second
	restartPause = time.Second
	outputKept   = 1 << 10
)

// Find returns the path of redis-server, and whether there is one.
func Find() (string, bool) {
	path, err := exec.LookPath(Binary)
	return path, err == nil
}

// Child is a redis-server of this process's own. It is a part for lifecycle.Group.
type Child struct {
	binary string
	dir    string
	log    *slog.Logger
	ready  chan struct{}
	now    atomic.Pointer[running]
}

// New prepares a child whose socket is in dir. The path of a unix socket has at most 107 bytes.
func New(binary, dir string, log *slog.Logger) *Child {
	return &Child{binary: binary, dir: dir, log: log, ready: make(chan struct{})}
}

// URL is where it listens, for redis.ParseURL.
func (c *Child) URL() string { return "unix://" + c.socket() }

// Ready is closed when it answers.
func (c *Child) Ready() <-chan struct{} { return c.ready }

// PID is the process, 0 while none runs.
func (c *Child) PID() int {
	if p := c.now.Load(); p != nil && !p.Over() {
		return p.PID()
	}
	return 0
}

func (c *Child) socket() string { return filepath.Join(c.dir, "redis.sock") }

// Run keeps one running until ctx ends. It runs once.
func (c *Child) Run(ctx context.Context) error {
	for first := true; ; first = false {
		p, err := c.start(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			c.log.Error("redis-server could not be started again", "error", err)
		default:
			if first {
				close(c.ready)
			}
			select {
			case <-ctx.Done():
				p.Kill()
				return nil
			case <-p.Ended():
				c.log.Error("redis-server ended; starting an empty one", "output", p.output.String())
			}
		}
		if !backoff.Sleep(ctx, restartPause) {
			return nil
		}
	}
}

// start starts the process and waits for its first answer.
func (c *Child) start(ctx context.Context) (*running, error) {
	p := new(running)
	cmd := exec.Command(c.binary,
		"--port", "0", "--unixsocket", c.socket(), "--unixsocketperm", "700",
		"--save", "", "--appendonly", "no", "--dir", c.dir, "--daemonize", "no")
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	var err error
	if p.Process, err = child.Start(cmd); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	c.now.Store(p)
	if err := p.awaitAnswer(ctx, c.socket()); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// running is one life of the process.
type running struct {
	*child.Process
	output tail
}

func (p *running) awaitAnswer(ctx context.Context, socket string) error {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, DialTimeout: askTimeout, ReadTimeout: askTimeout, MaxRetries: -1})
	defer func() { _ = client.Close() }() // all that was asked is answered
	for deadline := time.Now().Add(answerWithin); ; {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.Ended():
			return fmt.Errorf("redis-server ended at once: %s", p.output.String())
		case <-time.After(askEvery):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server did not answer within %v: %w", answerWithin, err)
		}
	}
}

// tail keeps the end of what is written to it: why the child ended stands in its
// last lines. It is read only after the child has ended.
type tail struct{ kept []byte }

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if extra := len(t.kept) - outputKept; extra > 0 {
		t.kept = t.kept[:copy(t.kept, t.kept[extra:])]
	}
	return len(b), nil
}

// String returns what was kept.
func (t *tail) String() string { return string(bytes.TrimSpace(t.kept)) }
