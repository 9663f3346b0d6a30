package provision_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// runCluster starts a cluster of three servers in the test process, and connects to any of them when JetStream answers at
// each. Stop and Restart are of one server.
func runCluster(t *testing.T) ([]*natskit.Server, jetstream.JetStream) {
	t.Helper()
	testkit.Slow(t, "starts a cluster of NATS")
	var ports [3]int
	var routes []*url.URL
	for i := range ports {
		ports[i] = testkit.FreePort(t)
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("127.0.0.1:%d", ports[i])})
	}
	var nodes []*natskit.Server
	var urls []string
	for i, port := range ports {
		node := natskit.Run(t, func(o *server.Options) {
			o.ServerName = fmt.Sprintf("testkit-%d", i)
			o.Cluster = server.ClusterOpts{Name: "testkit", Host: "127.0.0.1", Port: port}
			o.Routes = routes
			o.SyncAlways = false // three stores share one disk, and the test is not about it
		})
		nodes, urls = append(nodes, node), append(urls, node.URL)
	}
	for _, node := range nodes {
		js := connect(t, node)
		testkit.Eventually(t, within, func() error {
			_, err := js.AccountInfo(t.Context())
			return err
		})
	}
	anyOf := func(o *nats.Options) error {
		o.Servers = urls
		return nil
	}
	js, err := jetstream.New(nodes[0].Connect(t, anyOf))
	testkit.NoError(t, err)
	return nodes, js
}
