package replica

import (
	"fmt"
	"math/rand/v2"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// changeOfKey is what an operator does to a task with an order key: mostly to the first one of its key.
func (s *story) changeOfKey() (ev taskstate.Event, ok bool) {
	var m *modelTask
	for _, id := range s.order {
		if o := s.tasks[id]; o.line != nil && o.endedAt == 0 && (s.isFirst(o, s.seq) && s.rng.IntN(2) == 0 || s.rng.IntN(6) == 0) {
			m = o
			break
		}
	}
	if m == nil || !s.keyed {
		return ev, false
	}
	s.requests++
	u := &taskstate.Update{Request: s.requests}
	if s.rng.IntN(6) == 0 {
		u.Request = 1 + s.rng.Uint64N(s.requests)
	}
	s.since(u)
	ev = taskstate.Event{ID: m.ID, Domain: m.Domain, Message: "by ann", Update: u, OrderKey: m.line.Key}
	switch s.rng.IntN(20) {
	case 0:
		ev.Domain = otherThan(m.Domain)
	case 1:
		ev.OrderKey = "no key"
	}
	switch s.rng.IntN(3) {
	case 0:
		ev.Kind, ev.CancelRunning = taskstate.Skipped, s.rng.IntN(2) == 0
	case 1:
		ev.Kind = taskstate.Unblocked
		if s.rng.IntN(2) == 0 {
			u.Policy = &taskstate.Policy{MaxAttempts: int32(1 + s.rng.IntN(9))}
		}
	default:
		ev.Kind, ev.OrderKey = taskstate.Changed, ""
		u.IfRevision = []uint64{0, 0, 1, 2}[s.rng.IntN(4)]
		switch s.rng.IntN(5) {
		case 0:
			u.Now = true
		case 1:
			u.DueAt = s.now + s.rng.Int64N(40_000)
		case 2:
			u.Priority = int32(1 + s.rng.IntN(5))
		case 3:
			u.StartWithinMS = 1 + s.rng.Int64N(20_000)
		default:
			u.Whole = &taskstate.Whole{Type: m.Type, Tasklist: m.Tasklist, OrderBlocks: s.rng.IntN(2) == 0}
			u.Priority, u.Policy = 2, storyPolicy
		}
	}
	return ev, true
}

// since dates an update, unless it may have copies at any time.
func (s *story) since(u *taskstate.Update) {
	dice := s.aside()
	if dice.IntN(5) == 0 {
		return
	}
	u.Since = s.now - dice.Int64N(1+dice.Int64N(30_000))
	if u.Request == s.requests && dice.IntN(2) == 0 {
		u.SoleUntil = s.now + dice.Int64N(1000)
	}
}

// crowd has others change the task of an update, some times.
func (s *story) crowd(ev *taskstate.Event) {
	dice := s.aside()
	if ev.Kind != taskstate.Changed || dice.IntN(4) > 0 {
		return
	}
	refused := uint64(dice.IntN(2))
	for range 1 + dice.IntN(8) {
		s.requests++
		m := s.append(&message{events: true, asked: true, carried: make(map[int]carriedRecord)})
		s.add(m, taskstate.Event{
			Kind: taskstate.Changed, ID: ev.ID, Domain: ev.Domain,
			Update: &taskstate.Update{Request: s.requests, Policy: &taskstate.Policy{MaxAttempts: 4}, IfRevision: refused, Since: m.at, SoleUntil: m.at + 1000},
		})
		s.eventAt = m.seq
	}
}

// aside are other dice, so that a seed has the same story without what they are for.
func (s *story) aside() *rand.Rand {
	s.asides++
	return rand.New(rand.NewPCG(uint64(s.now)*0x9e3779b97f4a7c15, s.asides*0xd1b54a32d192ed03))
}

// redriven tells whether an operator's change is of a task that lives on without its key: that is another story.
func (s *story) redriven(ev *taskstate.Event) bool {
	m := s.tasks[ev.ID]
	return ev.Kind.Changes() && m != nil && m.Redriven().Count > 0
}

// compareLines says in what the lines differ that an operator sees from the story, and what tasklists count.
func compareLines(s *story, l *life) any {
	if l.story == nil {
		return nil // a liar's
	}
	heads, behind := make(map[orderKey]*modelTask), make(map[orderKey]int)
	counts := make(map[string]*Census)
	for _, domain := range domains {
		counts[domain] = new(Census)
	}
	for _, id := range s.order {
		m := s.tasks[id]
		c := counts[m.Domain]
		switch m.State {
		case taskstate.Ready:
			c.Ready++
		case taskstate.Running:
			c.Running++
		case taskstate.Backoff:
			c.Backoff++
		}
		if m.line == nil || m.endedAt > 0 {
			continue
		}
		key := orderKey{m.Domain, m.line.Key}
		if behind[key]++; s.isFirst(m, s.seq) {
			heads[key] = m
		}
	}
	for key, n := range behind {
		found, _ := l.r.Lines(&LinesQuery{Domain: key.domain, Key: key.key})
		if m := heads[key]; len(found) != 1 || found[0].Head.ID != m.ID || found[0].Waiting != n-1 {
			return fmt.Sprintf("key %v has %d tasks, the first is %s; an operator sees %+v", key, n, m.ID, found)
		}
	}
	if l.r.gone.max < goneMax {
		return nil // what has ended and is forgotten may come back by a second copy of its stay, as in seed 1464396934039717260, which remembers none
	}
	for _, domain := range domains {
		got, want := l.r.Describe(domain, "mail"), counts[domain]
		if got.Ready != want.Ready || got.Running != want.Running || got.Backoff != want.Backoff {
			return fmt.Sprintf("%s counts %+v, it has %+v", domain, got, *want)
		}
	}
	return nil
}

// keyedPolicies make tasks block their key soon.
var keyedPolicies = []*taskstate.Policy{storyPolicy, policyWith(func(p *taskstate.Policy) { p.MaxAttempts = 1 }), policyWith(func(p *taskstate.Policy) { p.MaxDeliveries = 1 })}

// orderOf is a random order key.
func (s *story) orderOf() *taskstate.Order {
	return &taskstate.Order{Key: []string{"account", "account", "other"}[s.rng.IntN(3)], Blocks: s.rng.IntN(2) == 0}
}

// updatesOf is what two owners have to agree about of what operators and clients have changed.
func updatesOf(t *taskstate.Task) string {
	if t.Extra == nil || t.Extra.Updates == nil {
		return ""
	}
	u := t.Extra.Updates
	return fmt.Sprintf(" updated=%d, last by %d at %d of %d, refused %v; passed %d, now %d", u.Applied, u.Request, u.Seq, u.At, u.Refused, u.Passed, u.PassedNow)
}
