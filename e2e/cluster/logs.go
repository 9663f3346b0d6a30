package cluster

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// logLinesMax is how many of the last lines of each log a failed test prints.
const logLinesMax = 60

// Log returns what a process has written so far, in all its lives.
func (c *Cluster) Log(s Service, i int) string {
	c.tb.Helper()
	b, err := os.ReadFile(c.processes[s][i].log)
	c.must(err)
	return string(b)
}

// AwaitLog waits until a process has written text.
func (c *Cluster) AwaitLog(s Service, i int, text string, within time.Duration) {
	c.tb.Helper()
	testkit.Eventually(c.tb, within, func() error {
		if !strings.Contains(c.Log(s, i), text) {
			return fmt.Errorf("%s-%d has not logged %q", s, i, text)
		}
		return nil
	})
}

// printLogs prints the ends of all logs.
func (c *Cluster) printLogs() {
	paths := []string{c.nats.log}
	for _, s := range Services() {
		for _, n := range c.processes[s] {
			paths = append(paths, n.log)
		}
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			c.tb.Logf("%v", err)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		left := max(len(lines)-logLinesMax, 0)
		c.tb.Logf("%s, without its first %d lines:\n%s", path, left, strings.Join(lines[left:], "\n"))
	}
}
