package cluster

import (
	"fmt"
	"os"
	"path/filepath"
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

// Keep writes a file beside the logs, which stay if the test fails, and returns its path.
func (c *Cluster) Keep(name, text string) string {
	c.tb.Helper()
	path := filepath.Join(c.logs, name)
	c.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// printLogs prints the ends of all logs.
func (c *Cluster) printLogs() {
	c.tb.Logf("the logs stay in %s", c.logs)
	for _, p := range c.all() {
		b, err := os.ReadFile(p.log)
		if err != nil {
			c.tb.Logf("%v", err)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		left := max(len(lines)-logLinesMax, 0)
		c.tb.Logf("%s, without its first %d lines:\n%s", p.log, left, strings.Join(lines[left:], "\n"))
	}
}
