package locate

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

const (
	// CommandsMax is how many commands may wait, by their weight, for their task; past it the frontends take no
	// more for this partition. DomainCommandsMax is how many of one domain: past it they take
	// no more from that. Both are bounds of memory: what is in the log is waited for in any case.
	CommandsMax       = 10_000
	DomainCommandsMax = CommandsMax / 4
	// A task that should come, and does not, is looked for again at each of the first looksQuick calls of Expire, and every looksRest
	// calls in the end.
	looksQuick, looksRest = 16, 64
	// ExpireMax is how many tasks that something waits for are looked at in one Expire.
	ExpireMax = 1000
)

// Partition is the state of a partition.
type Partition interface {
	// Memory is what memory has of a task, nil = nothing; left: it is there for repeated questions only.
	Memory(id ids.TaskID) (t *taskstate.Task, left bool)
	// Unread reports whether a message of a domain is not read.
	Unread(pos ids.Position, domain, tasklist string) bool
	// Passed reports whether all that a lane has of a domain up to a sequence is read.
	Passed(lane ids.Lane, seq uint64, domain string) bool
}

// Decisions carries out what was decided, at once.
type Decisions interface {
	// Conclude gives a request its verdict.
	Conclude(r *Request, v taskstate.Verdict)
	// Decide decides about a request by what memory has.
	Decide(r *Request)
	// Bring brings the task of a redrive back, whose letter is known.
	Bring(r *Request)
	// DropDeadLetter deletes a dead letter whose task came back before.
	DropDeadLetter(l DeadLetter)
}

// Locator keeps what waits. It is not safe for concurrent use.
type Locator struct {
	// live: the takeover is over.
	live bool
	// byID is the commands that wait for each task, in log order; order is these tasks, in the order in which they were looked at last.
	byID  map[ids.TaskID]*line
	order *list.List
	// commands counts them by their weight, ofDomain those of each domain.
	commands int
	ofDomain map[string]int
	// searching are the searches for commands under way; asking are the outcomes that wait for a search, questions counts them.
	searching map[ids.TaskID]searching
	asking    map[Search]*question
	questions int
	wanted    []Search
}

// line is what waits for one task.
type line struct {
	id      ids.TaskID
	waiting []*Request
	at      *list.Element
}

// New makes the locator of an owner that takes over.
func New() *Locator {
	return &Locator{
		byID: make(map[ids.TaskID]*line), order: list.New(), ofDomain: make(map[string]int),
		searching: make(map[ids.TaskID]searching), asking: make(map[Search]*question),
	}
}

func (l *Locator) of(id ids.TaskID) []*Request {
	if w := l.byID[id]; w != nil {
		return w.waiting
	}
	return nil
}

// Wait keeps a copy of a command, which waits for its task: the rest of the message must not stay in memory with it. An earlier answer
// to a search counts no more.
func (l *Locator) Wait(r *Request) {
	kept := r.copied()
	kept.until, kept.deadLetter = nil, nil
	if r.Answer != nil && !r.Promised {
		r.Answer.Waits(r.I)
	}
	l.add(kept)
}

func (r *Request) copied() *Request {
	kept, ev := *r, *r.Ev
	kept.Ev = &ev
	return &kept
}

// add lets r wait, in log order among what waits for its task: one that was searched for comes back late.
func (l *Locator) add(r *Request) {
	w := l.byID[r.Ev.ID]
	if w == nil {
		w = &line{id: r.Ev.ID}
		w.at, l.byID[w.id] = l.order.PushBack(w), w
	}
	at := len(w.waiting)
	for at > 0 && r.before(w.waiting[at-1]) {
		at--
	}
	w.waiting = slices.Insert(w.waiting, at, r)
	l.count(r, 1)
}

// Take takes out what waits for a task, in log order.
func (l *Locator) Take(id ids.TaskID) []*Request {
	w := l.byID[id]
	if w == nil {
		return nil
	}
	delete(l.byID, id)
	l.order.Remove(w.at)
	for _, r := range w.waiting {
		l.count(r, -1)
	}
	return w.waiting
}

func (l *Locator) count(r *Request, n int) {
	n *= r.weight()
	l.commands += n
	if l.ofDomain[r.Ev.Domain] += n; l.ofDomain[r.Ev.Domain] == 0 {
		delete(l.ofDomain, r.Ev.Domain)
	}
}

// Waits reports whether commands wait for a task.
func (l *Locator) Waits(id ids.TaskID) bool { return l.byID[id] != nil }

// Commands are copies of those that wait, in log order, each with its place there. They share what is not changed any more.
func (l *Locator) Commands() (all []taskstate.Event) {
	for _, w := range l.byID {
		for _, r := range w.waiting {
			r.Locate()
			all = append(all, *r.Ev)
		}
	}
	slices.SortFunc(all, func(a, b taskstate.Event) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Index, b.Index))
	})
	return all
}

