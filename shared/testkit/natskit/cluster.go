package natskit

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// RunCluster starts a cluster of n servers in the test process and returns when JetStream
// answers at each. Stop and Restart are of one server. A quick run leaves the test out.
func RunCluster(tb testing.TB, n int) []*Server {
	tb.Helper()
	testkit.Slow(tb, "starts a cluster of NATS")
	ports, routes := make([]int, n), make([]*url.URL, n)
	for i := range n {
		port, err := testkit.FreePort()
		if err != nil {
			tb.Fatal(err)
		}
		ports[i], routes[i] = port, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	}
	nodes := make([]*Server, n)
	for i := range n {
		nodes[i] = Run(tb, func(o *server.Options) {
			o.ServerName = fmt.Sprintf("testkit-%d", i)
			o.Cluster = server.ClusterOpts{Name: "testkit", Host: "127.0.0.1", Port: ports[i]}
			o.Routes = routes
			o.SyncAlways = false // three stores share one disk, and the test is not about it
		})
	}
	for _, node := range nodes {
		node.awaitJetStream(tb)
	}
	return nodes
}

// awaitJetStream waits until a server of a cluster knows a leader.
func (n *Server) awaitJetStream(tb testing.TB) {
	tb.Helper()
	js, err := jetstream.New(n.Connect(tb))
	if err != nil {
		tb.Fatal(err)
	}
	testkit.Eventually(tb, readyWithin, func() error {
		_, err := js.AccountInfo(tb.Context())
		return err
	})
}

// ConnectAll returns a connection to any of several servers, like Connect.
func ConnectAll(tb testing.TB, nodes []*Server) *nats.Conn {
	tb.Helper()
	urls := make([]string, len(nodes))
	for i, n := range nodes {
		urls[i] = n.URL
	}
	return connect(tb, strings.Join(urls, ","))
}
