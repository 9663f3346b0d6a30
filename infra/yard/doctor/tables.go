package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// Limits of reading Redis.
const (
	scanCount = 1000
	// bookingsTimeout bounds one question to history; runBytes is how much of a server's run id the tables keep.
	bookingsTimeout = 5 * time.Second
	runBytes        = 16
)

// Tables reads the triggering tables and slots in Redis, and asks history what holds slots.
type Tables struct {
	client redis.UniversalClient
	nc     *nats.Conn
}

// NewTables makes one. The caller closes both.
func NewTables(client redis.UniversalClient, nc *nats.Conn) *Tables { return &Tables{client, nc} }

// stored is what of Redis is kept for a look: its keys by kind, apart from chunks of triggers.
type stored struct {
	mu      sync.Mutex
	limits  []limitHash
	heads   map[string]bool // keys of heads that are there
	columns []string        // keys of columns
	sets    []string        // keys of sets of tasklists
	orphans []Finding
	groups  bool
}

// lookAtTables reads all keys. It keeps the names of tables and columns, about 200 bytes each, and no triggers.
func (x *examiner) lookAtTables(ctx context.Context) ([]Finding, error) {
	running, err := x.tables.booked(ctx, x.n)
	if err != nil {
		x.unchecked("slots were not compared with what runs: %v", err)
		running = nil
	}
	s := &stored{heads: map[string]bool{}}
	err = x.tables.eachNode(ctx, func(ctx context.Context, node redis.UniversalClient) error { return x.readNode(ctx, node, s, running) })
	if err != nil {
		return nil, err
	}
	reach, err := x.outOfReach(ctx, s)
	if err != nil {
		return nil, err
	}
	if s.groups {
		x.unchecked("slots that count per group were not compared with what runs")
	}
	x.scanned.Limits = int64(len(s.limits))
	return inSection(section{kind: sectionTables}, append(s.orphans, reach...)), nil
}

func (t *Tables) eachNode(ctx context.Context, do func(context.Context, redis.UniversalClient) error) error {
	if cluster, ok := t.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return do(ctx, node) })
	}
	return do(ctx, t.client)
}

// readNode reads the keys of one server.
func (x *examiner) readNode(ctx context.Context, node redis.UniversalClient, s *stored, running booked) error {
	info, err := node.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	_, run, _ := strings.Cut(info, "run_id:")
	run = run[:min(len(run), runBytes)]
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, topology.TablesPattern, scanCount).Result()
		if err != nil {
			return fmt.Errorf("list the keys: %w", err)
		}
		for _, key := range keys {
			if err := x.readKey(ctx, node, key, run, s, running); err != nil {
				return err
			}
		}
		if cursor = next; next == 0 {
			return nil
		}
	}
}

func (x *examiner) readKey(ctx context.Context, node redis.UniversalClient, key, run string, s *stored, running booked) error {
	k, ok := topology.TableKeyOf(key)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := x.strange(k); why != "" {
		left, err := node.TTL(ctx, key).Result()
		if err == nil && left == -1 { // else it goes by itself
			s.orphans = append(s.orphans, Finding{
				Code: TableOrphan, Where: key, Domain: k.Domain, What: why,
				mend: func(ctx context.Context) error { return x.tables.client.Unlink(ctx, key).Err() },
			})
		}
		return err
	}
	switch k.Kind {
	case "group":
		s.groups = true
	case "tasklists":
		s.sets = append(s.sets, key)
	case "tl":
		if _, _, column, ok := k.TableOfKey(); ok && column == "" {
			s.heads[key] = true
		} else if ok {
			s.columns = append(s.columns, key)
		}
	case "slots":
		fields, err := node.HGetAll(ctx, key).Result()
		if err != nil || len(fields) == 0 {
			return err
		}
		now, err := node.Time(ctx).Result()
		if err != nil {
			return err
		}
		h, ok := readLimit(k.Domain, k.Name, fields)
		if !ok {
			s.orphans = append(s.orphans, Finding{Code: SlotsMiscounted, Where: key, Domain: k.Domain, What: "it is not as the engine writes it", mend: x.tables.drop(k)})
			return nil
		}
		s.limits = append(s.limits, h)
		if h.run != run {
			return nil // void: of a run of the server that is over
		}
		for _, f := range checkLimit(h, x.n.Matching, now.UnixMilli(), running) {
			f.mend = x.tables.drop(k)
			s.orphans = append(s.orphans, f)
		}
	}
	return nil
}

