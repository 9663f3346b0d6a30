package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/usage"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

// historyLog counts what is appended to the history streams. Each stored message is one sync
// to disk where the server syncs always; an atomic batch is one for all its messages.
type historyLog struct {
	js         jetstream.JetStream
	partitions int
}

// openLog asks a cluster for its partitions. A user who may not read its streams has no log.
func (t *target) openLog(ctx context.Context) error {
	if t.tenant() {
		return errors.New("a domain's user does not see the log")
	}
	nc, err := t.connect()
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if t.stack != nil {
		t.partitioning = t.stack.Partitioning
	} else if t.partitioning, err = provision.Partitioning(ctx, js); err != nil {
		return err
	}
	t.log = &historyLog{js: js, partitions: t.partitioning.History}
	_, err = t.log.messages(ctx)
	return err
}

// messages is how many there ever were.
func (l *historyLog) messages(ctx context.Context) (n uint64, err error) {
	for p := range l.partitions {
		stream, err := l.js.Stream(ctx, topology.HistoryStream(p))
		if err != nil {
			return 0, fmt.Errorf("state of stream %s: %w", topology.HistoryStream(p), err)
		}
		n += stream.CachedInfo().State.LastSeq
	}
	return n, nil
}

// reading is what has been used so far.
type reading struct {
	at          time.Time
	log         uint64        // messages that were ever appended to the history streams
	self, child time.Duration // CPU time of this process, and of the redis-server it started
	redis       usage.Redis
}

// read reads what has been used.
func (t *target) read(ctx context.Context) (r reading, err error) {
	if t.log != nil {
		if r.log, err = t.log.messages(ctx); err != nil {
			return r, err
		}
	}
	r.redis, err = t.redisUse(ctx)
	r.self, r.child, r.at = usage.SelfCPU(), usage.CPU(t.redisPID()), time.Now()
	return r, err
}

// since is what so many tasks took, from a reading until then.
func (t *target) since(ctx context.Context, before reading, tasks int, until time.Time) (report.Result, error) {
	now, err := t.read(ctx)
	if err != nil {
		return report.Result{}, err
	}
	took := until.Sub(before.at)
	r := report.Result{
		Tasks: tasks, Seconds: took.Seconds(), TasksPerSecond: float64(tasks) / took.Seconds(),
		Cost: costOf(now.self-before.self, now.child-before.child, tasks),
	}
	if t.redis != nil {
		r.Redis = now.redis.Since(before.redis, tasks)
	}
	if t.log != nil {
		r.LogMessages = now.log - before.log
		r.TasksPerSync = report.Round(float64(tasks) / float64(max(r.LogMessages, 1)))
	}
	return r, nil
}

// costOf is the cost of one run of so many tasks, by the CPU time of this process and of Redis. Memory is the
// peak, since that is what must be there.
func costOf(self, redis time.Duration, tasks int) report.Cost {
	per100k := func(d time.Duration) float64 { return d.Seconds() / float64(tasks) * 100_000 }
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	return report.Cost{
		CPUPer100k: per100k(self + redis), RedisCPUPer100k: per100k(redis),
		PeakMB: float64(usage.PeakBytes()) / (1 << 20), HeapMB: float64(heap.HeapInuse) / (1 << 20),
	}
}
