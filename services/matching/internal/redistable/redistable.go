// Package redistable is the triggering tables in Redis, shared by the matching
// processes of a cluster.
//
// Owns: the scripts, and how tables lie in Redis (contracts/topology spells the
// keys). Each script names all its keys, and all keys of one call carry the hash
// tag of its domain, so that it runs on Redis Cluster as on a single server.
//
// Never does: retry. A call that failed may have been carried out; all of them but
// Pop may be repeated, and what a lost Pop took is sent again by history.
//
// On failure: an error of the client for an unreachable server, table.LostError
// where Redis has lost its memory. Bookings are safe from a Redis that restarts
// empty, and not from one that loses a part of its keys: run it with noeviction, and
// without replicas that may be promoted before they have the last writes. The tables
// can be rebuilt in seconds.
package redistable

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

//go:embed scripts/*.lua
var sources embed.FS

// Limits of one script call: Lua blocks all of Redis while it runs, and unpacks at
// most some thousand values.
const (
	chunksPerCall   = 256
	bookingsPerCall = 1000
)

// The first byte of an epoch key's value tells how far it may be trusted.
const (
	epochOpen  = "o"
	epochWhole = "w"
)

// Tables is one shard's view of the tables in Redis. It is safe for concurrent use.
type Tables struct {
	client  redis.UniversalClient
	shard   int
	calls   func(n int)
	put     *redis.Script
	pop     *redis.Script
	settle  *redis.Script
	restore *redis.Script
	count   *redis.Script
}

// New returns the tables of one shard. Calls is told of every round trip; nil is
// nobody. The caller closes the client.
func New(client redis.UniversalClient, shard int, calls func(n int)) *Tables {
	if calls == nil {
		calls = func(int) {}
	}
	return &Tables{
		client: client, shard: shard, calls: calls,
		put: load("put"), pop: load("pop"), settle: load("settle"), restore: load("restore"), count: load("count"),
	}
}

func load(name string) *redis.Script {
	source, err := sources.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic("redistable: " + err.Error()) // embedded: cannot be absent
	}
	return redis.NewScript(string(source))
}

// call is one script call.
type call struct {
	keys []string
	args []any
}

