package partition

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/events"
	"github.com/yardmaster-io/yardmaster/services/history/internal/gauges"
	"github.com/yardmaster-io/yardmaster/services/history/internal/hearing"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// Config bounds an owner.
type Config struct {
	// WindowTasks is how many unfinished tasks of one submit lane are held in memory; the rest of the backlog stays on
	// disk. Default 20000, 1..1000000. Too low starves workers, too high costs about 1 KB and the payload per task.
	// Domains that lag behind the lane may hold some of it beside that: together eleven windows, if hundreds of them
	// flood. A request of more tasks than this counts as it is.
	WindowTasks int `koanf:"window_tasks" usage:"unfinished tasks of one lane of one partition held in memory"`
	// WindowBytes is the same in bytes. Default 128 MiB, 1 MiB..16 GiB.
	WindowBytes int64 `koanf:"window_bytes" usage:"bytes of unfinished tasks of one lane of one partition held in memory"`
	// OrderKeyTasks is how many tasks of one order key, due and not finished, may be in memory before submits to the
	// key are refused. Default 1000, 1..1000000.
	OrderKeyTasks int `koanf:"order_key_tasks" usage:"due and unfinished tasks of one order key before submits to it are refused"`
	// CheckpointEvery is how often the cursors are saved. It renews the owner's lease of 2 s, so it must be well below.
	// Default 500ms, 100ms..1s.
	CheckpointEvery time.Duration `koanf:"checkpoint_every" usage:"how often the cursors are saved, which renews the lease of 2s"`
	// PurgeEvery is how often the log forgets what is finished. Default 10s, 1s..1h.
	PurgeEvery time.Duration `koanf:"purge_every" usage:"how often the log forgets what is finished"`
	// SnapshotAfter is how many bytes of the log may follow the last snapshot of the partition before the next one is
	// made; if its state is larger than that, as many bytes as that. Default 64 MiB, 64 KiB..16 GiB. Lower costs
	// writes, higher costs disk, and time at a takeover.
	SnapshotAfter int64 `koanf:"snapshot_after" usage:"bytes of the log after which the state of a partition is saved"`
	// SnapshotEvery is after how long that is done at the latest, if anything has followed: until then the log keeps
	// what is finished. Default 10m, 100ms..24h.
	SnapshotEvery time.Duration `koanf:"snapshot_every" usage:"after how long the state of a partition is saved at the latest"`
	// DrainTimeout bounds how long a leaving owner waits for its writes. Default 3s.
	DrainTimeout time.Duration `koanf:"drain_timeout" usage:"how long a leaving owner waits for its writes"`
}

// DefaultConfig is the defaults given at the fields.
func DefaultConfig() Config {
	return Config{
		WindowTasks: 20_000, WindowBytes: 128 << 20, OrderKeyTasks: 1000, CheckpointEvery: 500 * time.Millisecond,
		PurgeEvery: 10 * time.Second, SnapshotAfter: 64 << 20, SnapshotEvery: 10 * time.Minute, DrainTimeout: 3 * time.Second,
	}
}

// Weights are settings of domains, which may change at any time.
type Weights struct {
	// Weight is how many turns a domain has for each one of a domain with weight 1; nil = all have as many.
	Weight func(domain string) int
	// FullWeight is how many tasks of a domain come in with its full weight in a second, in all partitions together, 0 = all; shadow: those over it are
	// counted only. Nil = all of all.
	FullWeight func(domain string) (perSecond int64, shadow bool)
}

// Settings are those of tasklists and types, which may change at any time.
type Settings struct {
	// TasklistPartitions tells how many partitions a tasklist has; nil = each has one.
	TasklistPartitions func(domain, tasklist string) int
	// Type is the settings of a task type, nil if it has none; nil = none has any.
	Type func(domain, name string) *yardv1.TaskType
	// Events are which events of its tasks a domain has, and how they are published; the zero value = no domain has any.
	Events events.Config
	// Paused returns which tasks of a domain are paused now; nil = none is, or none ever is.
	Paused func(domain string) func(tasklist, typ, group string) bool
}

// Deps is what an owner works with. Tracing may be nil.
type Deps struct {
	Partition    int
	Partitioning topology.Partitioning
	Node         string
	Config       Config
	Log          Log
	Archive      Archive
	Reader       Reader
	TimerStore   TimerStore
	Timer        Timer
	Checkpoints  Checkpoints
	Snapshots    Snapshots
	Wire         Wire
	Quarantine   Quarantine
	Weights
	// Report receives what the partition has, at each beat; nil = it is not reported.
	Report func(*gauges.Report)
	// StorageFull tells why the log has no room for further tasks, "" if it has; nil = it always has.
	StorageFull func() string
	// Capped tells of tasklists whose queue has a cap.
	Capped Capped
	Settings
	// Workers are those that the process hears; nil = it hears none.
	Workers *hearing.Workers
	// LogVersion is the version that the cluster writes.
	LogVersion func() uint32
	Tokens     *ids.Tokens
	// Clock tells the time of the log; nil = the node's own is right.
	Clock   *clock.Clock
	Logger  *slog.Logger
	Tracing *telemetry.Tracing
	Metrics *Metrics
}

// base is what the parts of an owner share: the loop, the writers, the readers.
type base struct {
	Deps
	calls chan call
	// origin is where the clock of replica.Now.Mono begins.
	origin time.Time
	// work ends with the owner.
	work context.Context
	stop context.CancelFunc
	// epoch is the owner's, once it has claimed the partition.
	epoch uint64
	// leaseUntil is for the writers and for who asks: nothing is written or shown when it is over (ns after origin).
	leaseUntil atomic.Int64
	// inArchive, inLog and inTimer are who look for a task there. If one of these is silent, the others go on.
	inArchive, inLog, inTimer *turns.Line
	// looks is who waits to look at all that is in memory.
	looks *turns.Line
	// give hands the replica an input; it is for the loop's goroutine.
	give func(replica.Input)
}

func (b *base) now() replica.Now {
	now := time.Now()
	return replica.Now{MS: b.Clock.At(now).UnixMilli(), Mono: now.Sub(b.origin)}
}

// leased tells whether the lease holds. It is for any goroutine.
func (b *base) leased() bool { return int64(b.now().Mono) < b.leaseUntil.Load() }

// call is what another goroutine wants of the owner's: do, or leave if the owner ends before that. Leave may be nil.
type call struct{ do, leave func() }

// post hands fn to the owner's goroutine. It is for other goroutines.
func (b *base) post(ctx context.Context, fn func()) bool { return b.postOr(ctx, fn, nil) }

// postOr hands do to the owner's goroutine. If it returns true, either do or leave runs.
func (b *base) postOr(ctx context.Context, do, leave func()) bool {
	select {
	case b.calls <- call{do, leave}:
		if b.work.Err() != nil {
			b.endCalls() // the owner may not have seen it
		}
		return true
	case <-ctx.Done():
		return false
	case <-b.work.Done():
		return false
	}
}

// endCalls tells those whose calls are queued that the owner has ended; its loop runs no more.
func (b *base) endCalls() {
	for {
		select {
		case c := <-b.calls:
			if c.leave != nil {
				c.leave()
			}
		default:
			return
		}
	}
}

// report hands the replica the outcome of an effect.
func (b *base) report(in replica.Input) {
	b.post(b.work, func() { b.give(in) })
}
