package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	redrawEvery   = 250 * time.Millisecond
	progressEvery = 2 * time.Second
)

// stage is what the demo is doing. It is safe for concurrent use.
type stage struct {
	mu   sync.Mutex
	name string
	at   time.Time
	of   time.Duration
}

// enter begins a stage that takes at most so long; 0 = unknown.
func (s *stage) enter(name string, of time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name, s.at, s.of = name, time.Now(), of
}

func (s *stage) since() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *stage) show(m *model, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.phase, m.elapsed, m.of = s.name, now.Sub(s.at), s.of
}

// display shows a running demo: the live view on a terminal, lines elsewhere.
type display struct {
	demo                *demo
	submitted, finished meter
}

func newDisplay(d *demo) *display { return &display{demo: d} }

// Run shows the demo until ctx ends. It returns no error: a demo whose reader has
// gone away is worked off all the same.
func (v *display) Run(ctx context.Context) error {
	out := v.demo.opts.Out
	switch {
	case v.demo.opts.JSON:
		return nil
	case v.demo.opts.Interactive && isTerminal(out):
		s := openScreen(out)
		defer s.close()
		v.loop(ctx, redrawEvery, func(m model) {
			width, height := s.size()
			s.draw(frame(m, width, height))
		})
	default:
		_, _ = fmt.Fprintf(out, "three tenants for %v, seed %d\n", v.demo.opts.Duration, v.demo.opts.Seed)
		_, _ = fmt.Fprintf(out, "meanwhile, in another terminal: %s\n", v.demo.opts.elsewhere())
		v.loop(ctx, progressEvery, func(m model) { _, _ = io.WriteString(out, progress(m)) })
	}
	return nil
}

// loop shows a model at every beat and once at the end. The meters are fed more
// often than lines are written.
func (v *display) loop(ctx context.Context, every time.Duration, show func(model)) {
	var shownAt time.Time
	for {
		now := time.Now()
		m := v.observe(now)
		if now.Sub(shownAt) >= every-redrawEvery/2 {
			shownAt = now
			show(m)
		}
		if !backoff.Sleep(ctx, redrawEvery) {
			show(v.observe(time.Now()))
			return
		}
	}
}

// observe makes the model of this instant.
func (v *display) observe(now time.Time) model {
	d := v.demo
	m := model{elsewhere: d.opts.elsewhere(), bank: d.bank.snapshot(), limit: limitRow{name: typePayout, limit: payoutsMax}}
	d.stage.show(&m, now)
	m.looked = int(d.looked.Load())
	submitted, finished := 0, 0
	for _, t := range d.tenants {
		c := t.ledger.snapshot()
		seen := d.probe.last(t.domain)
		l := seen.tasklist
		submitted += c.accepted
		finished += c.finished()
		m.tenants = append(m.tenants, tenantRow{name: t.domain, counts: c, tasklist: l, stale: now.Sub(seen.askedAt) > probeStale})
		for _, slots := range l.Slots {
			if slots.Type == typePayout {
				m.limit.inUse = int(slots.InUse)
			}
		}
		if t.domain == domainPayouts {
			m.limit.most = c.most
		}
		m.waits = append(m.waits, waitRows(t)...)
	}
	v.submitted.observe(now, submitted)
	v.finished.observe(now, finished)
	m.submitted = throughput{submitted, v.submitted.rate(), v.submitted.history()}
	m.finished = throughput{finished, v.finished.rate(), v.finished.history()}
	return m
}

// waitRows has a row for each type that is not only delayed.
func waitRows(t *tenant) []waitRow {
	var rows []waitRow
	for _, taskType := range t.types {
		if taskType.Name == typeFollowUp {
			continue
		}
		waits := t.ledger.wait(taskType.Name)
		rows = append(rows, waitRow{
			label: taskType.Name + noteOn(taskType.Name), count: len(waits),
			p50: quantile(waits, 0.5), p95: quantile(waits, 0.95), p99: quantile(waits, 0.99), max: quantile(waits, 1),
		})
	}
	return rows
}

// noteOn says what makes a type wait.
func noteOn(taskType string) string {
	switch taskType {
	case typeReset:
		return fmt.Sprintf(" (priority %d)", priorityReset)
	case typeReceipt:
		return fmt.Sprintf(" (priority %d)", priorityReceipt)
	case typeNewsletter:
		return fmt.Sprintf(" (priority %d)", priorityNewsletter)
	case typePayout:
		return fmt.Sprintf(" (%d at once)", payoutsMax)
	default:
		return ""
	}
}

// progress is the model in one line.
func progress(m model) string {
	var ready, running, waiting int64
	failed, dead := 0, 0
	for _, t := range m.tenants {
		ready += t.tasklist.Ready
		running += t.tasklist.Running
		waiting += t.tasklist.Waiting + t.tasklist.Backoff
		failed += t.counts.failed
		dead += t.counts.givenUp
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s submitted (%.0f/s), %s finished (%.0f/s)", activity(m),
		whole(m.submitted.total), m.submitted.perSecond, whole(m.finished.total), m.finished.perSecond)
	fmt.Fprintf(&s, "; %d ready, %d running, %d waiting; %s attempts failed, %s tasks dead; slots %d/%d\n",
		ready, running, waiting, whole(failed), whole(dead), m.limit.inUse, m.limit.limit)
	return s.String()
}
