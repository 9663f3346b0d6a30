package grab

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
)

// Times, on the clock of the turn.
const (
	// HeardAfter is when an answer counts as received, if no one has said otherwise and the server then answers.
	HeardAfter = 250 * time.Millisecond
	// StoppedAfter is after how long without a turn a shard was stopped: while an answer may not have been received,
	// it takes one within HeardAfter.
	StoppedAfter = 2 * HeardAfter
	// BouncedWithin is for how long an answer may turn out to be undelivered: a worker may take seconds to
	// find out that its connection is dead.
	BouncedWithin = 10 * time.Second
	// RepeatWithin is for how long an answer may be sent again: a dead connection is found out within.
	RepeatWithin = 5 * time.Second
)

// Answers are those that hold tasks, for as long as they may turn out to be undelivered. Use NewAnswers.
type Answers struct {
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
	grants  []Grant
	// confirmed: it counts as received. bounced: there was no subscriber.
	confirmed, bounced bool
}

// NewAnswers returns none. Their IDs follow last.
func NewAnswers(last uint64, now time.Duration) Answers {
	return Answers{last: last, now: now, byID: map[uint64]*sent{}, byInbox: map[string]*sent{}, found: map[string]*sent{}}
}

// Begin begins a turn. If the shard was stopped before, the report that there was no subscriber may only come now.
func (a *Answers) Begin(now time.Duration) {
	if now-a.now >= StoppedAfter {
		for _, one := range a.queue[a.confirmed:] {
			one.at = now
		}
	}
	a.now = now
}

// Prove notes when a round trip to the server began that has ended.
func (a *Answers) Prove(began time.Duration) { a.proven = max(a.proven, began) }

// Proven is when the last round trip to the server began that has ended.
func (a *Answers) Proven() time.Duration { return a.proven }

// Len counts the answers that may turn out to be undelivered.
func (a *Answers) Len() int { return len(a.byID) }

// Unconfirmed reports whether an answer does not count as received yet.
func (a *Answers) Unconfirmed() bool { return a.confirmed < len(a.queue) }

// Send is the answer out with the tasks of a poll of a domain, as far as they fit. back are the grants that do not: they are to be handed back.
func (a *Answers) Send(out Answer, domain string, grants []Grant, bytesMax int) (_ Answer, back []Grant) {
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

func (a *Answers) add(one *sent) uint64 {
	a.last++
	if a.last == 0 {
		a.last++
	}
	one.id, one.firstAt, one.at = a.last, a.now, a.now
	a.byID[one.id], a.byInbox[one.replyTo] = one, one
	a.queue = append(a.queue, one)
	return one.id
}

// Bounce takes in that an answer was not delivered. It returns the grants that are to be handed back; confirm: that confirms them.
func (a *Answers) Bounce(id uint64) (back []Grant, confirm bool) { return a.bounce(a.byID[id]) }

// BounceOf does so with the last answer to an inbox of a domain.
func (a *Answers) BounceOf(inbox, domain string) (back []Grant, confirm bool) {
	if one := a.byInbox[inbox]; one != nil && one.domain == domain {
		return a.bounce(one)
	}
	return nil, false
}

func (a *Answers) bounce(one *sent) (back []Grant, confirm bool) {
	if one == nil || one.bounced {
		return nil, false
	}
	one.bounced = true
	return one.grants, !one.confirmed
}

// Repeat are the answers that may have been lost with the connection, to be sent again. A worker that has one ignores it. An undelivered repeat
// says nothing: a worker that has its tasks waits no more. An old grant is left to its deadline: a worker
// that gets it now would count from now, and the attempt may be another's before.
func (a *Answers) Repeat() (all []Answer) {
	for _, one := range a.queue[a.confirmed:] {
		if one.bounced || a.now-one.firstAt >= RepeatWithin {
			continue
		}
		one.at = a.now
		all = append(all, one.again())
	}
	return all
}

// again is the answer as it is sent again: no one hears whether there was a subscriber.
func (one *sent) again() Answer {
	out := Answer{ReplyTo: one.replyTo, JSON: one.json}
	for _, g := range one.grants {
		if g.Task != nil {
			out.Tasks = append(out.Tasks, g.Task)
		}
	}
	return out
}

// Find takes in a grant of an owner before, which may not have been received. An inbox gets no more tasks than its poll takes: the owner before may have
// been granted more, and handed back what was too much.
func (a *Answers) Find(g *Undelivered, grant Grant) {
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

// Redeliver are the answers that owners before may not have sent, each inbox once. A worker that has the tasks ignores them. So an undelivered repeat
// says nothing, but an inbox whose worker says that it has got nothing is known: all of its grants are handed back. back are those of inboxes of
// which that is known already.
func (a *Answers) Redeliver(bytesMax int) (all []Answer, back []Grant) {
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

// Confirm counts as received what was sent long enough before a round trip to the server, which would have
// brought the word that there was no subscriber. It forgets what cannot be undelivered any more.
func (a *Answers) Confirm() {
	for ; a.Unconfirmed() && a.proven-a.queue[a.confirmed].at >= HeardAfter; a.confirmed++ {
		one := a.queue[a.confirmed]
		one.confirmed = true
		for i := range one.grants {
			g := &one.grants[i]
			g.Task = nil
			if !one.bounced {
				g.of.unconfirmed--
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

// Unproven reports whether a round trip would confirm one.
func (a *Answers) Unproven() bool {
	return a.Unconfirmed() && a.now-a.queue[a.confirmed].at >= HeardAfter
}

// Wake is when a round trip confirms the next one. Where one is under way, its end is a turn.
func (a *Answers) Wake(w time.Duration) time.Duration {
	if a.Unconfirmed() && !a.Unproven() {
		w = min(w, a.queue[a.confirmed].at+HeardAfter)
	}
	return w
}
