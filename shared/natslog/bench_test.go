package natslog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// BenchmarkReadBacklog reads messages of a batch's usual size, 25 KB.
func BenchmarkReadBacklog(b *testing.B) {
	const n, size = 4000, 25 << 10
	srv, js := logServer(b, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage })
	fill(b, js.Conn(), n, size, "log.a")
	reader := connect(b, srv)
	b.SetBytes(n * size)
	for b.Loop() {
		must(b, natslog.ReadAll(b.Context(), reader, natslog.ReadConfig{Stream: stream}, func(natslog.Record) error { return nil }))
	}
}

// BenchmarkAppendToRead is the way of one message through an idle stream, from
// before its append to its being handled.
func BenchmarkAppendToRead(b *testing.B) {
	srv, js := logServer(b, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage })
	reader := connect(b, srv)
	ctx, cancel := context.WithCancel(b.Context())
	came, done := make(chan uint64), make(chan error)
	go func() {
		done <- natslog.Read(ctx, reader, natslog.ReadConfig{Stream: stream}, func(r natslog.Record) error {
			came <- r.Seq
			return nil
		})
	}()
	var worst time.Duration
	for b.Loop() {
		began := time.Now()
		seq, _, err := natslog.Append(b.Context(), js.Conn(), natslog.Msg{Subject: "log.a", Data: make([]byte, 1000)})
		must(b, err)
		testkit.MustEqual(b, "sequence came", <-came, seq)
		worst = max(worst, time.Since(began))
	}
	b.ReportMetric(float64(worst.Microseconds()), "worst-us")
	cancel()
	must(b, <-done)
}

// BenchmarkAppendTogether is n messages of 16 KiB, one by one in a pipeline and as one
// atomic batch.
func BenchmarkAppendTogether(b *testing.B) {
	for _, n := range []int{2, 4, 8, 16, 64} {
		msgs := make([]natslog.Msg, n)
		for i := range msgs {
			msgs[i] = natslog.Msg{Subject: "log.a", Data: make([]byte, 16<<10)}
		}
		b.Run(fmt.Sprintf("each/msgs=%d", n), func(b *testing.B) {
			_, js := logServer(b, nil)
			for b.Loop() {
				for _, r := range natslog.AppendEach(b.Context(), js.Conn(), msgs) {
					must(b, r.Err)
				}
			}
		})
		b.Run(fmt.Sprintf("atomic/msgs=%d", n), func(b *testing.B) {
			_, js := logServer(b, nil)
			for b.Loop() {
				_, err := natslog.AppendAtomic(b.Context(), js.Conn(), msgs)
				must(b, err)
			}
		})
	}
}
