package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/screen"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

const (
	redrawEvery   = 250 * time.Millisecond
	progressEvery = 2 * time.Second
	// An engine that does not answer holds up the view for so long, and is marked in it when its last answer is older.
	answerTimeout = time.Second
	answerStale   = 3 * time.Second
)

// display shows a running demo: the live view on a terminal, lines elsewhere.
type display struct {
	play                *play
	submitted, finished meter
	answers             []answer // of the engine, about each tenant
}

// answer is how the engine last saw a tenant's tasklist.
type answer struct {
	at       time.Time
	tasklist *yardv1.DescribeTasklistResponse
}

func newDisplay(p *play) *display { return &display{play: p, answers: make([]answer, len(p.tenants))} }

// Run shows the demo until ctx ends. It returns no error: a demo whose reader has
// gone away is worked off all the same.
func (v *display) Run(ctx context.Context) error {
	out := v.play.opts.Out
	write := func(text string) { _, _ = io.WriteString(out, text) }
	switch terminal := screen.Of(out); {
	case v.play.opts.JSON:
	case v.play.opts.Interactive && terminal != nil:
		defer terminal.Open()()
		v.loop(ctx, redrawEvery, func(m model) {
			terminal.Show(func(width, height int) []screen.Line { return frame(m, width, height) })
		})
	default:
		write(fmt.Sprintf("three tenants for %v, seed %d\n", v.play.opts.Duration, v.play.opts.Seed))
		write(fmt.Sprintf("meanwhile, in another terminal: %s\n", v.play.opts.elsewhere()))
		v.loop(ctx, progressEvery, func(m model) { write(progress(m)) })
	}
	return nil
}

// loop shows a model at every beat and once at the end. The meters are fed more
// often than lines are written.
func (v *display) loop(ctx context.Context, every time.Duration, show func(model)) {
	var shownAt time.Time
	for {
		v.ask(ctx)
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

// ask asks the engine how it sees the tenants' tasklists. An answer that does not come leaves the last one.
func (v *display) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_ = parallel.Each(ctx, len(v.answers), len(v.answers), func(ctx context.Context, i int) error {
		t, at := v.play.tenants[i], time.Now()
		if tasklist, err := t.client.Wire().DescribeTasklist(ctx, t.tasklist); err == nil {
			v.answers[i] = answer{at, tasklist}
		}
		return nil
	})
}

// observe makes the model of this instant.
func (v *display) observe(now time.Time) model {
	p := v.play
	m := model{elsewhere: p.opts.elsewhere(), bank: p.bank.snapshot(), lookups: int(p.lookups.Load())}
	doing := p.phase.Load()
	m.phase, m.elapsed, m.of = doing.name, now.Sub(doing.at), doing.of
	submitted, finished := 0, 0
	for i, t := range p.tenants {
		c, seen := t.ledger.snapshot(), v.answers[i]
		submitted += c.accepted
		finished += c.finished()
		stale := now.Sub(seen.at) > answerStale
		m.tenants = append(m.tenants, tenantRow{name: t.domain, counts: c, tasklist: seen.tasklist, stale: stale})
		for _, k := range t.kinds {
			if k.MaxConcurrency > 0 {
				m.limit = limitRow{name: k.Name, limit: k.MaxConcurrency, most: c.most}
				for _, slots := range seen.tasklist.GetSlots() {
					if slots.Type == k.Name {
						m.limit.inUse = int(slots.InUse)
					}
				}
			}
			if k.delay == 0 {
				row := t.ledger.wait(k.Name)
				row.Type += k.note()
				m.waits = append(m.waits, row)
			}
		}
	}
	v.submitted.observe(now, submitted)
	v.finished.observe(now, finished)
	m.submitted, m.finished = v.submitted, v.finished
	return m
}
