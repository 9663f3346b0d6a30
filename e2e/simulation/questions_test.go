package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
)

// question is an Ask on its way to a history owner, and what it has answered so far.
type question struct {
	matchingsim.Ask
	p *matchProc
	// of answers.
	of  *proc
	out matchingsim.AskOutcome
	// after is the last task of the pages so far.
	after ids.TaskID
	done  bool
}

// ask puts a question to one of the owners of a partition.
func (p *matchProc) ask(a matchingsim.Ask) {
	q := &question{Ask: a, p: p, out: matchingsim.AskOutcome{Question: a}}
	p.do(3*time.Second, q.failed)
	p.s.after(p.latency(), func() {
		var all []*proc
		for _, of := range p.s.parts[a.Partition].living() {
			if of.owner.Live() {
				all = append(all, of)
			}
		}
		switch {
		case len(all) == 0:
			p.do(p.latency(), q.failed)
		case p.s.fault(lostAnswers, 50):
		default:
			q.of = all[p.s.dice.IntN(len(all))]
			q.of.do(q.of.latency(), q.arrive)
		}
	})
}

func (q *question) failed() { q.answer(matchingsim.AskOutcome{Question: q.Ask, Failed: true}) }

// answer tells the asker, once.
func (q *question) answer(out matchingsim.AskOutcome) {
	if !q.done {
		q.done = true
		q.p.owner.Put(func(in *matchingsim.Inputs) { in.Answers = append(in.Answers, out) })
	}
}

func (q *question) reply() { q.p.do(q.p.latency(), func() { q.answer(q.out) }) }

// arrive begins to answer. What is counted is counted as of the end of the log.
func (q *question) arrive() {
	if q.Kind == matchingsim.AskRetrigger {
		if q.of.owner.Retrigger(q.Domain, q.p.shard.number) {
			q.reply()
		}
		return
	}
	all := q.of.w.subjects[events]
	if len(all) == 0 {
		q.page()
		return
	}
	q.readTo(all[len(all)-1])
}

func (q *question) readTo(last *historysim.Message) {
	switch {
	case q.done || !q.of.owner.Live():
	case q.of.owner.GrabsDecided(last.Seq):
		q.page()
	default:
		q.of.do(20*time.Millisecond, func() { q.readTo(last) })
	}
}

// page answers one page.
func (q *question) page() {
	w, more := q.of.w, false
	if !q.of.owner.Live() {
		return
	}
	if q.Kind == matchingsim.AskUndelivered {
		limit := 1 + w.dice.IntN(4)
		all := q.of.owner.Undelivered(q.p.shard.number, q.p.epoch, q.after, limit)
		for _, u := range all {
			q.after = u.Grant.Task.ID
			w.check.holds(u.Grant.Task.ID, u.Grant.Token)
			q.out.Undelivered = append(q.out.Undelivered, matchingsim.Undelivered{
				Domain: u.Poll.Domain, ReplyTo: u.Poll.ReplyTo, JSON: u.Poll.JSON, Max: int(u.Poll.Max), Task: encodeGrant(u.Grant.Task.ID, u.Grant.Token),
				Trigger: ids.Trigger{ID: u.Grant.Task.ID, Version: u.Grant.Token.Version, Position: u.Grant.Token.Position}, Nonce: u.Grant.Token.Nonce,
			})
		}
		more = len(all) == limit
	} else {
		q.out.Superseded = q.out.Superseded || q.of.owner.Overtaken(q.p.shard.number, q.p.epoch)
		page := q.of.owner.Bookings(historysim.BookingsQuery{
			Shard: q.p.shard.number, Domain: q.Domain, Types: q.Types, All: q.Kind == matchingsim.AskRunning && len(q.Types) == 0, After: q.after, BytesMax: 64 + w.dice.IntN(400),
		})
		for i := range page.Groups {
			g := &page.Groups[i]
			for b := g.Packed; len(b) > 0; b = b[ids.BookingBytes:] {
				q.p.m.check.atShard(w, b, q.p.shard.number, "held")
				q.out.Running = append(q.out.Running, matchingsim.Held{
					Domain: g.Domain, Tasklist: g.Tasklist, Type: g.Type, Group: g.Group, Path: refs(g.Limits), Member: string(b[:ids.BookingBytes]), DeadlineMS: g.DeadlineAt,
				})
			}
		}
		q.after, more = page.Last, !page.Last.IsZero()
	}
	if more {
		q.of.do(q.of.latency(), q.page)
		return
	}
	q.reply()
}