// WaitAgain has a command wait that did as of a snapshot.
func (l *Locator) WaitAgain(ev *taskstate.Event) {
	l.Wait(&Request{Ev: ev, Seq: ev.Seq, Place: int(ev.Index), At: ev.At, Replayed: true})
}

// Waiting is what the frontends must know of the commands that wait for their task.
type Waiting struct {
	// Full: no more commands may come, of any domain.
	Full bool
	// Domains are those of which no more may come, sorted.
	Domains []string
}

// Waiting tells whether more commands may come.
func (l *Locator) Waiting() (w Waiting) {
	w.Full = l.commands >= CommandsMax
	if l.commands < DomainCommandsMax {
		return w
	}
	for domain, n := range l.ofDomain {
		if n >= DomainCommandsMax {
			w.Domains = append(w.Domains, domain)
		}
	}
	slices.Sort(w.Domains)
	return w
}

// Weight is as how many commands those of a domain count; "" = those of all.
func (l *Locator) Weight(domain string) int {
	if domain == "" {
		return l.commands
	}
	return l.ofDomain[domain]
}

// OthersWait reports whether commands of other domains than one wait until a lane is read: they wait behind the domain that fills it, as messages may.
func (l *Locator) OthersWait(lane ids.Lane, domain string, p Partition) bool {
	for _, w := range l.byID {
		for _, r := range w.waiting {
			if r.until != nil && r.Ev.Domain != domain && !p.Passed(lane, r.until[lane], r.Ev.Domain) {
				return true
			}
		}
	}
	return false
}

// BehindRedrive reports whether a command lies behind a redrive that waits, of a task that is dead: what it is about is known when that is carried out.
func (l *Locator) BehindRedrive(r *Request, t *taskstate.Task) bool {
	return t.State == taskstate.Dead && slices.ContainsFunc(l.of(t.ID), func(w *Request) bool {
		return w.Redrive() && w.before(r) && OfDomain(w.Ev, t)
	})
}

// Expire ends what waits for a task that did not come: every lane has passed the end of the log that it could lie in. It looks at some, those not
// looked at for longest first.
func (l *Locator) Expire(p Partition, d Decisions) {
	for range min(ExpireMax, len(l.byID)) {
		first := l.order.Front()
		if first == nil {
			return
		}
		brought := false
		for _, r := range l.Take(first.Value.(*line).id) {
			switch {
			case brought:
				d.Decide(r)
			case l.stillComing(r, p):
				l.add(r)
			case r.deadLetter != nil:
				brought = true
				d.Bring(r)
			case r.dead != nil && r.Redrive():
				ConcludeRedrive(r, r.dead, d)
			case r.dead != nil:
				foundArchived(r, r.dead, d)
			default:
				d.Conclude(r, NotFound())
			}
		}
	}
}

func (l *Locator) stillComing(r *Request, p Partition) bool {
	if r.until == nil {
		return true
	}
	for lane := range ids.Lane(ids.Lanes) {
		if !p.Passed(lane, r.until[lane], r.Ev.Domain) {
			return true
		}
	}
	if t, left := p.Memory(r.Ev.ID); r.coming || t != nil && left && t.State == taskstate.Waiting {
		// It is somewhere: it was parked here, or a timer owner said that it comes. It is looked for again, less and less often.
		if r.looks++; r.looks <= looksQuick || r.looks&(r.looks-1) == 0 || r.looks%looksRest == 0 {
			l.Search(r)
		}
		return true
	}
	return false
}

// Check says what is wrong, or nil: what must hold after every step. It looks at everything, so it is for tests and simulations.
func (l *Locator) Check(p Partition) error {
	commands, sum := 0, 0
	for id, w := range l.byID {
		if w.id != id || w.at.Value != w || len(w.waiting) == 0 {
			return fmt.Errorf("what waits for task %s is out of line, or nothing does", id)
		}
		for i, r := range w.waiting {
			commands += r.weight()
			if r.Ev.ID != id || i > 0 && r.Seq < w.waiting[i-1].Seq {
				return fmt.Errorf("what waits for task %s is out of order: event %d of message %d", id, i, r.Seq)
			}
			if t, left := p.Memory(id); t != nil && !left && t.State != taskstate.Waiting && t.State != taskstate.Dead {
				return fmt.Errorf("a command waits for task %s, which is %s", id, t.State)
			}
		}
	}
	for _, n := range l.ofDomain {
		sum += n
	}
	if l.order.Len() != len(l.byID) || commands != l.commands || sum != commands {
		return fmt.Errorf("%d commands of %d tasks wait, %d of %d are counted, of all domains %d", commands, len(l.byID), l.commands, l.order.Len(), sum)
	}
	return nil
}
