package locate

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Search asks the other stores for a task that is not in memory.
type Search struct {
	ID ids.TaskID
	// Domain is the caller's.
	Domain string
	// Command: a command waits for it. If it waits in the timer store, and is of the domain, it is fired now.
	Command bool
	// Redrive: there are redrives among the commands, so its dead letter is read, too.
	Redrive bool
}

// DeadLetter names one in its stream.
type DeadLetter struct {
	Domain, Tasklist string
	ID               ids.TaskID
	Seq              uint64
}

// Found is the answer to a Search.
type Found struct {
	Search
	// Coming: it waits in the timer store and fires now; if it does not come, it is asked for again.
	Coming bool
	// Archived, Waiting and Unread are where it was found; the archive is asked first, but for commands the timer is, which says Coming for
	// Waiting. The Position of an unread one is where it lies, Before is that of the stay before.
	Archived, Waiting, Unread *taskstate.Task
	// DeadLetter is its one, and where that lies (only for a redrive).
	DeadLetter    *taskstate.Task
	DeadLetterSeq uint64
	// Unsure: it was not found, or only as dead, and may lie unread in a lane where no search finds it: it was fired, which the timer has forgotten.
	Unsure bool
	// Ends are the last sequences of the lanes, as of after the timer was asked.
	Ends [ids.Lanes]uint64
}

// newest is the last stay that a search has found.
func (in *Found) newest() (last *taskstate.Task) {
	for _, t := range [...]*taskstate.Task{in.Archived, in.Waiting, in.Unread} {
		if t != nil && (last == nil || t.Parkings > last.Parkings) {
			last = t
		}
	}
	return last
}

// forgetEnd leaves out an end in the archive after which the task came back: what else was found is a later stay.
func (in *Found) forgetEnd() {
	if last := in.newest(); in.Archived != nil && (last.Parkings > in.Archived.Parkings || in.Coming && in.Archived.State == taskstate.Dead) {
		in.Archived = nil
	}
}

// end is what decides of the end that the archive has: it may be kept for long.
func (in *Found) end() *taskstate.Task {
	if in.Archived == nil {
		return nil
	}
	t := *in.Archived
	t.Payload, t.Result, t.Attempt.Progress, t.Steps = taskstate.Blob{}, taskstate.Blob{}, taskstate.Blob{}, nil
	return &t
}

// searching is a search for commands under way.
type searching struct {
	// asked: it has been given out, for the commands of this domain.
	asked  bool
	domain string
	// again: its answer may be out of date.
	again bool
}

// question is a search for the outcomes that wait; again: its answer may be out of date, since the
// task has left memory meanwhile.
type question struct {
	waiting []*Request
	again   bool
}

// Search looks for the task of a command that waits in the other stores. In a takeover Resume does.
func (l *Locator) Search(r *Request) {
	if !l.live {
		return
	}
	r.until = nil
	under, ok := l.searching[r.Ev.ID]
	if ok && under.asked && under.domain == r.Ev.Domain {
		under.again = true
		l.searching[r.Ev.ID] = under
	}
	l.want(r.Ev.ID)
}

// Resume ends a takeover: it searches for each task that commands wait for, and that is not in memory.
func (l *Locator) Resume(p Partition) {
	l.live = true
	for at := l.order.Front(); at != nil; at = at.Next() {
		id := at.Value.(*line).id
		if t, left := p.Memory(id); t == nil || left {
			l.searchAll(id)
		}
	}
}

func (l *Locator) searchAll(id ids.TaskID) {
	for _, r := range l.of(id) {
		l.Search(r)
	}
}

// Left says that a task has left memory: an earlier answer about it is out of date. If it is in the timer store, commands that wait for it
// have it looked for there; for a dead one only redrives wait, and those behind them.
func (l *Locator) Left(t *taskstate.Task) {
	if q := l.asking[Search{ID: t.ID, Domain: t.Domain}]; q != nil {
		q.again = true
	}
	if t.State == taskstate.Waiting || t.State == taskstate.Dead {
		l.searchAll(t.ID)
	}
}

// want begins a search, one at a time for each task: two callers must not both be given it.
func (l *Locator) want(id ids.TaskID) {
	if _, ok := l.searching[id]; !ok {
		l.searching[id] = searching{}
		l.wanted = append(l.wanted, Search{ID: id, Command: true})
	}
}

// wantRest searches for the commands that no search has answered for.
func (l *Locator) wantRest(id ids.TaskID) {
	for _, r := range l.of(id) {
		if r.until == nil {
			l.want(id)
			return
		}
	}
}

// HandOut adds the searches that are to be made to all. One for commands asks for the caller whose command has waited for longest.
func (l *Locator) HandOut(all []Search) []Search {
	for _, want := range l.wanted {
		if want.Command && !l.fill(&want) {
			delete(l.searching, want.ID) // decided meanwhile
			continue
		}
		all = append(all, want)
	}
	l.wanted = l.wanted[:0]
	return all
}

func (l *Locator) fill(want *Search) (open bool) {
	for _, r := range l.of(want.ID) {
		want.Redrive = want.Redrive || r.Redrive() // also one that waits for the lanes: what is found decides about it again
		if r.until == nil && !open {
			want.Domain, open = r.Ev.Domain, true
		}
	}
	if open {
		l.searching[want.ID] = searching{asked: true, domain: want.Domain}
	}
	return open
}
