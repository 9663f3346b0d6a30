package due

import (
	"math"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

// Config bounds what a Table remembers of the past.
type Config struct {
	// FiredKeepMS is how long a fired stay is remembered, ms.
	FiredKeepMS int64
	// FiredMost is how many fired stays are remembered at most, about 50 bytes each.
	FiredMost int
	// Weight is how many turns a domain has that is apart for each one of others; nil = all have as many.
	Weight func(domain string) int
	// CriticalFailures is how often a task may have failed before it is fired into the least urgent lane; 0 = any number.
	CriticalFailures int
	// BucketMS is how many due times share a bucket, ms; 0 = all tasks are near.
	BucketMS int64
	// HorizonMS is how long before its time a bucket comes near, ms. It comes later if many tasks are near, and at half of this if few are.
	HorizonMS int64
	// NearMost is how many tasks are near. One bucket of more tasks than half of this comes near as a whole.
	NearMost int
	// DueMost is how many tasks are near of buckets whose time has come, if it is more: domains take turns among them.
	DueMost int
}

// Message is the index of one message of the store.
type Message struct {
	// Seq is its stream sequence; messages come in this order.
	Seq uint64
	// AtMS is when it was stored, Unix ms.
	AtMS int64
	// Bucket is the bucket it is filed under.
	Bucket int64
	// Epoch is that of the history owner that wrote it; 0 = the timer.
	Epoch uint64
	// Fence: it holds nothing and lies in no bucket; from here on, tasks of
	// epochs below its own are void.
	Fence bool
	// Early names stays of this bucket that fire at once, all of one Domain and Tasklist.
	Early            []Early
	Domain, Tasklist string
	// Tasks in the order of the message, all due in its bucket, at most far.IndexMost and one. The zero Task stands for a record that
	// cannot be read and is passed over.
	Tasks []Task
}

// Early names a stay that fires early. The zero Early stands for one that cannot be read.
type Early struct {
	ID ids.TaskID
	// Generation is Task.Parkings of that stay.
	Generation uint32
	// Place is where its record lies, Bytes the size of that.
	Place far.Place
	Bytes uint32
}

// Task is the index of one record.
type Task struct {
	ID ids.TaskID
	// DueMS is when it fires, Unix ms.
	DueMS int64
	// Parkings names one stay of the task in the store: of two records with the
	// same number one is void, and a higher one replaces a lower one.
	Parkings uint32
	// Bytes is the size of the record.
	Bytes uint32
	// Failures is how often it has failed.
	Failures int
	Group    Group
}

// Table is the due table of one partition. It is made empty, begins with Resume, is filled with Load, and ready after Loaded.
type Table struct {
	entries slab
	byID    index
	// far are the tasks that are not near, and where they lie.
	far     far.Index
	horizon horizon
	// rest is what is still to be loaded; nil = nothing.
	rest *rest
	// early are the stays that fire before they are due.
	early   map[handle]early
	groups  groups
	buckets buckets
	recent  *recent
	cfg     Config
	lines   lines
	lastSeq uint64
	// nowMS is the time at which the loading began.
	nowMS  int64
	fences fences
	// live is how many tasks are near.
	live int
	// next is the cursor of the chunk that is being stored, plan its messages.
	next Cursor
	plan planner
}

// New returns an empty table.
func New(cfg Config) *Table {
	t := &Table{early: map[handle]early{}, cfg: cfg, horizon: newHorizon(cfg)}
	t.lines = lines{entries: &t.entries, groups: &t.groups, domains: newDomains(&t.entries), weightOf: cfg.Weight, nearMS: math.MinInt64}
	t.groups = newGroups(&t.lines.domains)
	t.buckets = buckets{groups: &t.groups, all: map[int32]*bucket{}}
	t.recent = newRecent(cfg.FiredKeepMS, cfg.FiredMost, &t.groups)
	t.byID.of = &t.entries
	return t
}

// Resume begins the loading: what c covers was fired, of an early stay by either key, and the table writes as epoch. All that was in the store after c was
// read is to be loaded.
func (t *Table) Resume(c Cursor, epoch uint64, nowMS int64) {
	t.lines.cursor, t.nowMS = c, nowMS
	t.lines.cursor.Epoch = epoch
	for n := 1; n < c.lines(); n++ {
		t.lines.apart(n)
	}
	t.horizon.begin(nowMS)
}

// Load adds what one message holds, and returns how many of its tasks are void
// because their writer had been replaced. A message seen before is ignored. It
// must not be called while a chunk is being stored. Before that, EarlyFar says what it needs.
func (t *Table) Load(m Message) (outdated int) {
	t.mustNotBeFiring()
	if m.Seq <= t.lastSeq {
		return 0
	}
	t.lastSeq = m.Seq
	if m.Fence {
		t.fences.raise(m.Seq, m.Epoch)
		return 0
	}
	if t.rest != nil && t.horizon.loaded && len(m.Early) > 0 {
		panic("due: an early message was loaded before the table was whole")
	}
	t.fireEarly(&m)
	outdated = Rest{t}.addAll(&m)
	t.shrink()
	return outdated
}

// add adds a task that is near.
func (t *Table) add(at far.Place, bucket int32, task *Task) {
	if t.recent.has(task.ID, task.Parkings) {
		return
	}
	if known, ok := t.byID.find(task.ID); ok {
		if task.Parkings <= t.entries.at(known).parkings {
			return
		}
		t.fired(known, t.nowMS, 0) // by another owner, if this one does not know
		t.lines.endRounds()
	}
	group := task.Group
	group.Failing = t.cfg.CriticalFailures > 0 && task.Failures > t.cfg.CriticalFailures
	h := t.entries.add(entry{
		id: task.ID, dueMS: task.DueMS, seq: at.Seq, index: at.Index, parkings: task.Parkings,
		group: t.groups.take(group), bucket: bucket, bytes: task.Bytes, place: placeLoading,
	})
	t.byID.add(h)
	t.buckets.at(bucket).live++
	t.groups.at(t.entries.at(h).group).queue.count(1, int64(task.Bytes))
	t.live++
	if !t.horizon.isLoading(bucket) {
		t.lines.queue(h)
	}
}

// fireEarly takes in what fires early by a message. Of two early messages of a stay the first one counts. A stay that is due by then needs none: it
// fires under the key of its record, which comes first.
func (t *Table) fireEarly(m *Message) {
	for i, one := range m.Early {
		h, ok := t.byID.find(one.ID)
		if !ok {
			continue
		}
		e := t.entries.at(h)
		if _, known := t.early[h]; known || m.Seq < e.seq || e.bucket != int32(m.Bucket) || e.parkings != one.Generation || e.dueMS <= m.AtMS {
			continue
		}
		t.early[h] = early{record: e.key(), at: Key{DueMS: m.AtMS, Seq: m.Seq, Index: uint32(i)}}
		t.advance(h)
		if e.place == placeLoading && t.horizon.loaded && m.Seq == t.lastSeq { // no round may cover the early key before the stay has it
			t.lines.noRound = true
		}
	}
}

// advance has an early stay fire under the early key, unless the round under way fires it. Loaded does it for one that is being loaded.
func (t *Table) advance(h handle) {
	e, x := t.entries.at(h), t.early[h]
	if e.place == placeLoading || e.key() == x.at || x.byRecord(t.lines.lineOf(e)) {
		return
	}
	if e.place == placeLate { // too late for the round by either key
		e.setKey(x.at)
		return
	}
	t.lines.domains.removeAt(t.lines.domainOf(e), int(e.place))
	e.setKey(x.at)
	t.lines.queue(h)
}

// Loaded ends the loading, that of all that the store has, or of the buckets that came near. It returns how many tasks of these the store did not have.
func (t *Table) Loaded() (lost int) {
	t.mustNotBeFiring()
	t.lastSeq = max(t.lastSeq, t.lines.cursor.Seq())
	if t.rest != nil {
		t.lastSeq = max(t.lastSeq, t.rest.end)
	}
	t.horizon.last, t.horizon.loaded, t.lines.noRound = t.horizon.to, true, false
	t.horizon.next, lost = t.buckets.nearUpTo(t.horizon.last)
	t.lines.nearMS = t.horizon.nearMS()
	for h := handle(0); uint32(h) < t.entries.size; h++ {
		if t.entries.at(h).place == placeLoading {
			t.resume(h)
		}
	}
	t.lines.endRounds()
	return lost
}

// resume puts an entry where it waits, or forgets it if it was fired.
func (t *Table) resume(h handle) {
	e := t.entries.at(h)
	l := t.lines.lineOf(e)
	x, isEarly := t.early[h]
	if l.fired(e.key()) || isEarly && l.fired(x.at) {
		t.fired(h, t.nowMS, 0)
		return
	}
	if isEarly && !x.byRecord(l) {
		e.setKey(x.at)
	}
	t.lines.queue(h)
}

// Next is when the next chunk may be taken, Unix ms, by a clock that does not go
// back; ok is false while nothing waits that is near.
func (t *Table) Next() (dueMS int64, ok bool) {
	for n := range t.lines.cursor.lines() {
		if d := t.lines.first(n); d != nil {
			l := t.lines.cursor.line(n)
			at := max(d.heap.head().dueMS, l.instant())
			if at <= t.lines.nearMS && t.lines.mayFire(l) && (!ok || at < dueMS) {
				dueMS, ok = at, true
			}
		}
	}
	return dueMS, ok
}

// Cursor covers all that was fired up to now.
func (t *Table) Cursor() Cursor { return t.lines.cursor }

// Len is how many tasks wait.
func (t *Table) Len() int { return t.live + t.buckets.waiting }

// Near is how many of them are near.
func (t *Table) Near() int { return t.live }

// rewind lets firing go on where the cursor is far ahead of the clock.
func (t *Table) rewind(nowMS int64) {
	for n := range t.lines.cursor.lines() {
		l := t.lines.cursor.line(n)
		if l.instant()-nowMS <= rewindAboveMS {
			continue
		}
		if rewound, ok := l.rewound(nowMS); ok {
			*l = rewound
			for h := range t.early { // a round that was cut or set aside may not fire them any more
				t.advance(h)
			}
			t.lines.queueLate(n)
		}
	}
	t.lines.endRounds()
}

// remove forgets an entry.
func (t *Table) remove(h handle) {
	e := t.entries.at(h)
	if e.place >= 0 {
		t.lines.domains.removeAt(t.lines.domainOf(e), int(e.place))
	}
	t.buckets.at(e.bucket).live--
	t.groups.at(e.group).queue.count(-1, -int64(e.bytes))
	t.live--
	delete(t.early, h)
	t.byID.remove(h)
	t.groups.drop(e.group)
	t.entries.remove(h)
}

// fired forgets a chosen entry and remembers its stay.
func (t *Table) fired(h handle, nowMS int64, logSeq uint64) {
	e := t.entries.at(h)
	t.recent.add(firedStay{id: e.id, parkings: e.parkings, group: e.group, atMS: nowMS, logSeq: logSeq})
	t.remove(h)
}

func (t *Table) mustNotBeFiring() {
	if t.plan.tasks > 0 {
		panic("due: the table was changed while a chunk was being stored")
	}
}
