package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
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

// meter is what was before a run.
type meter struct {
	target *target
	log    uint64
	used   used
	redis  redisUse
	began  time.Time
}

// meter begins to measure.
func (t *target) meter(ctx context.Context) (m meter, err error) {
	m.target = t
	if t.log != nil {
		if m.log, err = t.log.messages(ctx); err != nil {
			return m, err
		}
	}
	if m.redis, err = t.redisUse(ctx); err != nil {
		return m, err
	}
	m.used, m.began = usage(t.redisPID()), time.Now()
	return m, nil
}

// end is what so many tasks took until then.
func (m meter) end(ctx context.Context, tasks int, at time.Time) (Result, error) {
	cost, took := usage(m.target.redisPID()).since(m.used).per(tasks), at.Sub(m.began)
	r := Result{Tasks: tasks, Seconds: took.Seconds(), TasksPerSecond: float64(tasks) / took.Seconds(), Cost: cost}
	redis, err := m.target.redisUse(ctx)
	if err != nil {
		return r, err
	}
	if m.target.redis != nil {
		r.Redis = redis.since(m.redis, tasks)
	}
	if m.target.log == nil {
		return r, nil
	}
	log, err := m.target.log.messages(ctx)
	if err != nil {
		return r, err
	}
	r.LogMessages = log - m.log
	r.TasksPerSync = round(float64(tasks) / float64(max(r.LogMessages, 1)))
	return r, nil
}
