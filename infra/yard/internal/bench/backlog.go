package bench

import (
	"context"
	"fmt"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/usage"
)

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
func (l *load) backlog(ctx context.Context, before uint64) (*report.Backlog, error) {
	after, err := l.target.stored(ctx)
	if err != nil {
		return nil, err
	}
	b := &report.Backlog{BytesPerTask: report.Round(float64(after-before) / float64(l.tasks))}
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
