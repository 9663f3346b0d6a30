package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// prepareNATS prepares one server, or a cluster of them.
func (c *Cluster) prepareNATS() {
	c.tb.Helper()
	if c.shape.natsNodes > 1 {
		c.must(c.bin.add(natsServer))
	}
	routes := make([]string, c.shape.natsNodes)
	for i := range c.shape.natsNodes {
		c.processes[NATS] = append(c.processes[NATS], &node{addr: testkit.FreeAddr(c.tb)})
		routes[i] = testkit.FreeAddr(c.tb)
	}
	c.prepareSeal()
	for i, n := range c.processes[NATS] {
		name := fmt.Sprintf("nats-%d", i)
		data := filepath.Join(c.dir, name)
		if c.shape.natsData != nil {
			data = c.shape.natsData(i, data)
		}
		if c.shape.natsNodes > 1 {
			n.process = c.newProcess(name, c.bin.path("nats-server"), "--config", c.natsConfig(name, n.addr, data, i, routes))
			continue
		}
		_, port, err := net.SplitHostPort(n.addr)
		c.must(err)
		argv := []string{c.bin.path("yard"), "server", "nats", "--data-dir", data, "--port", port}
		if c.seal != nil {
			argv = append(argv, "--auth", c.seal.config())
		}
		n.process = c.newProcess(name, argv...)
	}
}

// natsConfig writes the settings of node i of a NATS cluster: like the single
// server it syncs to disk before each answer.
func (c *Cluster) natsConfig(name, addr, data string, i int, routes []string) string {
	c.tb.Helper()
	text := fmt.Sprintf(`server_name: %q
listen: %q
jetstream: { store_dir: %q, sync_interval: always }
cluster: { name: yard, listen: %q, routes: ["nats://%s"], ping_interval: 2s, ping_max: 2 }
`, name, addr, data, routes[i], strings.Join(routes, `", "nats://`))
	if c.seal != nil {
		below, err := filepath.Rel(c.dir, c.seal.config()) // as the server wants it
		c.must(err)
		text += fmt.Sprintf("include %q\n", below)
	}
	path := filepath.Join(c.dir, name+".conf")
	c.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// URL is where NATS clients connect; it stays the same forever.
func (c *Cluster) URL() string {
	urls := make([]string, c.Instances(NATS))
	for i, n := range c.processes[NATS] {
		urls[i] = "nats://" + n.addr
	}
	return strings.Join(urls, ",")
}

// StartNATS starts NATS on the data it had, and waits until every node takes
// clients and JetStream answers.
func (c *Cluster) StartNATS() {
	c.tb.Helper()
	for i := range c.processes[NATS] {
		c.Restart(NATS, i)
	}
	for i := range c.processes[NATS] {
		c.AwaitProcess(NATS, i)
	}
}

// AwaitReplicas waits until every stream has a leader and all its replicas hold what it does, so
// that the loss of any one node leaves the others whole.
func (c *Cluster) AwaitReplicas() {
	c.tb.Helper()
	js, err := jetstream.New(c.Inside())
	c.must(err)
	testkit.Eventually(c.tb, replicasWithin, func() error { return replicasCurrent(js) })
}

func replicasCurrent(js jetstream.JetStream) error {
	names, err := streamNames(js)
	if err != nil {
		return err
	}
	for _, name := range names {
		is, err := clusterOf(js, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if is == nil || is.Leader == "" {
			return fmt.Errorf("%s has no leader", name)
		}
		for _, r := range is.Replicas {
			if !r.Current || r.Offline {
				return fmt.Errorf("%s is behind at %s", name, r.Name)
			}
		}
	}
	return nil
}

func streamNames(js jetstream.JetStream) (names []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	list := js.StreamNames(ctx)
	for name := range list.Name() {
		names = append(names, name)
	}
	return names, list.Err()
}

// jetStreamAnswers asks a node for the account's state, which in a cluster takes a leader.
func jetStreamAnswers(url string, login []nats.Option) error {
	nc, err := nats.Connect(url, login...)
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

// clusterOf asks where a stream is. One that elects its leader does not answer.
func clusterOf(js jetstream.JetStream, name string) (*jetstream.ClusterInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo().Cluster, nil
}

// KillNATS kills every nats-server with SIGKILL.
func (c *Cluster) KillNATS() {
	c.tb.Helper()
	for i := range c.processes[NATS] {
		c.Kill(NATS, i)
	}
}
