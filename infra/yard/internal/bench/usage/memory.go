package usage

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// sampleEvery is how often memory is looked at during a run.
const sampleEvery = 100 * time.Millisecond

// Memory is what one process had resident, in MB.
type Memory struct {
	PID     int    `json:"pid"`
	Process string `json:"process"`
	// Before the run, at its peak, and when the process has rested.
	BeforeMB float64 `json:"before_mb"`
	PeakMB   float64 `json:"peak_mb"`
	RestMB   float64 `json:"rest_mb"`
}

// Watch looks at processes during a run.
type Watch struct {
	all  []Memory
	stop context.CancelFunc
	done chan error
}

// WatchMemory begins to look. The caller ends it.
func WatchMemory(ctx context.Context, pids []int) (*Watch, error) {
	w := &Watch{done: make(chan error, 1)}
	for _, pid := range pids {
		stat, err := statOf(pid)
		if err != nil {
			return nil, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		w.all = append(w.all, Memory{PID: pid, Process: stat.Comm})
	}
	if err := w.look(func(m *Memory, mb float64) { m.BeforeMB, m.PeakMB = mb, mb }); err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(ctx)
	go func() { w.done <- w.run(ctx) }()
	return w, nil
}

func (w *Watch) run(ctx context.Context) error {
	for backoff.Sleep(ctx, sampleEvery) {
		if err := w.look(func(m *Memory, mb float64) { m.PeakMB = max(m.PeakMB, mb) }); err != nil {
			return err
		}
	}
	return nil
}

// Rest ends the watch, waits, and returns what was seen.
func (w *Watch) Rest(ctx context.Context, d time.Duration) ([]Memory, error) {
	if err := w.End(); err != nil {
		return nil, err
	}
	if !backoff.Sleep(ctx, d) {
		return nil, context.Cause(ctx)
	}
	return w.all, w.look(func(m *Memory, mb float64) { m.RestMB = mb })
}

// End ends the watch, and waits.
func (w *Watch) End() error {
	w.stop()
	return <-w.done
}

// look measures all processes once.
func (w *Watch) look(note func(*Memory, float64)) error {
	for i := range w.all {
		mb, err := ResidentMB(w.all[i].PID)
		if err != nil {
			return fmt.Errorf("memory of process %d (%s): %w", w.all[i].PID, w.all[i].Process, err)
		}
		note(&w.all[i], mb)
	}
	return nil
}

// ResidentMB is the memory that a process has.
func ResidentMB(pid int) (float64, error) {
	stat, err := statOf(pid)
	return math.Round(float64(stat.ResidentMemory())/(1<<20)*10) / 10, err
}
