package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
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
	found map[string]*sentAnswer
	order []string
}

// begin does what is left of the start.
func (s *Shard) begin() {
	st := &s.start
	if !st.begun {
		st.begun = true
		st.found = map[string]*sentAnswer{}
		st.left = len(s.lanes)
		s.sendFences()
		for p := range s.lanes {
			s.questions.Add(asked{Kind: AskBookings, Partition: p})
			s.questions.Add(asked{Kind: AskUndelivered, Partition: p})
		}
	}
}

// fence notes that a partition is fenced.
func (st *start) fence(now time.Duration) {
	if !st.fenced {
		st.fenced, st.fencedAt = true, now
	}
}

// undelivered takes in what a partition has to be sent again. An inbox gets no more tasks than its poll takes: the owner before may have been granted
// more, and handed back what was too much.
func (st *start) undelivered(grants []Undelivered, lanes []*lane) {
	st.left--
	for i := range grants {
		g := &grants[i]
		at := g.Trigger.ID.Partition()
		if g.ReplyTo == "" || at >= len(lanes) {
			continue
		}
		a := st.found[g.ReplyTo]
		if a == nil {
			a = &sentAnswer{replyTo: g.ReplyTo, domain: g.Domain, json: g.JSON}
			st.found[g.ReplyTo] = a
			st.order = append(st.order, g.ReplyTo)
		}
		one := lanes[at].grantedBefore(g)
		if len(a.grants) >= g.Max {
			one.task = nil
		}
		a.grants = append(a.grants, one)
	}
}

// grantedBefore is an attempt that an owner before was granted: as if this one had been, but history waits for no receipt of it.
func (l *lane) grantedBefore(g *Undelivered) grant {
	from := &origin{list: &list{List: &limit.List{Tasklist: table.Tasklist{Domain: g.Domain}}}, scarce: ids.Scarce(g.Nonce)}
	return grant{batch: &batch{lane: l, nonce: g.Nonce, grabs: []grab{{trigger: g.Trigger, from: from, decided: true}}, unconfirmed: 1}, task: g.Task}
}

// redeliver sends again what owners before may not have sent, each inbox once, and opens the shard. A worker that has the tasks ignores them. So an
// undelivered repeat says nothing, but an inbox whose worker says that it has got nothing is known: all of its grants are handed back. A grant that
// comes later than startWait is sent if its inbox has been sent none.
func (s *Shard) redeliver() {
	st := &s.start
	ready := st.fenced && (st.left == 0 || s.now.Mono-st.fencedAt >= startWait)
	if !ready {
		return
	}
	for _, inbox := range st.order {
		if a := s.answers.again(st.found[inbox], s.cfg.AnswerBytesMax, s.now.Mono); a != nil {
			s.fx.Answers = append(s.fx.Answers, a.again())
		}
	}
	clear(st.found)
	st.order = nil
	if !st.open {
		st.open, s.fx.Open = true, true
	}
}
