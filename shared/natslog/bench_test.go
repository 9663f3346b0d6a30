package natslog_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
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
		if got := <-came; got != seq {
			b.Fatalf("sequence %d came instead of %d", got, seq)
		}
		worst = max(worst, time.Since(began))
	}
	b.ReportMetric(float64(worst.Microseconds()), "worst-us")
	cancel()
	must(b, <-done)
}