// run makes all calls of one script in one round trip. Each has its own outcome.
func (t *Tables) run(ctx context.Context, script *redis.Script, calls []call) []*redis.Cmd {
	t.calls(1)
	if len(calls) == 1 {
		return []*redis.Cmd{script.Run(ctx, t.client, calls[0].keys, calls[0].args...)}
	}
	out := make([]*redis.Cmd, len(calls))
	pipe := t.client.Pipeline()
	for i, c := range calls {
		out[i] = script.EvalSha(ctx, pipe, c.keys, c.args...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, c := range calls {
		if redis.HasErrorPrefix(out[i].Err(), "NOSCRIPT") {
			out[i] = script.Eval(ctx, t.client, c.keys, c.args...)
		}
	}
	return out
}

// Open implements shard.Tables.
func (t *Tables) Open(ctx context.Context, domain string) (table.Opened, error) {
	t.calls(1)
	key := topology.EpochKey(domain, t.shard)
	pipe := t.client.Pipeline()
	pipe.SetNX(ctx, key, epochOpen+rand.Text(), 0)
	epoch := pipe.Get(ctx, key)
	lists := pipe.SMembers(ctx, topology.TasklistsKey(domain, t.shard))
	if _, err := pipe.Exec(ctx); err != nil {
		return table.Opened{}, fmt.Errorf("open the table of %s: %w", domain, err)
	}
	value := epoch.Val()
	opened := table.Opened{Epoch: value[1:], Whole: value[:1] == epochWhole}
	names := lists.Val()
	slices.Sort(names)
	var err error
	opened.Columns, err = t.columns(ctx, domain, names)
	return opened, err
}

// columns finds what the tables of tasklist partitions hold.
func (t *Tables) columns(ctx context.Context, domain string, lists []string) ([]table.Known, error) {
	if len(lists) == 0 {
		return nil, nil
	}
	t.calls(1)
	var found []table.Known
	var heads []*redis.ZSliceCmd
	var places []table.Known
	pipe := t.client.Pipeline()
	for _, entry := range lists {
		list, ok := parseEntry(domain, entry)
		if !ok {
			continue
		}
		for p := table.PriorityFirst; p <= table.PriorityLast; p++ {
			places = append(places, table.Known{Tasklist: list, Column: table.Column{Priority: p}})
			heads = append(heads, pipe.ZRangeWithScores(ctx, topology.HeadsKey(domain, list.Name, list.Partition, p), 0, -1))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("load the columns of %s: %w", domain, err)
	}
	var calls []call
	for i, cmd := range heads {
		for _, z := range cmd.Val() {
			k := places[i]
			k.Type, k.ReadyAt = z.Member.(string), int64(z.Score)
			found = append(found, k)
			calls = append(calls, call{keys: []string{columnKey(k.Tasklist, k.Column)}})
		}
	}
	if len(calls) == 0 {
		return nil, nil
	}
	for i, cmd := range t.run(ctx, t.count, calls) {
		n, err := cmd.Int()
		if err != nil {
			return nil, fmt.Errorf("count the triggers of %s: %w", domain, err)
		}
		found[i].Triggers = n
	}
	return found, nil
}

// Restore implements shard.Tables.
func (t *Tables) Restore(ctx context.Context, domain, epoch string, bookings []table.Booking) error {
	for {
		part := bookings[:min(len(bookings), bookingsPerCall)]
		bookings = bookings[len(part):]
		c := restoreCall(domain, t.shard, epoch, part, len(bookings) == 0)
		ok, err := t.run(ctx, t.restore, []call{c})[0].Int()
		if err != nil {
			return fmt.Errorf("restore the bookings of %s: %w", domain, err)
		}
		if ok == 0 {
			return &table.LostError{Domains: []string{domain}}
		}
		if len(bookings) == 0 {
			return nil
		}
	}
}

func restoreCall(domain string, shard int, epoch string, bookings []table.Booking, last bool) call {
	c := call{keys: []string{topology.EpochKey(domain, shard)}, args: []any{epoch, 0}}
	if last {
		c.args[1] = 1
	}
	for len(bookings) > 0 {
		typ := bookings[0].Type
		n := 1
		for n < len(bookings) && bookings[n].Type == typ {
			n++
		}
		c.keys = append(c.keys, topology.SlotsKey(domain, typ))
		c.args = append(c.args, n)
		for _, b := range bookings[:n] {
			c.args = append(c.args, b.Until, b.Member)
		}
		bookings = bookings[n:]
	}
	return c
}

// Put implements shard.Tables.
func (t *Tables) Put(ctx context.Context, chunks []table.Chunk) error {
	byDomain := map[string][]table.Chunk{}
	for _, c := range chunks {
		byDomain[c.Domain] = append(byDomain[c.Domain], c)
	}
	var calls []call
	var domains []string
	for domain, all := range byDomain {
		for part := range slices.Chunk(all, chunksPerCall) {
			domains = append(domains, domain)
			calls = append(calls, putCall(domain, t.shard, part))
		}
	}
	var lost []string
	for i, cmd := range t.run(ctx, t.put, calls) {
		ok, err := cmd.Int()
		if err != nil {
			return fmt.Errorf("store triggers of %s: %w", domains[i], err)
		}
		if ok == 0 && !slices.Contains(lost, domains[i]) {
			lost = append(lost, domains[i])
		}
	}
	return lostError(lost)
}

func putCall(domain string, shard int, chunks []table.Chunk) call {
	c := call{
		keys: make([]string, 2, 2+2*len(chunks)),
		args: make([]any, 1, 4+5*len(chunks)),
	}
	c.keys[0], c.keys[1] = topology.EpochKey(domain, shard), topology.TasklistsKey(domain, shard)
	type place struct {
		list     table.Tasklist
		priority int
	}
	var lists []table.Tasklist
	var places []place
	heads := map[place][]any{}
	for _, chunk := range chunks {
		if !slices.Contains(lists, chunk.Tasklist) {
			lists = append(lists, chunk.Tasklist)
			c.args = append(c.args, entry(chunk.Tasklist))
		}
		at := place{chunk.Tasklist, chunk.Priority}
		if heads[at] == nil {
			places = append(places, at)
			c.keys = append(c.keys, headsKey(at.list, at.priority))
		}
		heads[at] = append(heads[at], chunk.ReadyAt, chunk.Type)
	}
	c.args[0] = len(lists)
	c.args = append(c.args, len(places))
	for _, at := range places {
		c.args = append(c.args, len(heads[at])/2)
		c.args = append(c.args, heads[at]...)
	}
	for _, chunk := range chunks {
		c.keys = append(c.keys, columnKey(chunk.Tasklist, chunk.Column))
		c.args = append(c.args, chunk.ReadyAt, chunk.Triggers)
	}
	return c
}

// Settle implements shard.Tables.
func (t *Tables) Settle(ctx context.Context, settlements []table.Settlement) ([]table.Settled, error) {
	settled := make([]table.Settled, len(settlements))
	var calls []call
	type origin struct{ settlement, extension int }
	var from []origin
	for i, s := range settlements {
		for first := 0; first < len(s.Extend); first += bookingsPerCall {
			part := s
			part.Extend, part.Release = s.Extend[first:min(first+bookingsPerCall, len(s.Extend))], nil
			calls, from = append(calls, settleCall(part)), append(from, origin{i, first})
		}
		for first := 0; first < len(s.Release); first += bookingsPerCall * ids.BookingBytes {
			part := s
			part.Extend, part.Release = nil, s.Release[first:min(first+bookingsPerCall*ids.BookingBytes, len(s.Release))]
			calls, from = append(calls, settleCall(part)), append(from, origin{i, 0})
		}
	}
	if len(calls) == 0 {
		return settled, nil
	}
	for i, cmd := range t.run(ctx, t.settle, calls) {
		out, err := cmd.Int64Slice()
		if err != nil {
			return nil, fmt.Errorf("settle bookings of %s: %w", settlements[from[i].settlement].Domain, err)
		}
		at := &settled[from[i].settlement]
		at.Freed = at.Freed || out[0] == 1
		for _, missing := range out[1:] {
			at.Missing = append(at.Missing, from[i].extension+int(missing))
		}
	}
	return settled, nil
}

func settleCall(s table.Settlement) call {
	c := call{keys: []string{topology.SlotsKey(s.Domain, s.Type)}}
	c.args = make([]any, 0, 2+2*len(s.Extend)+len(s.Release)/ids.BookingBytes)
	c.args = append(c.args, s.Limit, len(s.Extend))
	for _, x := range s.Extend {
		c.args = append(c.args, x.Until, x.Member)
	}
	for b := s.Release; len(b) >= ids.BookingBytes; b = b[ids.BookingBytes:] {
		c.args = append(c.args, b[:ids.BookingBytes])
	}
	return c
}

// Bookings implements shard.Tables.
func (t *Tables) Bookings(ctx context.Context, domain string, types []string, beyond time.Time) ([]table.Booking, error) {
	if len(types) == 0 {
		return nil, nil
	}
	t.calls(1)
	pipe := t.client.Pipeline()
	cmds := make([]*redis.ZSliceCmd, len(types))
	for i, typ := range types {
		cmds[i] = pipe.ZRangeByScoreWithScores(ctx, topology.SlotsKey(domain, typ), &redis.ZRangeBy{Min: after(beyond), Max: "+inf"})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list the bookings of %s: %w", domain, err)
	}
	var all []table.Booking
	for i, cmd := range cmds {
		for _, z := range cmd.Val() {
			all = append(all, table.Booking{Type: types[i], Member: z.Member.(string), Until: int64(z.Score)})
		}
	}
	return all, nil
}

// after is the lower bound of scores beyond an instant.
func after(at time.Time) string { return "(" + strconv.FormatInt(at.UnixMilli(), 10) }

// Slots implements shard.Tables.
func (t *Tables) Slots(ctx context.Context, domain string, types []string, now time.Time) ([]int, error) {
	if len(types) == 0 {
		return nil, nil
	}
	t.calls(1)
	pipe := t.client.Pipeline()
	cmds := make([]*redis.IntCmd, len(types))
	for i, typ := range types {
		cmds[i] = pipe.ZCount(ctx, topology.SlotsKey(domain, typ), after(now), "+inf")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("count the slots of %s: %w", domain, err)
	}
	counts := make([]int, len(types))
	for i, cmd := range cmds {
		counts[i] = int(cmd.Val())
	}
	return counts, nil
}

func lostError(domains []string) error {
	if len(domains) == 0 {
		return nil
	}
	return &table.LostError{Domains: domains}
}

func columnKey(l table.Tasklist, c table.Column) string {
	return topology.ColumnKey(l.Domain, l.Name, l.Partition, c.Priority, c.Type)
}

func headsKey(l table.Tasklist, priority int) string {
	return topology.HeadsKey(l.Domain, l.Name, l.Partition, priority)
}

// entry is a tasklist partition in the set of a shard's known ones. No name holds a colon.
func entry(l table.Tasklist) string { return l.Name + ":" + strconv.Itoa(l.Partition) }

func parseEntry(domain, s string) (table.Tasklist, bool) {
	name, partition, ok := strings.Cut(s, ":")
	n, err := strconv.Atoi(partition)
	return table.Tasklist{Domain: domain, Name: name, Partition: n}, ok && err == nil
}
