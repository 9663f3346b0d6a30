package process

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/settings"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Config is the settings that every service has. A service's own stand beside
// them, so their names must differ.
type Config struct {
	// NATS is where the server is and how to log in. Default: this machine, port
	// 4222, without authentication.
	NATS natsrpc.ConnConfig `koanf:"nats"`
	// Node names this process among the live members. [A-Za-z0-9_-]{1,64}. Default:
	// host name, process id and four random characters. Two live processes of one
	// name would take each other's place and leave partitions unserved.
	Node string `koanf:"node" usage:"name of this process among the members; default host, pid and a random part"`
	// InboxPrefixes are the subjects below which answers are sent, each with its last dot.
	// Default _INBOX. only. The same in all services. A request with another reply
	// subject is dropped: its answer would be published with the engine's rights,
	// wherever the asker wants. With _INBOX.t.{domain}. each domain has its own, operators
	// have _INBOX.o. and services _INBOX.s. (topology.NewInboxes). Too narrow shuts out
	// clients with an inbox prefix of their own.
	InboxPrefixes []string `koanf:"inbox_prefixes" usage:"reply subjects must begin with one of these; {domain} in one separates the domains"`
	// HTTP is the address of /livez, /readyz and /metrics. Empty = off: then health
	// is served over NATS only. Port 0 takes a free one, which is logged.
	HTTP string `koanf:"http" usage:"address of /livez, /readyz and /metrics; empty = off"`
	// Log says what is logged and how. It goes to standard error.
	Log telemetry.LogConfig `koanf:"log"`
	// Clock says how right this node's clock must be.
	Clock Clock `koanf:"clock"`
	// Provision says how streams and buckets come to be.
	Provision Provision `koanf:"provision"`
	// HistoryPartitions is P, 1..1024. Default 0 = what the cluster was created with,
	// and 4 where this process creates it. A service refuses to start on a cluster
	// that was created with another number.
	HistoryPartitions int `koanf:"history_partitions" usage:"history partitions of the cluster; 0 = as it was created, else 4"`
	// MatchingShards is M, under the same rules.
	MatchingShards int `koanf:"matching_shards" usage:"matching shards of the cluster; 0 = as it was created, else 4"`
	// StopTimeout is how long each part may take to stop after SIGTERM. Default
	// 20 s. Too short cuts off what is under way, too long and the platform kills
	// the process before it has handed over.
	StopTimeout time.Duration `koanf:"stop_timeout" usage:"how long each part may take to stop"`
}

// Provision says who creates the streams and buckets.
type Provision struct {
	// Enabled makes this process create what is missing and correct what differs.
	// Default true. Switched off, the process waits until somebody else has created
	// the cluster, for accounts that may not manage streams.
	Enabled bool `koanf:"enabled" usage:"create and correct streams and buckets at the start"`
	// Replicas of what is stored in files, 1 or 3. Default 1. With 1, the loss of a
	// NATS node's disk loses accepted tasks.
	Replicas int `koanf:"replicas" usage:"replicas of streams and buckets: 1 or 3"`
	// Standard is what a cluster is created with where no one has a wish. Default:
	// topology.DefaultPartitioning.
	Standard topology.Partitioning `koanf:"-"`
}

// DefaultConfig is the defaults given at the fields, with the service's own
// address for health.
func DefaultConfig(http string) Config {
	return Config{
		NATS: natsrpc.DefaultConnConfig(), HTTP: http,
		InboxPrefixes: []string{topology.InboxPrefix},
		Log:           telemetry.LogConfig{Level: "info", Format: "text"},
		Clock:         Clock{SkewMax: clock.SkewMaxDefault},
		Provision:     Provision{Enabled: true, Replicas: 1},
		StopTimeout:   lifecycle.DrainTimeoutDefault,
	}
}

// StopTimeoutMax bounds StopTimeout.
const StopTimeoutMax = 10 * time.Minute

// Validate lists what is wrong with c.
func (c Config) Validate() []settings.Problem {
	var all []settings.Problem
	check := func(ok bool, path, format string, args ...any) {
		if !ok {
			all = append(all, settings.Problem{Path: path, What: fmt.Sprintf(format, args...)})
		}
	}
	check(c.Node == "" || ids.CheckName(c.Node) == nil, "node", "want 1 to 64 of A-Z a-z 0-9 _ -, got %q", c.Node)
	_, err := topology.NewInboxes(c.InboxPrefixes)
	check(err == nil, "inbox_prefixes", "%v", err)
	if c.HTTP != "" {
		_, _, err := net.SplitHostPort(c.HTTP)
		check(err == nil, "http", `want an address such as ":8080" or nothing, got %q`, c.HTTP)
	}
	for path, n := range map[string]int{"history_partitions": c.HistoryPartitions, "matching_shards": c.MatchingShards} {
		check(n >= 0 && n <= topology.PartitionsMax, path, "want 0 to %d, got %d", topology.PartitionsMax, n)
	}
	check(c.Provision.Replicas == 1 || c.Provision.Replicas == 3, "provision.replicas", "want 1 or 3, got %d", c.Provision.Replicas)
	check(c.Clock.SkewMax == 0 || c.Clock.SkewMax >= skewMaxMin && c.Clock.SkewMax <= skewMaxMax, "clock.skew_max",
		"want 0 or %v to %v, got %v", skewMaxMin, skewMaxMax, c.Clock.SkewMax)
	check(c.StopTimeout >= time.Millisecond && c.StopTimeout <= StopTimeoutMax, "stop_timeout", "want 1ms to %v, got %v", StopTimeoutMax, c.StopTimeout)
	return all
}

// common makes every struct that embeds Config, and no other, a Settings.
func (c Config) common() Config { return c }

// Limits of a node's name: what fits into a NATS subject token and is readable.
const (
	hostBytesMax  = 40
	nodeSaltBytes = 4
)

// NodeName makes a name that no other live process has: host name, process id,
// and a random part for machines that share both, as containers do.
func NodeName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "node"
	}
	host = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		default:
			return '-'
		}
	}, host)
	if len(host) > hostBytesMax {
		host = host[:hostBytesMax]
	}
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + strings.ToLower(rand.Text()[:nodeSaltBytes])
}
