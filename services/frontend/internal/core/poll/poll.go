// Package poll decides where each poll of a frontend is, and when it ends.
//
//	here ─────► starting (submits are being stored for it) ──► ended: it has their tasks
//	 │  ▲          │
//	 │  └──────────┤ none is stored
//	 ▼             ▼
//	sent to the owner of an epoch ─────────────► ended: matching has answered it, a newer epoch is open, or it is over
//	 │  ▲  │ its partition gave it up: sent to the owner of another one
//	 │  └──┘
//	 ▼ there was no subscriber, or no owner is known
//	waiting ──► sent again, or ended: no owner took it in time
//
// A poll of a tasklist in which nothing waits is here (core/idle). If its worker is drained, a poll rests for a while, and ends.
//
// Owns: these states, and the attempts that polls were given in the last seconds. A poll is never with two owners, which would assign tasks to it twice.
//
// Never does: I/O, or read a clock. The shell does the actions, in their order, and reports what came of them.
//
// On failure: a poll that no owner takes is sent again; polls of an owner that was replaced are answered empty; an attempt that no worker has is
// handed back, once.
package poll

import (
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/heap"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/idle"
)

const (
	// RetryEvery is how soon a poll that found no owner is sent again.
	RetryEvery = 100 * time.Millisecond
	// OverAfter is how long after its time a poll is answered empty that matching did not say to have
	// answered. Matching waits for up to 2 s for what is under way; an owner that lost its shard without a
	// successor answers nothing.
	OverAfter = 4 * time.Second
	// DrainedRest is how long the poll of a drained worker rests. Its worker learns of the drain by the answer, and does not ask more often.
	DrainedRest = 2 * time.Second
)

// Do is what the shell does.
type Do uint8

// The actions.
const (
	// Send sends the poll to the owner of Shard in Epoch, under ID, with so much time Left. If no one is there: Bounced.
	Send Do = iota
	// Answered: matching has answered the poll. Empty answers it without a task, and Unserved that no node serves it. Assign answers it with
	// what it was given, under ID; if no one receives that: TasksBounced. The poll ends with each of them.
	Answered
	Empty
	Unserved
	Assign
	// HandBack makes the tasks of Attempts ready again: no worker of Domain has them.
	HandBack
)

// Action is one.
type Action[T any] struct {
	Do       Do
	Poll     *Poll[T]
	Shard    int
	Epoch    uint64
	ID       uint64
	Left     time.Duration
	Domain   string
	Attempts []Attempt
}

// Drain is that of a worker; the zero value is none.
type Drain struct {
	Stop    bool
	SinceMS int64
}

// Rules are what the settings say now.
type Rules struct {
	// Drain is that of a worker of a domain.
	Drain func(domain, workerID string) Drain
	// MayWait reports whether polls of a tasklist may be here, and are given tasks that start with their submit, AnswerBytes of them at most, and one at
	// least.
	MayWait     func(domain, tasklist string) bool
	AnswerBytes int
}

// Counts count polls that found no owner, whose owner was replaced, and that went to another partition.
type Counts struct{ WithoutOwner, Replaced, Moved int64 }

type state uint8

const (
	fresh state = iota
	here
	starting
	sent
	waiting
	resting
	ended
)

// Poll is one poll.
type Poll[T any] struct {
	// Shell is what the shell keeps of it.
	Shell                                     T
	Domain, Tasklist, Inbox, Worker, WorkerID string
	// Types are those that it takes, none = all; Max is how many tasks.
	Types []string
	Max   int
	// Until is when its time is over.
	Until time.Time
	// Partition is where it goes. Moved: another partition gave it up; Back: to which it comes back.
	Partition   int
	Moved, Back bool

	state  state
	number uint64
	shard  int
	// id is that of its last sending. from is the partition that gave it up.
	id   uint64
	from int
	// ends is when it is answered here, if it is not before; place is that among the others. due is when a waiting one is sent again, not after Until.
	ends  time.Time
	place int
	due   time.Time
	// drain is that of its worker, if that is known.
	drain Drain
	// open counts the tasks that it is to be given once their submits are stored, attempts are those that are.
	open     int
	attempts []Attempt
}

type inbox struct{ domain, name string }

func (at *Poll[T]) inbox() inbox        { return inbox{at.Domain, at.Inbox} }
func (at *Poll[T]) list() idle.Tasklist { return idle.Tasklist{Domain: at.Domain, Name: at.Tasklist} }

// Polls are those that are not answered, as far as matching has reported. They are not safe for concurrent use.
type Polls[T any] struct {
	// Actions are what the shell has to do, which takes them out. Counts are for it, too.
	Actions []Action[T]
	Counts  Counts

	rules Rules
	// epochs are the newest open ones by matching shard, 0 = none is known.
	epochs []uint64
	// last numbers polls as they come, and each sending of one: its id. Reports name that, so a late one of an earlier sending changes nothing.
	last    uint64
	sent    map[uint64]*Poll[T]
	waiting map[uint64]*Poll[T]
	here    map[uint64]*Poll[T]
	idle    idle.Polls
	// byInbox are all by where they are answered, byEnd by when they are answered here.
	byInbox map[inbox]*Poll[T]
	byEnd   heap.Heap[*Poll[T]]
	given   given
	stopped bool
}

