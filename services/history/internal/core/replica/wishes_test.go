package replica

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// wish is an event: one that fits, one that was sent before, or one that is wrong.
func (s *story) wish(seq uint64) taskstate.Event {
	id := s.order[s.rng.IntN(len(s.order))]
	m := s.tasks[id]
	if ev, ok := s.changeOfKey(); ok && s.rng.IntN(4) == 0 {
		return ev
	}
	switch n := s.rng.IntN(100); {
	case n < 15 && len(s.sent) > 0:
		if ev := s.sent[s.rng.IntN(len(s.sent))]; !s.redriven(&ev) {
			return ev
		}
	case n < 18 && len(s.unborn) > 0:
		return taskstate.Event{Kind: taskstate.Cancel, ID: s.unborn[s.rng.IntN(len(s.unborn))], Domain: "shop"}
	case n < 20:
		return taskstate.Event{Kind: taskstate.Cancel, ID: ids.NewTaskID(time.UnixMilli(1), 0, 99), Domain: "shop"}
	case n < 32:
		from := []string{m.Domain, m.Domain, "rival", otherThan(m.Domain), ""}
		return taskstate.Event{Kind: taskstate.Cancel, ID: id, Domain: from[s.rng.IntN(callers(m))], Message: "why"}
	}
	if ev, ok := s.redriveOf(m); ok {
		return ev
	}
	ev := s.fitting(m)
	switch n := s.rng.IntN(100); {
	case n < 5:
		ev.Domain = []string{"rival", otherThan(m.Domain)}[s.rng.IntN(2)]
	case n < 10:
		ev.Fence.Version += uint32(s.rng.IntN(3)) - 1
	case n < 15:
		ev.Fence.Nonce++
	case n < 20:
		ev.Fence.Position = ids.NewPosition(1+s.rng.Uint64N(seq+seqGap), ids.Lane(s.rng.IntN(7)))
		if s.rng.IntN(2) == 0 {
			ev.ID = ids.NewTaskID(time.UnixMilli(1), 0, 99)
		}
	case n < 25:
		ev.Fence.Position = s.log[s.rng.IntN(len(s.log))].position()
	}
	return ev
}

// isFirst tells whether all tasks of the order key of m with an earlier place have ended by the event at a place of the log.
func (s *story) isFirst(m *modelTask, at uint64) bool {
	for _, o := range s.tasks {
		if o.line == nil || o.Domain != m.Domain || o.line.Key != m.line.Key {
			continue
		}
		earlier := o.at.Seq() < m.at.Seq() || o.at.Seq() == m.at.Seq() && o.line.Index < m.line.Index
		if earlier && (o.endedAt == 0 || o.endedAt > at) {
			return false
		}
	}
	return true
}

func otherThan(domain string) string {
	if domain == domains[0] {
		return domains[1]
	}
	return domains[0]
}

func (m *message) position() ids.Position {
	pos := ids.NewPosition(m.seq, m.lane)
	if m.domain == "" {
		return pos.InShared()
	}
	return pos
}

// queue is what it belongs to if its domain lags.
func (m *message) queue() Queue { return Queue{m.lane, m.domain} }

// fitting is an event that fits the state of m.
func (s *story) fitting(m *modelTask) taskstate.Event {
	ev := taskstate.Event{ID: m.ID, Fence: m.Token(), Domain: m.Domain}
	waits := m.Order() != nil && !s.isFirst(m, s.seq) // no owner has sent its trigger
	if m.State != taskstate.Running && (waits || s.rng.IntN(4) == 0) {
		ev.Kind = taskstate.Lapse
		return ev
	}
	if m.State != taskstate.Running {
		ev.Kind, ev.Worker, ev.Poll = taskstate.Started, taskstate.NewWorker("w", ""), uint32(s.rng.IntN(3))
		ev.Limits = storyPaths[s.rng.IntN(len(storyPaths))]
		ev.Fence.Version++
		ev.Fence.Nonce = s.rng.Uint64N(1000)
		return ev
	}
	switch n := s.rng.IntN(100); {
	case n < 25:
		ev.Kind, ev.Data = taskstate.Succeeded, taskstate.Blob{Data: []byte("result")}
	case n < 60:
		ev.Kind, ev.Message = taskstate.Failed, "flaky"
		ev.ErrType = []string{"", "slow", "final"}[s.rng.IntN(3)]
		ev.DelayMS = []int64{0, 15_000, 20_000}[s.rng.IntN(3)]
		ev.NonRetryable = s.rng.IntN(8) == 0
	case n < 75:
		ev.Kind = taskstate.Heartbeat
	case n < 85:
		ev.Kind = taskstate.Released
	default:
		ev.Kind, ev.Undelivered = taskstate.Expired, s.rng.IntN(2) == 0
	}
	return ev
}

// sameDomainFirst puts the unborn of one domain first, and returns how many of the first n those are.
func (s *story) sameDomainFirst(n int) (same int) {
	var first, rest []ids.TaskID
	for i, id := range s.unborn {
		if i < n && domainOf(id) == domainOf(s.unborn[0]) {
			first = append(first, id)
		} else {
			rest = append(rest, id)
		}
	}
	s.unborn = append(first, rest...)
	return len(first)
}
