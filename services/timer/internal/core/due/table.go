package due

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// Config bounds what a Table remembers of the past.
type Config struct {
	// FiredKeepMS is how long a fired stay is remembered, ms.
	FiredKeepMS int64
	// FiredMost is how many fired stays are remembered at most, about 60 bytes each.
	FiredMost int
	// VoidKeepMS is for how long a cancelled task is not purged, ms, so that who
	// lost the answer to its cancel can ask again.
	VoidKeepMS int64
}

// Message is the index of one message of the store.
type Message struct {
	// Seq is its stream sequence; messages come in this order.
	Seq uint64
	// AtMS is when it was stored, Unix ms.
	AtMS int64
	// Bucket is the bucket it is filed under.
	Bucket int64
	// Tombstones are ids whose earlier records in this bucket are void.
	Tombstones []ids.TaskID
	// Tasks in the order of the message. The zero Task stands for a record that
	// cannot be read and is passed over.
	Tasks []Task
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
	Group Group
}

// Table is the due table of one partition. It is made empty, filled with Load,
// and ready after Resume.
type Table struct {
	entries slab
	heap    heap
	late    []handle
	byID    index
	groups  groups
	buckets map[int32]*bucket
	recent  recent
	cfg     Config
	// cursor covers what was fired; it may be ahead of the stored one by the
	// end of a round, which says the same.
	cursor  Cursor
	lastSeq uint64
	live    int
	chosen  []handle
	next    Cursor
	plan    planner
}

// New returns an empty table.
func New(cfg Config) *Table {
	t := &Table{
		groups:  newGroups(),
		buckets: map[int32]*bucket{},
		cfg:     cfg,
		recent:  recent{keepMS: cfg.FiredKeepMS, most: cfg.FiredMost, stays: map[ids.TaskID]uint32{}},
	}
	t.heap = heap{slab: &t.entries, loose: true}
	t.byID.slab = &t.entries
	return t
}

// Load adds what one message holds. A message seen before is ignored. It must
// not be called while a chunk is being stored.
func (t *Table) Load(m Message) {
	t.mustNotBeFiring()
	if m.Seq <= t.lastSeq {
		return
	}
	t.lastSeq = m.Seq
	b := t.bucket(int32(m.Bucket))
	b.lastSeq = m.Seq
	for _, id := range m.Tombstones {
		if h, ok := t.byID.find(id); ok && t.entries.at(h).bucket == int32(m.Bucket) {
			t.void(h, m.AtMS)
		}
	}
	for i := range m.Tasks {
		if m.Tasks[i].ID == (ids.TaskID{}) {
			continue
		}
		t.add(m.Seq, uint32(i), int32(m.Bucket), &m.Tasks[i])
	}
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
	}
	h := t.entries.add(entry{
		id: task.ID, dueMS: task.DueMS, seq: seq, index: index, parkings: task.Parkings,
		group: t.groups.take(task.Group), bucket: bucket, bytes: task.Bytes,
	})
	t.byID.add(h)
	t.bucket(bucket).live++
	t.groups.at(t.entries.at(h).group).queue.waiting++
	t.live++
	t.queue(h)
}

// queue puts a live entry where it waits: the heap or, where it came too late
// for the round that would fire it, the list for after the round.
func (t *Table) queue(h handle) {
	e := t.entries.at(h)
	if t.cursor.inRound() && e.dueMS <= t.cursor.Round.DueMS && e.seq > t.cursor.Round.Seq {
		e.place = placeLate
		t.late = append(t.late, h)
		return
	}
	t.heap.push(h)
}

// Resume ends the loading: everything up to the cursor's sequences has been
// loaded, what c covers was fired, and from now on the table writes as epoch.
func (t *Table) Resume(c Cursor, epoch uint64, nowMS int64) {
	t.mustNotBeFiring()
	t.cursor = c
	t.cursor.Epoch = epoch
	t.lastSeq = max(t.lastSeq, c.seq())
	all := t.heap.order
	t.heap.order = nil
	kept := all[:0]
	for _, h := range all {
		e := t.entries.at(h)
		switch {
		case c.Fired(e.key()):
			e.place = placeChosen
			t.fired(h, nowMS)
		case c.inRound() && e.dueMS <= c.Round.DueMS && e.seq > c.Round.Seq:
			t.queue(h)
		default:
			e.place = place(len(kept))
			kept = append(kept, h)
		}
	}
	t.heap.order = kept
	t.heap.build()
	t.settle()
}

// Next is when the next chunk may be taken, Unix ms; ok is false while nothing waits.
func (t *Table) Next() (dueMS int64, ok bool) {
	if t.heap.len() == 0 {
		return 0, false
	}
	return max(t.heap.head().dueMS, t.cursor.Base.DueMS, t.cursor.Round.DueMS), true
}

// Cursor covers all that was fired up to now.
func (t *Table) Cursor() Cursor { return t.cursor }

// Len is how many tasks wait.
func (t *Table) Len() int { return t.live }

// settle ends the round when nothing of it is left.
func (t *Table) settle() {
	if !t.cursor.inRound() || t.heap.len() > 0 && t.heap.head().dueMS <= t.cursor.Round.DueMS {
		return
	}
	t.cursor = Cursor{Epoch: t.cursor.Epoch, Base: t.cursor.Round}
	late := t.late
	t.late = nil
	for _, h := range late {
		// A slot may have been freed, and even used again, since it came here.
		if t.entries.at(h).place == placeLate {
			t.heap.push(h)
		}
	}
}

// void marks a live entry as cancelled.
func (t *Table) void(h handle, atMS int64) {
	e := t.entries.at(h)
	if !e.live() {
		return
	}
	t.retire(h)
	e.place = placeVoid
	b := t.bucket(e.bucket)
	b.void = append(b.void, h)
	b.voidMS = max(b.voidMS, atMS)
	if !t.heap.loose {
		t.settle()
	}
}

// retire takes a live entry out of what waits, and out of the counts.
func (t *Table) retire(h handle) {
	e := t.entries.at(h)
	if e.place >= 0 {
		t.heap.removeAt(int(e.place))
	}
	t.bucket(e.bucket).live--
	t.groups.at(e.group).queue.waiting--
	t.live--
}

// remove forgets an entry.
func (t *Table) remove(h handle) {
	e := t.entries.at(h)
	if e.live() {
		t.retire(h)
	}
	t.byID.remove(h)
	t.groups.drop(e.group)
	t.entries.remove(h)
}

// fired forgets a chosen entry and remembers its stay.
func (t *Table) fired(h handle, nowMS int64) {
	e := t.entries.at(h)
	t.recent.add(e.id, e.parkings, nowMS)
	t.remove(h)
}

func (t *Table) mustNotBeFiring() {
	if t.next.inRound() {
		panic("due: the table was changed while a chunk was being stored")
	}
}