// New makes Polls. Epochs are those of the matching shards, which the caller may change. The caller calls Tick now and then.
func New[T any](epochs []uint64, r Rules) *Polls[T] {
	return &Polls[T]{
		rules: r, epochs: epochs, sent: map[uint64]*Poll[T]{}, waiting: map[uint64]*Poll[T]{}, here: map[uint64]*Poll[T]{}, byInbox: map[inbox]*Poll[T]{},
		byEnd: heap.Heap[*Poll[T]]{Less: func(a, b *Poll[T]) bool { return a.ends.Before(b.ends) }, Place: func(at *Poll[T]) *int { return &at.place }},
	}
}

// Len is how many polls are not answered, as far as is known.
func (p *Polls[T]) Len() int { return p.byEnd.Len() }

// Take takes a new poll. If it is not to be here, it is sent to the newest owner of its shard, also if it may not wait.
func (p *Polls[T]) Take(at *Poll[T], now time.Time) {
	p.last++
	at.number, at.ends, at.shard = p.last, at.Until.Add(OverAfter), p.shardOf(at, at.Partition)
	p.byEnd.Push(at)
	p.byInbox[at.inbox()] = at
	if !p.keep(at, now, p.idle.Keep) {
		p.route(at, now)
	}
}

// to changes the state of a poll.
func (p *Polls[T]) to(at *Poll[T], s state) {
	delete(p.sent, at.id)
	delete(p.waiting, at.number)
	delete(p.here, at.number)
	switch at.state = s; s {
	case sent:
		p.sent[at.id] = at
	case waiting:
		p.waiting[at.number] = at
	case here:
		p.here[at.number] = at
	default:
	}
}

// endsAt sets when a poll is answered here.
func (p *Polls[T]) endsAt(at *Poll[T], ends time.Time) {
	at.ends = ends
	p.byEnd.Fix(at)
}

// end ends a poll.
func (p *Polls[T]) end(at *Poll[T], do Do) {
	a := Action[T]{Do: do, Poll: at}
	if do == Assign {
		a.ID = p.given.last
	}
	p.to(at, ended)
	p.idle.Remove(at.number)
	p.byEnd.Remove(at)
	if p.byInbox[at.inbox()] == at {
		delete(p.byInbox, at.inbox())
	}
	p.Actions = append(p.Actions, a)
}

// assign ends a poll with the attempts that it was given.
func (p *Polls[T]) assign(at *Poll[T], now time.Time) {
	p.given.add(at.inbox(), at.attempts, now)
	p.end(at, Assign)
}

// route has a poll that no one has sent to the newest owner of its shard. If none is known it waits. A poll of a drained worker rests.
func (p *Polls[T]) route(at *Poll[T], now time.Time) {
	if at.drain = p.drainOf(at); at.drain != (Drain{}) {
		p.rest(at, now)
		return
	}
	epoch := p.epochs[at.shard]
	if epoch == 0 {
		p.undelivered(at, now)
		return
	}
	p.to(at, fresh)
	p.last++
	at.id = p.last
	p.to(at, sent)
	p.Actions = append(p.Actions, Action[T]{Do: Send, Poll: at, Shard: at.shard, Epoch: epoch, ID: at.id, Left: max(0, at.Until.Sub(now))})
}

// rest keeps the poll of a drained worker for a while, so that its worker comes again no sooner, and answers it then.
func (p *Polls[T]) rest(at *Poll[T], now time.Time) {
	if p.stopped {
		p.end(at, Empty)
		return
	}
	p.to(at, resting)
	ends := now.Add(DrainedRest)
	if at.Until.Before(ends) {
		ends = at.Until
	}
	p.endsAt(at, ends)
}

// undelivered has a poll wait, or ends it if its time would be over. One that was given up goes back to the partition that did, if there is
// an owner: the tasklist's other partitions are not to wait for one that no one serves.
func (p *Polls[T]) undelivered(at *Poll[T], now time.Time) {
	p.Counts.WithoutOwner++
	if from := p.shardOf(at, at.from); at.Moved && !at.Back && from != at.shard && p.epochs[from] != 0 {
		at.shard, at.Partition, at.Back = from, at.from, true
		p.route(at, now)
		return
	}
	at.due = now.Add(RetryEvery)
	if p.stopped || at.due.After(at.Until) {
		p.end(at, Unserved)
		return
	}
	p.to(at, waiting)
}

// Bounced reports that no one took a sending.
func (p *Polls[T]) Bounced(id uint64, now time.Time) {
	if at := p.sent[id]; at != nil {
		p.undelivered(at, now)
	}
}

// Answered reports sendings whose polls matching has answered.
func (p *Polls[T]) Answered(sendings []uint64) {
	for _, id := range sendings {
		if at := p.sent[id]; at != nil {
			p.end(at, Answered)
		}
	}
}

