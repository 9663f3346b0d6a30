package due

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// Config bounds what a Table remembers of the past.
type Config struct {
	// FiredKeepMS is how long a fired stay is remembered, ms.
	FiredKeepMS int64
	// FiredMost is how many fired stays are remembered at most, about 80 bytes each.
	FiredMost int
	// Weight is how many turns a domain has that is apart for each one of others; nil = all have as many.
	Weight func(domain string) int
	// CriticalFailures is how often a task may have failed before it is fired into the least urgent lane; 0 = any number.
	CriticalFailures int
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
	// Early names stays of this bucket that fire at once.
	Early []Early
	// Tasks in the order of the message. The zero Task stands for a record that
	// cannot be read and is passed over.
	Tasks []Task
}

// Early names a stay that fires early. The zero Early stands for one that cannot be read.
type Early struct {
	ID ids.TaskID
	// Generation is Task.Parkings of that stay.
	Generation uint32
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

// Table is the due table of one partition. It is made empty, filled with Load,
// and ready after Resume.
type Table struct {
	entries slab
	byID    index
	// early are the stays that fire before they are due.
	early   map[handle]early
	groups  groups
	buckets map[int32]*bucket
	recent  recent
	cfg     Config
	lines   lines
	lastSeq uint64
	// fences that are in the store and raised the epoch, in order.
	fences []fence
	live   int
	// next is the cursor of the chunk that is being stored, plan its messages.
	next Cursor
	plan planner
}

// New returns an empty table.
func New(cfg Config) *Table {
	t := &Table{early: map[handle]early{}, buckets: map[int32]*bucket{}, cfg: cfg}
	t.lines = lines{entries: &t.entries, groups: &t.groups, domains: newDomains(&t.entries), weightOf: cfg.Weight}
	t.groups = newGroups(&t.lines.domains)
	t.recent = recent{keepMS: cfg.FiredKeepMS, most: cfg.FiredMost, groups: &t.groups, stays: map[ids.TaskID]uint64{}}
	t.byID.slab = &t.entries
	return t
}

// Load adds what one message holds, and returns how many of its tasks are void
// because their writer had been replaced. A message seen before is ignored. It
// must not be called while a chunk is being stored.
func (t *Table) Load(m Message) (outdated int) {
	t.mustNotBeFiring()
	if m.Seq <= t.lastSeq {
		return 0
	}
	t.lastSeq = m.Seq
	if m.Fence {
		t.raise(m.Seq, m.Epoch)
		return 0
	}
	b := t.bucket(int32(m.Bucket))
	b.lastSeq = m.Seq
	if len(m.Tasks) > 0 {
		b.lastTasks = m.Seq
	}
	t.fireEarly(&m)
	if t.outdated(&m) {
		b.outdated = append(b.outdated, m.Seq)
		return len(m.Tasks)
	}
	for i := range m.Tasks {
		if m.Tasks[i].ID == (ids.TaskID{}) {
			continue
		}
		t.add(m.Seq, uint32(i), int32(m.Bucket), &m.Tasks[i])
	}
	return 0
}

func (t *Table) add(seq uint64, index uint32, bucket int32, task *Task) {
	if t.recent.has(task.ID, task.Parkings) {
		return
	}
	if known, ok := t.byID.find(task.ID); ok {
		if task.Parkings <= t.entries.at(known).parkings {
			return
		}
		t.remove(known)
		t.lines.endRounds()
	}
	group := task.Group
	group.Failing = t.cfg.CriticalFailures > 0 && task.Failures > t.cfg.CriticalFailures
	h := t.entries.add(entry{
		id: task.ID, dueMS: task.DueMS, seq: seq, index: index, parkings: task.Parkings,
		group: t.groups.take(group), bucket: bucket, bytes: task.Bytes,
	})
	t.byID.add(h)
	t.bucket(bucket).live++
	t.groups.at(t.entries.at(h).group).queue.count(1, int64(task.Bytes))
	t.live++
	t.lines.queue(h)
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
		if _, known := t.early[h]; known || e.bucket != int32(m.Bucket) || e.parkings != one.Generation || e.dueMS <= m.AtMS {
			continue
		}
		t.early[h] = early{record: e.key(), at: Key{DueMS: m.AtMS, Seq: m.Seq, Index: uint32(i)}}
		if !t.lines.domains.loose { // else Resume does it
			t.advance(h)
		}
	}
}

// advance has an early stay fire under the early key, unless the round under way fires it.
func (t *Table) advance(h handle) {
	e, x := t.entries.at(h), t.early[h]
	if e.key() == x.at || x.byRecord(t.lines.lineOf(e)) {
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

// Resume ends the loading: everything up to the cursor's sequences has been
// loaded, what c covers was fired, of an early stay by either key, and from now on
// the table writes as epoch.
func (t *Table) Resume(c Cursor, epoch uint64, nowMS int64) {
	t.mustNotBeFiring()
	t.lines.cursor = c
	t.lines.cursor.Epoch = epoch
	t.lastSeq = max(t.lastSeq, c.Seq())
	for n := 1; n < c.lines(); n++ {
		t.lines.apart(n)
	}
	for _, d := range t.lines.domains.byName {
		d.heap.order = d.heap.order[:0]
	}
	for h := handle(0); uint32(h) < t.entries.size; h++ {
		if t.entries.at(h).place != placeFree {
			t.resume(h, nowMS)
		}
	}
	t.lines.domains.ordered()
	t.lines.endRounds()
}

// resume puts an entry where it waits, or forgets it if it was fired.
func (t *Table) resume(h handle, nowMS int64) {
	e := t.entries.at(h)
	l := t.lines.lineOf(e)
	x, isEarly := t.early[h]
	if l.fired(e.key()) || isEarly && l.fired(x.at) {
		e.place = placeChosen
		t.fired(h, nowMS, 0)
		return
	}
	if isEarly && !x.byRecord(l) {
		e.setKey(x.at)
	}
	t.lines.queue(h)
}

// Next is when the next chunk may be taken, Unix ms, by a clock that does not go
// back; ok is false while nothing waits.
func (t *Table) Next() (dueMS int64, ok bool) {
	for n := range t.lines.cursor.lines() {
		if d := t.lines.first(n); d != nil {
			at := max(d.heap.head().dueMS, t.lines.cursor.line(n).instant())
			if !ok || at < dueMS {
				dueMS, ok = at, true
			}
		}
	}
	return dueMS, ok
}

// Cursor covers all that was fired up to now.
func (t *Table) Cursor() Cursor { return t.lines.cursor }

// Len is how many tasks wait.
func (t *Table) Len() int { return t.live }

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
	t.bucket(e.bucket).live--
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
