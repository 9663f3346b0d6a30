// Package system has the task queues that are compared: each starts its servers in a new folder, and submits and
// handles tasks by its own Go library.
//
// Owns: how each system is installed, set and used, at both settings of durability.
//
// Never does: change a system's defaults beyond what Settings says. The intervals at which asynq and River ask for tasks
// are shortened, because their defaults are longer than what is measured.
//
// On failure: a system whose servers are not on this machine says what is missing, and is left out.
package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/child"
	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
)

// Sync is when accepted tasks are on disk.
type Sync string

// The settings of durability.
const (
	// Always syncs before the answer.
	Always Sync = "always"
	// EverySecond may lose what was accepted in the last second, if the power fails.
	EverySecond Sync = "1s"
)

// Syncs are both settings.
func Syncs() []Sync { return []Sync{Always, EverySecond} }

// System is a task queue.
type System interface {
	// Name is that of --only.
	Name() string
	// Missing says what this machine lacks; "" if nothing.
	Missing() string
	// Version is that of the library and of the servers.
	Version() string
	// Settings says how it is used, and what its settings of durability are.
	Settings() string
	// Open starts the servers, with data in a new folder, and connects the producer.
	Open(ctx context.Context, dir string, sync Sync) (load.Queue, error)
}

// All are the systems. The program `yard` runs Yardmaster, and the nats-server of bare JetStream.
func All(yard string) []System {
	return []System{yardmaster{yard}, jetStream{yard}, asynqueue{}, riverqueue{}}
}

// server is a running server of one process.
type server struct{ child *child.Child }

// outstanding is how many requests a library without requests of several tasks has under way.
const outstanding = 64

// each calls submit for every payload, some at once.
func each(ctx context.Context, payloads []string, atOnce int, submit func(ctx context.Context, payload string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, p := range payloads {
		group.Go(func() error { return submit(ctx, p) })
	}
	return group.Wait()
}

// freePort is a port that no one listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// inPath says that a program is missing, "" if it is there.
func inPath(name string) string {
	if _, err := exec.LookPath(name); err != nil {
		return "no " + name + " in PATH"
	}
	return ""
}

// printed is the first line that a command prints.
func printed(command string, args ...string) string {
	out, err := exec.Command(command, args...).Output()
	if err != nil {
		return unknown
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// opened closes a queue that could not be opened whole.
func opened(q load.Queue, err error) (load.Queue, error) {
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}