// GaveUp reports that a partition of its tasklist gave a poll up to another one. If there is no such partition, or no time left, it is answered empty. A
// sending that is not known was answered, or its poll was sent on, meanwhile.
func (p *Polls[T]) GaveUp(id uint64, to int, now time.Time) {
	at := p.sent[id]
	switch {
	case at == nil:
	case to < 0 || to >= ids.PartitionsMax || !now.Before(at.Until):
		p.end(at, Empty)
	default:
		p.Counts.Moved++
		at.from, at.shard = at.Partition, p.shardOf(at, to)
		at.Partition, at.Moved, at.Back = to, true, false
		p.route(at, now)
	}
}

// shardOf is the shard of a partition of a poll's tasklist.
func (p *Polls[T]) shardOf(at *Poll[T], partition int) int {
	return ids.MatchingShard(at.Domain, at.Tasklist, partition, len(p.epochs))
}

// Opened takes note of a shard's new owner.
func (p *Polls[T]) Opened(shard int, epoch uint64, now time.Time) {
	if epoch <= p.epochs[shard] {
		return
	}
	p.epochs[shard] = epoch
	replaced := p.those(func(at *Poll[T]) bool { return at.state == sent && at.shard == shard }) // sent to an older one, since epochs only rise
	p.leave(p.idle.Unknown(func(l idle.Tasklist) bool { return ids.MatchingShard(l.Domain, l.Name, 0, len(p.epochs)) == shard }, now), now)
	for _, at := range replaced {
		p.Counts.Replaced++
		p.end(at, Empty)
	}
	p.sendAgain(now, func(at *Poll[T]) bool { return at.shard == shard })
}

// Next is when Tick is due, unless polls come; false: no poll is open.
func (p *Polls[T]) Next() (at time.Time, ok bool) {
	if p.byEnd.Len() == 0 {
		return at, false
	}
	at = p.byEnd.First().ends
	if leaves, ok := p.idle.Next(); ok && leaves.Before(at) {
		at = leaves
	}
	for _, one := range p.waiting {
		if one.due.Before(at) {
			at = one.due
		}
	}
	return at, true
}

// Tick sends waiting polls again, and ends those whose time is over.
func (p *Polls[T]) Tick(now time.Time) {
	p.sendAgain(now, func(at *Poll[T]) bool { return !now.Before(at.due) })
	p.leave(p.idle.Due(now), now)
	for p.byEnd.Len() > 0 && now.After(p.byEnd.First().ends) { // it does not wait, or it was due
		if at := p.byEnd.First(); len(at.attempts) > 0 {
			p.assign(at, now)
		} else {
			p.end(at, Empty)
		}
	}
}

// those are some of all polls, in the order in which they came.
func (p *Polls[T]) those(wanted func(*Poll[T]) bool) (some []*Poll[T]) {
	for _, at := range p.byEnd.All() {
		if wanted(at) {
			some = append(some, at)
		}
	}
	return inOrder(some)
}

func inOrder[T any](some []*Poll[T]) []*Poll[T] {
	slices.SortFunc(some, func(a, b *Poll[T]) int { return cmp.Compare(a.number, b.number) })
	return some
}

// sendAgain sends the waiting polls that are due. Those whose time is over are answered.
func (p *Polls[T]) sendAgain(now time.Time, due func(*Poll[T]) bool) {
	var all []*Poll[T]
	for _, at := range p.waiting {
		if due(at) {
			all = append(all, at)
		}
	}
	for _, at := range inOrder(all) {
		if now.Before(at.Until) {
			p.route(at, now)
		} else {
			p.end(at, Unserved)
		}
	}
}

// drainOf is the drain of the worker of a poll.
func (p *Polls[T]) drainOf(at *Poll[T]) Drain {
	if at.WorkerID == "" {
		return Drain{}
	}
	return p.rules.Drain(at.Domain, at.WorkerID)
}

// DrainsChanged answers the polls that rest, or are here, of workers whose drain has changed.
func (p *Polls[T]) DrainsChanged() {
	for _, at := range p.those(func(at *Poll[T]) bool { return (at.state == resting || at.state == here) && p.drainOf(at) != at.drain }) {
		p.end(at, Empty)
	}
}

// Silent answers the polls of silent and of drained workers that no owner of matching has, so that no further task is granted to them. The others are
// matching's, and those that rest go on doing so.
func (p *Polls[T]) Silent(is func(domain, workerID string) bool) {
	for _, at := range p.those(func(at *Poll[T]) bool {
		return (at.state == waiting || at.state == here) && at.WorkerID != "" && is(at.Domain, at.WorkerID)
	}) {
		p.end(at, Empty)
	}
}

// Stop answers those that no one has; the others are matching's.
func (p *Polls[T]) Stop() {
	p.stopped = true
	for _, at := range p.those(func(at *Poll[T]) bool { return at.state == waiting || at.state == resting || at.state == here }) {
		if at.state == waiting {
			p.end(at, Unserved)
		} else {
			p.end(at, Empty)
		}
	}
}
