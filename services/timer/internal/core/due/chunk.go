package due

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Limits bound one chunk. A single task larger than a byte limit still goes, alone.
type Limits struct {
	// Tasks and Bytes of the whole chunk.
	Tasks, Bytes int
	// Messages of the chunk, the cursor's not among them.
	Messages int
	// MessageTasks and MessageBytes of one message.
	MessageTasks, MessageBytes int
	// Reads is how many messages of the store the records lie in, at most.
	Reads int
}

// recordOverhead is what a record costs in a message at most, besides its own bytes.
const recordOverhead = 6

// Chunk is what is to be stored in one atomic batch: the messages in order, and
// the cursor behind them.
type Chunk struct {
	Messages []Outgoing
	Cursor   Cursor
	// Tasks is how many there are in all messages.
	Tasks int
}

// Outgoing is one message of fired tasks: all of one tasklist and lane. Early ones are on ids.LaneLater.
type Outgoing struct {
	Domain, Tasklist string
	Lane             ids.Lane
	Records          []Ref
	// DueMS is since when each of them should have been fired, Unix ms.
	DueMS   []int64
	handles []handle
	bytes   int
	turn    int
}

// Ref says where a record is stored.
type Ref struct {
	Seq   uint64
	Index uint32
	ID    ids.TaskID
}

// NextChunk takes the next tasks to fire. It returns false where none is due.
// The tasks are chosen from here on: they count as fired for everyone who
// asks, and the table stands still until Commit or Abort.
//
// A clock a little behind the last owner's fires nothing until it has caught up;
// where it is far behind, the cursor is rewound, see Cursor.Ahead.
func (t *Table) NextChunk(nowMS int64, limits Limits) (Chunk, bool) {
	t.mustNotBeFiring()
	t.rewind(nowMS)
	nowMS = min(nowMS, t.lines.nearMS)
	t.next = t.lines.cursor
	t.plan.begin(limits)
	ready := func(line int) bool {
		l := t.next.line(line)
		return t.lines.mayFire(l) && l.instant() <= nowMS && t.lines.waits(line, nowMS) && (!l.inRound() || t.lines.waits(line, l.Round.DueMS))
	}
	for !t.plan.full {
		line, ok := t.lines.turns.next(t.next.lines(), ready, t.lines.weight)
		if !ok {
			break
		}
		t.takeTurn(line, nowMS)
	}
	if t.plan.tasks == 0 {
		return Chunk{}, false
	}
	t.next.EarlyFrom = Rest{t}.earlyFrom(&t.next)
	return Chunk{Messages: t.plan.messages(), Cursor: t.next, Tasks: t.plan.tasks}, true
}

// takeTurn takes the next tasks of a line into the chunk.
func (t *Table) takeTurn(line int, nowMS int64) {
	l := t.next.line(line)
	if !l.inRound() {
		l.Round = Mark{DueMS: nowMS, Seq: t.lastSeq}
	}
	for range turnTasks {
		if !t.lines.waits(line, l.Round.DueMS) {
			return
		}
		d := t.lines.first(line)
		h := d.heap.order[0]
		e := t.entries.at(h)
		record, _ := t.record(h)
		if !t.plan.add(h, e, t.groups.at(e.group), record) {
			t.plan.full = true
			return
		}
		t.lines.domains.removeAt(d, 0)
		e.place = placeChosen
		l.Last = e.key()
	}
}

// Commit ends a chunk that was stored. CursorSeq is the sequence of its cursor in
// the history log, 0 where it is not known; the messages lie right before it.
func (t *Table) Commit(nowMS int64, cursorSeq uint64) {
	taken, chunk, full := map[*domain]int{}, t.plan.tasks, t.plan.full
	for i, m := range t.plan.all {
		taken[t.lines.domains.byName[m.Domain]] += len(m.Records)
		logSeq := uint64(0)
		if n := uint64(len(t.plan.all)); cursorSeq > n {
			logSeq = cursorSeq - n + uint64(i)
		}
		for _, h := range m.handles {
			t.fired(h, nowMS, logSeq)
		}
	}
	t.lines.cursor, t.plan = t.next, planner{}
	t.lines.endRounds()
	if full {
		t.lines.split(taken, chunk, nowMS)
		t.lines.endRounds()
	}
}

// Abort ends a chunk that is known not to have been stored: its tasks wait again.
func (t *Table) Abort() {
	for _, m := range t.plan.all {
		for _, h := range m.handles {
			t.lines.domains.push(t.lines.domainOf(t.entries.at(h)), h)
		}
	}
	t.plan = planner{}
}

// planner files the tasks of a chunk into messages.
type planner struct {
	limits Limits
	tasks  int
	bytes  int
	// full: what is due next does not fit.
	full bool
	all  []Outgoing
	// open is the message that takes the next task of a destination.
	open map[destination]int
	// turns counts the messages of each domain.
	turns map[string]int
	// reads are the messages of the store that the records lie in, last the one of the last record.
	reads map[uint64]bool
	last  uint64
}

// destination is a tasklist and a lane. Tasks with order keys may be of one key, so those of a domain stay in order, whatever their tasklists: queue is
// nil, and the message that is open has the last of them.
type destination struct {
	domain string
	queue  *queue
	lane   ids.Lane
}

// destinationOf is where a task goes. An early one goes where tasks wait that are not due: history parks it again.
func destinationOf(g *group, early bool) destination {
	to := destination{domain: g.Domain, queue: g.queue, lane: g.Lane()}
	switch {
	case early:
		to.lane = ids.LaneLater
	case g.Keyed:
		to.queue = nil
	}
	return to
}

func (p *planner) begin(limits Limits) {
	*p = planner{limits: limits, open: map[destination]int{}, turns: map[string]int{}, reads: map[uint64]bool{}}
}

// add files e, or returns false where it does not fit any more. Those who come
// after it must not be filed either: a chunk is a run of keys without gaps.
func (p *planner) add(h handle, e *entry, g *group, record Key) bool {
	size := int(e.bytes) + recordOverhead
	if p.tasks > 0 && (p.tasks >= p.limits.Tasks || p.bytes+size > p.limits.Bytes) {
		return false
	}
	another := record.Seq != p.last && !p.reads[record.Seq]
	if another && p.limits.Reads > 0 && len(p.reads) >= p.limits.Reads {
		return false
	}
	key := destinationOf(g, e.key() != record)
	i, ok := p.open[key]
	if !ok || p.all[i].Tasklist != g.Tasklist || len(p.all[i].Records) >= p.limits.MessageTasks || p.all[i].bytes+size > p.limits.MessageBytes {
		if len(p.all) >= p.limits.Messages {
			return false
		}
		i = len(p.all)
		p.open[key] = i
		p.all = append(p.all, Outgoing{
			Domain: g.Domain, Tasklist: g.Tasklist, Lane: key.lane, turn: p.turns[g.Domain],
		})
		p.turns[g.Domain]++
	}
	m := &p.all[i]
	m.Records = append(m.Records, Ref{Seq: record.Seq, Index: record.Index, ID: e.id})
	m.DueMS = append(m.DueMS, e.dueMS)
	m.handles = append(m.handles, h)
	m.bytes += size
	if p.last = record.Seq; another {
		p.reads[record.Seq] = true
	}
	p.tasks++
	p.bytes += size
	return true
}

// messages returns them with the domains taking turns, so that none waits
// behind all that another has in this chunk.
func (p *planner) messages() []Outgoing {
	slices.SortStableFunc(p.all, func(a, b Outgoing) int { return cmp.Compare(a.turn, b.turn) })
	return p.all
}
