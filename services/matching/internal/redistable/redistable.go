// Package redistable is the triggering tables in Redis, shared by the matching
// processes of a cluster.
//
// Owns: the scripts, and how tables lie in Redis (contracts/topology spells the
// keys). Each script names all its keys, and all keys of one call carry the hash
// tag of its domain, so that it runs on Redis Cluster as on a single server. It needs
// Redis 6.2 or later.
//
// Never does: repeat a call, except one that the server refused because it does not know the
// script. A call that failed may have been carried out.
//
// On failure: an error of the client per call. An entry that a run of the server wrote is void
// under another run (its run id): after a restart, from whatever snapshot, or on a replica
// that was promoted, the triggers' epoch is lost and no limit has an entry. A Redis that
// forgets a part of its keys breaks limits: run it with noeviction. The tables can be rebuilt
// in seconds.
package redistable

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

//go:embed scripts/*.lua
var sources embed.FS

// Tables is one shard's view of the tables in Redis. It is safe for concurrent use.
type Tables struct {
	client redis.UniversalClient
	shard  int
	called Called
	// nodes are the addresses of the nodes of a cluster by domains, as far as they were met.
	nodes sync.Map

	call, open, clear, count, slots script
}

// What Redis is asked for; the first ones are the names of scripts.
const (
	opCall, opOpen, opClear, opCount, opSlots = "call", "open", "clear", "count", "slots"

	opHeads, opDrop = "heads", "drop"
)

// Operations are all that Called receives.
func Operations() []string {
	return []string{opCall, opOpen, opClear, opCount, opSlots, opHeads, opDrop}
}

// Called receives every round trip, failed ones included: what was asked for, one of Operations, and how
// long it took.
type Called func(operation string, took time.Duration)

// New returns the tables of one shard. Called may be nil. The caller closes the client.
func New(client redis.UniversalClient, shard int, called Called) *Tables {
	if called == nil {
		called = func(string, time.Duration) {}
	}
	return &Tables{
		client: client, shard: shard, called: called,
		call: load(opCall, "call_take", "call_end"), open: load(opOpen), clear: load(opClear), count: load(opCount), slots: load(opSlots),
	}
}

// script is the source of a script and the name by which the server knows it.
type script struct{ name, source, sha string }

// load makes a script of its parts.
func load(name string, more ...string) script {
	var all []byte
	for _, part := range append([]string{name}, more...) {
		source, err := sources.ReadFile("scripts/" + part + ".lua")
		if err != nil {
			panic("redistable: " + err.Error()) // embedded: cannot be absent
		}
		all = append(all, source...)
	}
	return script{name, string(all), redis.NewScript(string(all)).Hash()}
}

// request is one call of a script.
type request struct {
	keys []string
	args []any
}

// run makes requests of one script to one node in one round trip, and in one more where
// the node does not know the script. Each has its own outcome.
func (t *Tables) run(ctx context.Context, node redis.UniversalClient, s script, requests []request) []*redis.Cmd {
	out := make([]*redis.Cmd, len(requests))
	pipe := node.Pipeline()
	for i, r := range requests {
		out[i] = pipe.EvalSha(ctx, s.sha, r.keys, r.args...)
	}
	_, _ = t.exec(ctx, s.name, pipe) // each command has its own error
	unknown := func(cmd *redis.Cmd) bool { return redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") }
	again := node.Pipeline()
	for i, r := range requests {
		if unknown(out[i]) {
			if again.Len() == 0 {
				again.ScriptLoad(ctx, s.source)
			}
			out[i] = again.EvalSha(ctx, s.sha, r.keys, r.args...)
		}
	}
	if again.Len() > 0 {
		_, _ = t.exec(ctx, s.name, again)
	}
	for _, cmd := range out {
		t.failed(ctx, cmd.Err())
	}
	return out
}

// exec makes one round trip.
func (t *Tables) exec(ctx context.Context, operation string, pipe redis.Pipeliner) ([]redis.Cmder, error) {
	began := time.Now()
	defer func() { t.called(operation, time.Since(began)) }()
	return pipe.Exec(ctx)
}

// Group implements tables.Tables. It is the node of a cluster, empty for a domain that was not used yet.
func (t *Tables) Group(domain string) string {
	node, _ := t.nodes.Load(domain)
	addr, _ := node.(string)
	return addr
}

// node is the server of a domain's keys. A call of its client goes to that server or
// fails: the client of a whole cluster would repeat what timed out.
func (t *Tables) node(ctx context.Context, domain string) (redis.UniversalClient, error) {
	cluster, ok := t.client.(*redis.ClusterClient)
	if !ok {
		return t.client, nil
	}
	node, err := cluster.MasterForKey(ctx, topology.EpochKey(domain, t.shard))
	if err != nil {
		return nil, fmt.Errorf("find the node of %s: %w", domain, err)
	}
	t.nodes.Store(domain, node.Options().Addr)
	return node, nil
}

// failed has the map of a cluster loaded again where an error says that it may be wrong.
func (t *Tables) failed(ctx context.Context, err error) {
	cluster, ok := t.client.(*redis.ClusterClient)
	if !ok || err == nil {
		return
	}
	var unreachable net.Error
	if errors.As(err, &unreachable) || redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") ||
		redis.HasErrorPrefix(err, "CLUSTERDOWN") || redis.HasErrorPrefix(err, "READONLY") {
		cluster.ReloadState(ctx)
	}
}

// Slots implements tables.Tables.
func (t *Tables) Slots(ctx context.Context, domain string, limits []table.Ref) ([]int, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	node, err := t.node(ctx, domain)
	if err != nil {
		return nil, err
	}
	var r request
	for _, ref := range limits {
		r.keys = append(r.keys, topology.SlotsKey(domain, string(ref)))
	}
	found, err := t.run(ctx, node, t.slots, []request{r})[0].Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("count the slots of %s: %w", domain, err)
	}
	counts := make([]int, len(limits))
	for i, n := range found[:min(len(found), len(counts))] {
		counts[i] = int(n)
	}
	return counts, nil
}

// Drop implements tables.Tables.
func (t *Tables) Drop(ctx context.Context, domain string, limit table.Ref) error {
	node, err := t.node(ctx, domain)
	if err != nil {
		return err
	}
	pipe := node.Pipeline()
	pipe.Unlink(ctx, topology.SlotsKey(domain, string(limit)), topology.PerGroupKey(domain, string(limit)))
	if _, err := t.exec(ctx, opDrop, pipe); err != nil {
		t.failed(ctx, err)
		return fmt.Errorf("drop a limit of %s: %w", domain, err)
	}
	return nil
}
