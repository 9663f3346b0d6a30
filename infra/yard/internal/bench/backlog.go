package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/usage"
)

// Backlog is what tasks cost that wait for workers, and how they went through then.
type Backlog struct {
	// BytesPerTask is how much more the streams hold on disk for each task, its payload included; 0 = not known.
	BytesPerTask float64 `json:"bytes_per_task,omitempty"`
	// MemoryMB is what the measured processes have resident while all tasks wait, NATS included where it is embedded; 0 = not known.
	MemoryMB float64 `json:"memory_mb,omitempty"`
	// DrainedPerSecond is from the first poll to the last accepted completion.
	DrainedPerSecond float64 `json:"drained_per_second"`
}

// stored is how many bytes the streams hold on disk; 0 = not known.
func (t *target) stored(ctx context.Context) (uint64, error) {
	if t.log == nil {
		return 0, nil
	}
	info, err := t.log.js.AccountInfo(ctx)
	if err != nil {
		return 0, fmt.Errorf("what the streams hold: %w", err)
	}
	return info.Store, nil
}

// backlog measures what the tasks cost that are accepted and wait; the streams held so many bytes before them.
func (l *load) backlog(ctx context.Context, before uint64) (*Backlog, error) {
	after, err := l.target.stored(ctx)
	if err != nil {
		return nil, err
	}
	b := &Backlog{BytesPerTask: round(float64(after-before) / float64(l.tasks))}
	for _, pid := range l.target.processes() {
		mb, err := usage.ResidentMB(pid)
		if err != nil {
			b.MemoryMB = 0 // this system does not tell
			break
		}
		b.MemoryMB += mb
	}
	return b, nil
}

// drained notes how quickly the tasks went through.
func (b *Backlog) drained(tasks int, took time.Duration) {
	b.DrainedPerSecond = round(float64(tasks) / took.Seconds())
}

// line is the backlog in one line.
func (b *Backlog) line() string {
	return fmt.Sprintf("while all wait %.0f B on disk for each and %.0f MB resident; then %.0f tasks/s went through", b.BytesPerTask, b.MemoryMB, b.DrainedPerSecond)
}
