package telemetry

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// queueSizeDefault is how many spans wait for the collector at most, if OTEL_BSP_MAX_QUEUE_SIZE says
// nothing. The SDK's 2048 are those of two hundred tasks; these take some 30 MB at most.
const queueSizeDefault = 16 << 10

func queueSize() int {
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		return n
	}
	return queueSizeDefault
}

// spanQueue is the SDK's queue, with its losses counted. The SDK drops in silence what its queue has no room for, so
// it is never asked to: what waits is counted here.
type spanQueue struct {
	sdktrace.SpanProcessor
	size    int64
	waiting *atomic.Int64
	dropped *Counter
}

func newQueue(exporter sdktrace.SpanExporter, size int, dropped *Counter) *spanQueue {
	waiting := new(atomic.Int64)
	counted := countedExporter{SpanExporter: exporter, waiting: waiting, dropped: dropped}
	return &spanQueue{
		SpanProcessor: sdktrace.NewBatchSpanProcessor(counted, sdktrace.WithMaxQueueSize(size)),
		size:          int64(size), waiting: waiting, dropped: dropped,
	}
}

// OnEnd implements sdktrace.SpanProcessor.
func (q *spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return // the SDK's queue would not take it either
	}
	if q.waiting.Add(1) > q.size {
		q.waiting.Add(-1)
		q.dropped.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// countedExporter counts the spans that leave the queue, and those that the collector did not take.
type countedExporter struct {
	sdktrace.SpanExporter
	waiting *atomic.Int64
	dropped *Counter
}

// ExportSpans implements sdktrace.SpanExporter.
func (e countedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.waiting.Add(-int64(len(spans)))
	if err != nil {
		e.dropped.Add(int64(len(spans)))
	}
	return err
}
