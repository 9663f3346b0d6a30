package cluster

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
)

// Add adds a process of a service, perhaps of other binaries than the rest, and
// returns its number. It does not start it.
func (c *Cluster) Add(bin Binaries, s Service) int {
	c.tb.Helper()
	i := len(c.processes[s])
	c.processes[s] = append(c.processes[s], c.newNode(bin, s, i))
	return i
}

// AwaitRefusal waits until a process has ended by itself, with an error.
func (c *Cluster) AwaitRefusal(s Service, i int) {
	c.tb.Helper()
	if err := c.processes[s][i].awaitRefusal(readyWithin); err != nil {
		c.tb.Fatal(err)
	}
}

func (p *process) awaitRefusal(within time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.life.Ended():
	case <-time.After(within):
		return fmt.Errorf("%s goes on", p.name)
	}
	if status, ok := p.life.State().Sys().(syscall.WaitStatus); !ok || !status.Exited() || status.ExitStatus() == 0 {
		return fmt.Errorf("%s did not end with an error of its own: %v", p.name, p.life.State())
	}
	p.life.wanted = true
	return nil
}

// Yard runs the yard command of bin against the cluster, as a user, and returns what it printed.
func (c *Cluster) Yard(bin Binaries, u permissions.User, args ...string) (string, error) {
	login := append([]string{"--url", c.URL()}, c.yardLogin(u)...)
	out, err := exec.Command(bin.path("yard"), append(args, login...)...).CombinedOutput()
	return string(out), err
}
