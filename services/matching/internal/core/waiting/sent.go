package waiting

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
)

// Times, on the clock of the turn.
const (
	// StoppedAfter is after how long without a turn a shard was stopped: while an answer may not have been received,
	// it takes one within grab.HeardAfter.
	StoppedAfter = 2 * grab.HeardAfter
	// BouncedWithin is for how long an answer may turn out to be undelivered: a worker may take seconds to
	// find out that its connection is dead.
	BouncedWithin = 10 * time.Second
)

// answers are those with tasks, for as long as they may turn out to be undelivered.
type answers struct {
	last uint64
	now  time.Duration
	// proven is when the last round trip to the server began that has ended.
	proven time.Duration
	byID   map[uint64]*sent
	// byInbox has the last one of each inbox.
	byInbox map[string]*sent
	// queue is in the order of sending; the first forgotten of it are nil, those up to confirmed are confirmed.
	queue                []*sent
	forgotten, confirmed int
	// found are grants of owners before, by inbox; order is that of the inboxes.
	found map[string]*sent
	order []string
}

// sent is one of them.
type sent struct {
	id uint64
	// firstAt is when it was sent, at when last, or when the shard went on after a stop.
	firstAt, at time.Duration
	// replyTo, domain and json are its poll's. The grants have their tasks until it is confirmed, but for those of owners before that were not sent again.
	replyTo string
	domain  string
	json    bool
	grants  []grab.Grant
	// confirmed: it counts as received. bounced: there was no subscriber.
	confirmed, bounced bool
}

// newAnswers returns none. Their IDs follow last.
func newAnswers(last uint64, now time.Duration) answers {
	return answers{last: last, now: now, byID: map[uint64]*sent{}, byInbox: map[string]*sent{}, found: map[string]*sent{}}
}

// begin begins a turn. If the shard was stopped before, the report that there was no subscriber may only come now.
func (a *answers) begin(now time.Duration) {
	if now-a.now >= StoppedAfter {
		for _, one := range a.queue[a.confirmed:] {
			one.at = now
		}
	}
	a.now = now
}

// unconfirmed reports whether an answer does not count as received yet.
func (a *answers) unconfirmed() bool { return a.confirmed < len(a.queue) }

// send is the answer out with the tasks of a poll of a domain, as far as they fit. back are the grants that do not: they are to be handed back.
func (a *answers) send(out grab.Answer, domain string, grants []grab.Grant, bytesMax int) (_ grab.Answer, back []grab.Grant) {
	bytes, most := 0, pairing.AnswerBytes(out.JSON, bytesMax)
	out.Tasks = make([][]byte, 0, len(grants))
	kept := grants[:0]
	for _, g := range grants {
		if bytes+len(g.Task) > most && len(out.Tasks) > 0 {
			back = append(back, g)
			continue
		}
		bytes += len(g.Task)
		out.Tasks, kept = append(out.Tasks, g.Task), append(kept, g)
	}
	if len(kept) > 0 {
		out.ID = a.add(&sent{replyTo: out.ReplyTo, domain: domain, json: out.JSON, grants: kept})
	}
	return out, back
}

func (a *answers) add(one *sent) uint64 {
	a.last++
	if a.last == 0 {
		a.last++
	}
	one.id, one.firstAt, one.at = a.last, a.now, a.now
	a.byID[one.id], a.byInbox[one.replyTo] = one, one
	a.queue = append(a.queue, one)
	return one.id
}

// bounceID takes in that an answer was not delivered. It returns the grants that are to be handed back; confirm: that confirms them.
func (a *answers) bounceID(id uint64) (back []grab.Grant, confirm bool) { return a.bounce(a.byID[id]) }

// bounceOf does so with the last answer to an inbox of a domain.
func (a *answers) bounceOf(inbox, domain string) (back []grab.Grant, confirm bool) {
	if one := a.byInbox[inbox]; one != nil && one.domain == domain {
		return a.bounce(one)
	}
	return nil, false
}

func (a *answers) bounce(one *sent) (back []grab.Grant, confirm bool) {
	if one == nil || one.bounced {
		return nil, false
	}
	one.bounced = true
	return one.grants, !one.confirmed
}

