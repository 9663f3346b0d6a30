package replica

import (
	"cmp"
	"container/list"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

const (
	// commandsMax is how many commands may wait, by their weight, for their task; past it the frontends take no
	// more for this partition. domainCommandsMax is how many of one domain: past it they take
	// no more from that. Both are bounds of memory: what is in the log is waited for in any case.
	commandsMax       = 10_000
	domainCommandsMax = commandsMax / 4
	// questionsMax is how many outcomes may wait for a search; more are refused.
	questionsMax = 10_000
	// endWaitsMax is how many tasks that something waits for are looked at in one tick.
	endWaitsMax = 1000
)

func newEarlyList() earlyList {
	return earlyList{byID: make(map[ids.TaskID]*early), order: list.New(), ofDomain: make(map[string]int)}
}

// of is what waits for a task.
func (l *earlyList) of(id ids.TaskID) []*held {
	if w := l.byID[id]; w != nil {
		return w.waiting
	}
	return nil
}

// add lets h wait, in log order among what waits for its task: one that was searched for comes back late.
func (l *earlyList) add(h *held) {
	w := l.byID[h.ev.ID]
	if w == nil {
		w = &early{id: h.ev.ID}
		w.at, l.byID[w.id] = l.order.PushBack(w), w
	}
	at := len(w.waiting)
	for at > 0 && h.before(w.waiting[at-1]) {
		at--
	}
	w.waiting = slices.Insert(w.waiting, at, h)
	l.count(h, 1)
}

// take takes out what waits for a task.
func (l *earlyList) take(id ids.TaskID) []*held {
	w := l.byID[id]
	if w == nil {
		return nil
	}
	delete(l.byID, id)
	l.order.Remove(w.at)
	for _, h := range w.waiting {
		l.count(h, -1)
	}
	return w.waiting
}

func (l *earlyList) count(h *held, n int) {
	n *= h.weight()
	l.commands += n
	if l.ofDomain[h.ev.Domain] += n; l.ofDomain[h.ev.Domain] == 0 {
		delete(l.ofDomain, h.ev.Domain)
	}
}

// places are where the commands that wait lie, in order.
func (l *earlyList) places() (all []EventPlace) {
	for _, w := range l.byID {
		for _, h := range w.waiting {
			all = append(all, EventPlace{h.seq, uint32(h.place)})
		}
	}
	slices.SortFunc(all, func(a, b EventPlace) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Index, b.Index)) })
	return all
}

// waitAgain takes the commands of a turn that waited as of the snapshot. The snapshot has seen the others.
func (r *Replica) waitAgain(in *Turn) {
	first := 0
	for _, b := range in.Batches {
		for i := range b.Events {
			if place := first + i; r.replay != nil && r.replay.waiting[EventPlace{in.Seq, uint32(place)}] {
				r.wait(&held{ev: &b.Events[i], seq: in.Seq, at: in.At, place: place, replayed: true})
			}
		}
		first += len(b.Events)
	}
}

// ids are the tasks that something waits for.
func (l *earlyList) ids() (all []ids.TaskID) {
	for at := l.order.Front(); at != nil; at = at.Next() {
		all = append(all, at.Value.(*early).id)
	}
	return all
}

// Waiting is what the frontends must know of the commands that wait for their task.
type Waiting struct {
	// Full: no more commands may come, of any domain.
	Full bool
	// Domains are those of which no more may come, sorted.
	Domains []string
}

// Waiting tells whether more commands may come.
func (r *Replica) Waiting() (w Waiting) {
	w.Full = r.early.commands >= commandsMax
	if r.early.commands < domainCommandsMax {
		return w
	}
	for domain, n := range r.early.ofDomain {
		if n >= domainCommandsMax {
			w.Domains = append(w.Domains, domain)
		}
	}
	slices.Sort(w.Domains)
	return w
}

// waitFor tells whether commands of other domains wait until a lane is read: they wait behind the domain that fills it, as messages may.
func (l *earlyList) waitFor(at Queue, passed func(lane ids.Lane, seq uint64, domain string) bool) bool {
	for _, w := range l.byID {
		for _, h := range w.waiting {
			if h.until != nil && h.ev.Domain != at.Domain && !passed(at.Lane, h.until[at.Lane], h.ev.Domain) {
				return true
			}
		}
	}
	return false
}
