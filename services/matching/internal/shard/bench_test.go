package shard_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/memtable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
)

// echo grants everything at once, without a log and without NATS.
type echo struct {
	s     *shard.Shard
	task  []byte
	polls func(tasks int)
}

func (e *echo) Events(_ int, data []byte) error {
	var b logv1.EventBatch
	if err := b.UnmarshalVT(data); err != nil {
		return err
	}
	v := &logv1.VerdictBatch{RequestId: b.RequestId, Verdicts: make([]*logv1.EventVerdict, len(b.Events))}
	all := make([]logv1.EventVerdict, len(b.Events))
	for i := range all {
		all[i].Task = e.task
		v.Verdicts[i] = &all[i]
	}
	e.s.Verdicts(v)
	return nil
}

func (e *echo) Answer(_ string, _ bool, tasks [][]byte, _ uint64) error {
	e.polls(len(tasks))
	return nil
}

func (e *echo) Refuse(string, *fault.Error)                                    {}
func (e *echo) Freed(string, []string)                                         {}
func (e *echo) Hungry(string, string)                                          {}
func (e *echo) Bookings(context.Context, int, string) ([]table.Booking, error) { return nil, nil }
func (e *echo) Retrigger(context.Context, int, string) error                   { return nil }
func (e *echo) Limit(string, string) int                                       { return 0 }
func (e *echo) Limited(string) []string                                        { return nil }

// BenchmarkShard is the loop's share of a task, verdicts' decoding included: hints
// of 100 tasks of 10 types, 16 polls of 100 that are repeated as they are answered.
func BenchmarkShard(b *testing.B) {
	e := &echo{task: make([]byte, 400)}
	e.s = shard.New(shard.Deps{
		Partitions: 2, AnswerBytesMax: 900 << 10, Tables: memtable.New().Shard(0), Outbox: e, History: e, Limits: e,
		Config: shard.DefaultConfig(), Metrics: shard.NewMetrics(nil, 1), Log: slog.New(slog.DiscardHandler),
	})
	poll := &rpcv1.Poll{Domain: "d", Tasklist: "l", MaxTasks: 100, UntilMs: time.Now().Add(time.Hour).UnixMilli(), ReplyTo: "r"}
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	e.polls = func(n int) {
		if n > 0 && left.Add(int64(-n)) <= 0 {
			select {
			case <-done:
			default:
				close(done)
			}
		}
		e.s.Poll(poll)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.s.Run(ctx) }()
	for range 16 {
		e.s.Poll(poll)
	}
	if _, err := e.s.Describe(ctx, &rpcv1.DescribeShardRequest{}); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	gate := make(chan struct{}, 64) // as the stream's pending limit
	next := uint64(0)
	for n := 0; n < b.N; n += 100 {
		h := &logv1.Hints{}
		for typ := range 10 {
			g := &logv1.TriggerGroup{Domain: "d", Tasklist: "l", Priority: int32(1 + typ%3), Type: fmt.Sprint("t", typ), ReadyAtUs: int64(next)}
			for range 10 {
				next++
				g.Triggers = ids.AppendTrigger(g.Triggers, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), int(next/10)%2, next)})
			}
			h.Triggers = append(h.Triggers, g)
		}
		gate <- struct{}{}
		e.s.Hints(shard.Delivery{Hints: h, Done: func(bool) { <-gate }})
	}
	<-done
	b.StopTimer()
	e.polls = func(int) {}
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
