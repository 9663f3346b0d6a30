package match

import (
	"time"
)

// start is how an owner takes its shard over: it fences every partition, sends again what
// may not have reached its polls, and then is open.
//
//	fence ──► true in the first partition ──► all have listed what is to be sent again ──► open
//	                        └────────────────── or startWait later ────────────────────►─┘
type start struct {
	begun, open bool
	// fenced: a fence was applied, the first one at fencedAt.
	fenced   bool
	fencedAt time.Duration
	// left counts partitions that have not answered.
	left int
	// found are grants to be sent again, by inbox; order is that of the inboxes.
	found map[string]*Answer
	order []string
}

// begin does what is left of the start.
func (s *Shard) begin() {
	st := &s.start
	if !st.begun {
		st.begun = true
		st.found = map[string]*Answer{}
		st.left = len(s.lanes)
		s.sendFences()
		for p := range s.lanes {
			s.asks.add(&question{Ask: Ask{Kind: AskBookings, Partition: p}})
			s.asks.add(&question{Ask: Ask{Kind: AskUndelivered, Partition: p}})
		}
	}
}

// fence notes that a partition is fenced.
func (st *start) fence(now time.Duration) {
	if !st.fenced {
		st.fenced, st.fencedAt = true, now
	}
}

// undelivered takes in what a partition has to be sent again.
func (st *start) undelivered(grants []Undelivered) {
	st.left--
	for i := range grants {
		g := &grants[i]
		if g.ReplyTo == "" {
			continue
		}
		a := st.found[g.ReplyTo]
		if a == nil {
			a = &Answer{ReplyTo: g.ReplyTo, JSON: g.JSON}
			st.found[g.ReplyTo] = a
			st.order = append(st.order, g.ReplyTo)
		}
		a.Tasks = append(a.Tasks, g.Task)
	}
}

// redeliver sends again what owners before may not have sent, each inbox all of its
// grants at once, and opens the shard. A worker that has them ignores them. A grant that comes later
// than startWait is sent when it comes: it is too late for most.
func (s *Shard) redeliver() {
	st := &s.start
	ready := st.fenced && (st.left == 0 || s.now.Mono-st.fencedAt >= startWait)
	if !ready {
		return
	}
	for _, inbox := range st.order {
		a := st.found[inbox]
		most, bytes, n := s.cfg.AnswerBytesMax, 0, 0
		if a.JSON {
			most /= 2
		}
		for n < len(a.Tasks) && (n == 0 || bytes+len(a.Tasks[n]) <= most) {
			bytes += len(a.Tasks[n])
			n++
		}
		a.Tasks = a.Tasks[:n]
		s.fx.Answers = append(s.fx.Answers, *a)
	}
	clear(st.found)
	st.order = nil
	if !st.open {
		st.open, s.fx.Open = true, true
	}
}
