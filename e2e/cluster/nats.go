package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// natsNode is one nats-server.
type natsNode struct {
	*process
	addr string
}

// prepareNATS prepares one server, or a cluster of them.
func (c *Cluster) prepareNATS() {
	c.tb.Helper()
	if c.shape.natsNodes > 1 {
		c.must(c.bin.add(stripped, natsServer))
	}
	routes := make([]string, c.shape.natsNodes)
	for i := range c.shape.natsNodes {
		c.nats = append(c.nats, &natsNode{addr: c.bin.ports.free(c.tb)})
		routes[i] = c.bin.ports.free(c.tb)
	}
	for i, n := range c.nats {
		name := fmt.Sprintf("nats-%d", i)
		data := filepath.Join(c.dir, name)
		if len(c.nats) > 1 {
			n.process = c.newProcess(name, c.bin.path("nats-server"), "--config", c.natsConfig(name, n.addr, data, i, routes))
			continue
		}
		_, port, err := net.SplitHostPort(n.addr)
		c.must(err)
		n.process = c.newProcess(name, c.bin.path("yard"), "server", "nats", "--data-dir", data, "--port", port)
	}
}

// natsConfig writes the settings of node i of a NATS cluster: like the single
// server it syncs to disk before each answer.
func (c *Cluster) natsConfig(name, addr, data string, i int, routes []string) string {
	c.tb.Helper()
	text := fmt.Sprintf(`server_name: %q
listen: %q
jetstream: { store_dir: %q, sync_interval: always }
cluster: { name: yard, listen: %q, routes: ["nats://%s"] }
`, name, addr, data, routes[i], strings.Join(routes, `", "nats://`))
	path := filepath.Join(c.dir, name+".conf")
	c.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// URL is where NATS clients connect; it stays the same for ever.
func (c *Cluster) URL() string {
	urls := make([]string, len(c.nats))
	for i, n := range c.nats {
		urls[i] = "nats://" + n.addr
	}
	return strings.Join(urls, ",")
}

// NATSNodes is how many nats-servers there are; their names are nats-0, nats-1 …
func (c *Cluster) NATSNodes() int { return len(c.nats) }

// StartNATS starts NATS on the data it had, and waits until every node takes
// clients and JetStream answers.
func (c *Cluster) StartNATS() {
	c.tb.Helper()
	for _, n := range c.nats {
		c.must(n.start())
	}
	for _, n := range c.nats {
		testkit.Eventually(c.tb, readyWithin, func() error {
			if err := n.failed(); err != nil {
				c.tb.Fatal(err)
			}
			return jetStreamAnswers("nats://" + n.addr)
		})
	}
}

// jetStreamAnswers asks a node for the account's state, which in a cluster takes a leader.
func jetStreamAnswers(url string) error {
	nc, err := nats.Connect(url, nats.Timeout(askTimeout))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	_, err = js.AccountInfo(ctx)
	return err
}

// KillNATS kills every nats-server with SIGKILL.
func (c *Cluster) KillNATS() {
	c.tb.Helper()
	for _, n := range c.nats {
		_, err := n.signal(syscall.SIGKILL, false)
		c.must(err)
	}
}

// PauseNATS stops one nats-server with SIGSTOP until ResumeNATS.
func (c *Cluster) PauseNATS(i int) {
	c.tb.Helper()
	c.must(c.nats[i].send(syscall.SIGSTOP))
}

// ResumeNATS lets a paused nats-server go on.
func (c *Cluster) ResumeNATS(i int) {
	c.tb.Helper()
	c.must(c.nats[i].send(syscall.SIGCONT))
}