// strange says why a key is of nothing that exists, or "".
func (x *examiner) strange(k topology.TableKey) string {
	if _, ok := x.kept[k.Domain]; !ok {
		return "there is no domain " + k.Domain
	}
	if k.Kind == "tasklists" || k.Kind == "epoch" {
		if m, err := strconv.Atoi(k.Name); err != nil || m >= x.n.Matching {
			return "there is no matching shard " + k.Name
		}
	}
	return ""
}

// drop forgets a limit, as matching does when its limit is gone: the shards write their entries again, from what history says that runs.
func (t *Tables) drop(k topology.TableKey) func(context.Context) error {
	return func(ctx context.Context) error {
		return t.client.Unlink(ctx, topology.SlotsKey(k.Domain, k.Name)).Err()
	}
}

// outOfReach finds tables that are in no shard's set, and columns that their table's heads do not name.
func (x *examiner) outOfReach(ctx context.Context, s *stored) (found []Finding, err error) {
	listed := map[string]bool{}
	for _, key := range s.sets {
		k, _ := topology.TableKeyOf(key)
		lists, err := x.tables.client.SMembers(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		for _, list := range lists {
			name, number, _ := strings.Cut(list, ":")
			partition, err := strconv.Atoi(number)
			if err == nil && strconv.Itoa(ids.MatchingShard(k.Domain, name, partition, x.n.Matching)) == k.Name {
				listed[topology.HeadsKey(k.Domain, name, partition)] = true
			}
		}
	}
	for key := range s.heads {
		k, _ := topology.TableKeyOf(key)
		list, partition, _, _ := k.TableOfKey()
		if listed[key] {
			continue
		}
		set := topology.TasklistsKey(k.Domain, ids.MatchingShard(k.Domain, list, partition, x.n.Matching))
		entry := list + ":" + strconv.Itoa(partition)
		lost, err := x.tables.alone(ctx, key, func(p redis.Pipeliner) func() bool { return p.SIsMember(ctx, set, entry).Val })
		if err != nil {
			return nil, err
		}
		if lost {
			found = append(found, Finding{Code: TableOutOfReach, Where: key, Domain: k.Domain, What: "its shard's set does not have this tasklist"})
		}
	}
	for _, key := range s.columns {
		k, _ := topology.TableKeyOf(key)
		list, partition, column, _ := k.TableOfKey()
		lost, err := x.tables.alone(ctx, key, func(p redis.Pipeliner) func() bool {
			score := p.ZScore(ctx, topology.HeadsKey(k.Domain, list, partition), column)
			return func() bool { return score.Err() == nil }
		})
		if err != nil {
			return nil, err
		}
		if lost {
			found = append(found, Finding{Code: TableOutOfReach, Where: key, Domain: k.Domain, What: "the heads of its tasklist do not name this column"})
		}
	}
	return found, nil
}

// alone tells whether a key is there at an instant at which the one that leads to it does not name it.
func (t *Tables) alone(ctx context.Context, key string, named func(redis.Pipeliner) func() bool) (bool, error) {
	p := t.client.TxPipeline()
	there, by := p.Exists(ctx, key), named(p)
	if _, err := p.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	return there.Val() == 1 && !by(), nil
}

// booked asks the owners of history for all running attempts that hold slots.
func (t *Tables) booked(ctx context.Context, n topology.Partitioning) (booked, error) {
	running := booked{}
	for p := range n.History {
		for m := range n.Matching {
			for cursor := []byte(nil); ; {
				ctx, cancel := context.WithTimeout(ctx, bookingsTimeout)
				page, err := natsrpc.Call[rpcv1.BookingsResponse](ctx, t.nc, topology.HistoryCall(p, "bookings"), &rpcv1.BookingsRequest{Shard: int32(m), Cursor: cursor})
				cancel()
				if err != nil {
					return nil, fmt.Errorf("what runs in history partition %d: %w", p, err)
				}
				for _, g := range page.Groups {
					running.add(m, g.Domain, g.Type, g.Limits, len(g.Bookings)/ids.BookingBytes)
				}
				if cursor = page.Cursor; len(cursor) == 0 {
					break
				}
			}
		}
	}
	return running, nil
}