// repeat are the answers that may have been lost with the connection, to be sent again. A worker that has one ignores it. An undelivered repeat
// says nothing: a worker that has its tasks waits no more. An old grant is left to its deadline: a worker
// that gets it now would count from now, and the attempt may be another's before.
func (a *answers) repeat() (all []grab.Answer) {
	for _, one := range a.queue[a.confirmed:] {
		if one.bounced || a.now-one.firstAt >= grab.RepeatWithin {
			continue
		}
		one.at = a.now
		all = append(all, one.again())
	}
	return all
}

// again is the answer as it is sent again: no one hears whether there was a subscriber.
func (one *sent) again() grab.Answer {
	out := grab.Answer{ReplyTo: one.replyTo, JSON: one.json}
	for _, g := range one.grants {
		if g.Task != nil {
			out.Tasks = append(out.Tasks, g.Task)
		}
	}
	return out
}

// find takes in a grant of an owner before, which may not have been received. An inbox gets no more tasks than its poll takes: the owner before may have
// been granted more, and handed back what was too much.
func (a *answers) find(g *grab.Undelivered, grant grab.Grant) {
	one := a.found[g.ReplyTo]
	if one == nil {
		one = &sent{replyTo: g.ReplyTo, domain: g.Domain, json: g.JSON}
		a.found[g.ReplyTo] = one
		a.order = append(a.order, g.ReplyTo)
	}
	if len(one.grants) >= g.Max {
		grant.Task = nil
	}
	one.grants = append(one.grants, grant)
}

// redeliver are the answers that owners before may not have sent, each inbox once. A worker that has the tasks ignores them. So an undelivered repeat
// says nothing, but an inbox whose worker says that it has got nothing is known: all of its grants are handed back. back are those of inboxes of
// which that is known already.
func (a *answers) redeliver(bytesMax int) (all []grab.Answer, back []grab.Grant) {
	for _, inbox := range a.order {
		found := a.found[inbox]
		if one := a.byInbox[inbox]; one != nil { // a second answer reaches no worker
			for _, g := range found.grants {
				g.Task = nil
				if one.grants = append(one.grants, g); one.bounced {
					back = append(back, g)
				}
			}
			continue
		}
		bytes, most := 0, pairing.AnswerBytes(found.json, bytesMax)
		for i := range found.grants {
			g := &found.grants[i]
			if bytes += len(g.Task); i > 0 && bytes > most {
				g.Task = nil
			}
		}
		a.add(found)
		all = append(all, found.again())
	}
	clear(a.found)
	a.order = nil
	return all, back
}

// confirm counts as received what was sent long enough before a round trip to the server, which would have
// brought the word that there was no subscriber. It forgets what cannot be undelivered any more.
func (a *answers) confirm() {
	for ; a.unconfirmed() && a.proven-a.queue[a.confirmed].at >= grab.HeardAfter; a.confirmed++ {
		one := a.queue[a.confirmed]
		one.confirmed = true
		for i := range one.grants {
			g := &one.grants[i]
			g.Task = nil
			if !one.bounced {
				g.Received()
			}
		}
	}
	for ; a.forgotten < a.confirmed && a.now-a.queue[a.forgotten].at >= BouncedWithin; a.forgotten++ {
		one := a.queue[a.forgotten]
		a.queue[a.forgotten] = nil
		delete(a.byID, one.id)
		if a.byInbox[one.replyTo] == one {
			delete(a.byInbox, one.replyTo)
		}
	}
	if a.forgotten > len(a.queue)/2 { // not at each: the queue is of seconds
		a.queue = slices.Delete(a.queue, 0, a.forgotten)
		a.confirmed -= a.forgotten
		a.forgotten = 0
	}
}

// unproven reports whether a round trip would confirm one.
func (a *answers) unproven() bool {
	return a.unconfirmed() && a.now-a.queue[a.confirmed].at >= grab.HeardAfter
}

// wake is when a round trip confirms the next one. Where one is under way, its end is a turn.
func (a *answers) wake(w time.Duration) time.Duration {
	if a.unconfirmed() && !a.unproven() {
		w = min(w, a.queue[a.confirmed].at+grab.HeardAfter)
	}
	return w
}
