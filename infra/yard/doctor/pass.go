package doctor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// errTooMany: the pass holds as many tasks as it may; it begins again with a part of them.
var errTooMany = errors.New("too many tasks for one pass")

// candidatesMax bounds the findings of one code that a look takes to the next one.
const candidatesMax = 10_000

// part says which ids a pass is about: those whose random half, divided by of, leaves at.
type part struct{ at, of uint64 }

func (p part) has(id ids.TaskID) bool { return binary.BigEndian.Uint64(id[8:])%p.of == p.at }

// halves are the two parts that a part is made of.
func (p part) halves() []part { return []part{{p.at, 2 * p.of}, {p.at + p.of, 2 * p.of}} }

// inParts reads each part, or its halves where it holds too much.
func inParts(todo []part, read func(part) error) error {
	for len(todo) > 0 {
		of := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if err := read(of); errors.Is(err, errTooMany) {
			todo = append(todo, of.halves()...)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// pass is what is known of one partition, of a part of its tasks. It takes stores in the order of the fields of order: a task
// that moves meanwhile goes the same way, so it is met at least once.
type pass struct {
	partition int
	part      part
	// only, if not nil, are the tasks that it is about.
	only map[ids.TaskID]bool
	// onlyBatches are the batches that it is about, if not nil.
	onlyBatches map[string]bool
	most        int
	// began is the server's time before anything was read.
	began time.Time
	// quarantined: something of this partition is in quarantine, so what is missing may be there.
	quarantined bool
	deadLetters *deadLetters
	kept        retentions

	cp *logv1.Checkpoint
	// head is that of the snapshot that cp names; nil = there is none.
	head   *logv1.SnapshotHead
	cursor *logv1.Cursor
	fence  uint64
	index  index

	tasks map[ids.TaskID]*task
	ends  map[ids.TaskID]end
	// died is when the archive stored the ends of dead tasks.
	died map[ids.TaskID]time.Time
	// keyRecords are the last records of unique keys, by subject; keyOf is the subject of a waiting task's key, keyFor for how long
	// a task that has ended keeps its key, ms.
	keyRecords map[string]keyRecord
	keyOf      map[ids.TaskID]string
	keyFor     map[ids.TaskID]int64
	// calls are the callbacks of batches that are over.
	calls map[ids.TaskID]call

	found   map[Code][]Finding
	missed  map[Code]int
	scanned Scanned
}

// task is where a task is that has not ended, as far as the stores say.
type task struct {
	domain string
	entry  timerEntry
	submit submit
	// inSnapshot: the snapshot has it.
	inSnapshot bool
}

// entryState is what became of an entry of the timer store.
type entryState uint8

const (
	nowhere entryState = iota
	waits
	fired
)

// timerEntry is the last entry of a task in the timer store.
type timerEntry struct {
	seq, bucket int64
	// dueMS is when it fires: with early before it is due.
	dueMS             int64
	index, generation uint32
	state             entryState
	early             bool
}

// submit is the last record of a task on a lane.
type submit struct {
	seq        uint64
	atMS       int64
	generation uint32
	// done: it had come into the state before the snapshot. void: it was stored too late.
	done, void bool
}

// end is what the archive has of a task. A task that comes back from the dead letters ends again, after a later stay.
type end struct {
	seq        uint64
	finishedMS int64
	digest     uint32
	generation uint32
	state      int8
}

// keyRecord is the last one of a unique key.
type keyRecord struct {
	seq      uint64
	id       ids.TaskID
	freeAtMS int64
	at       time.Time
	key      string
}

func newPass(partition int, of part, only map[ids.TaskID]bool, most int) *pass {
	return &pass{
		partition: partition, part: of, only: only, most: most,
		index: newIndex(), tasks: map[ids.TaskID]*task{}, ends: map[ids.TaskID]end{}, died: map[ids.TaskID]time.Time{}, keyRecords: map[string]keyRecord{}, keyOf: map[ids.TaskID]string{}, keyFor: map[ids.TaskID]int64{},
		calls: map[ids.TaskID]call{},
		found: map[Code][]Finding{}, missed: map[Code]int{},
	}
}

func (p *pass) keep(id ids.TaskID) bool {
	return p.part.has(id) && (p.only == nil || p.only[id])
}

func (p *pass) full() error {
	if len(p.tasks)+len(p.ends)+len(p.keyRecords)+len(p.calls) > p.most {
		return errTooMany
	}
	return nil
}

func (p *pass) report(f Finding) {
	if len(p.found[f.Code]) >= candidatesMax {
		p.missed[f.Code]++
		return
	}
	f.section = section{sectionPartition, p.partition}
	p.found[f.Code] = append(p.found[f.Code], f)
}

func (p *pass) task(id ids.TaskID, domain string) *task {
	t := p.tasks[id]
	if t == nil {
		t = &task{domain: domain}
		p.tasks[id] = t
	}
	return t
}

func at(stream string, seq uint64) string { return fmt.Sprintf("%s #%d", stream, seq) }

// logRecord is a record of a stream.
type logRecord interface {
	UnmarshalVT([]byte) error
	GetLogVersion() uint32
}

// decode reads a message of a stream, and reports one that it cannot read.
func (p *pass) decode(stream string, r natslog.Record, into logRecord) bool {
	f := Finding{Where: at(stream, r.Seq)}
	if err := into.UnmarshalVT(r.Data); err != nil {
		f.Code, f.What = Unreadable, err.Error()
	} else if err := logversion.Check(into.GetLogVersion()); err != nil {
		f.Code, f.What = NewerRecord, err.Error()
	} else {
		return true
	}
	p.report(f)
	return false
}

// taskID reads the id of a record, and reports one that is none.
func (p *pass) taskID(stream string, seq uint64, raw []byte) (ids.TaskID, bool) {
	id, err := ids.TaskIDFromBytes(raw)
	if err != nil {
		p.report(Finding{Code: Unreadable, Where: at(stream, seq), What: "a record of it: " + err.Error()})
		return id, false
	}
	return id, p.keep(id)
}

// ends compares the last sequences of the stores, read after them, with what the checkpoint and the cursor have seen.
func (p *pass) lengths(log, timer, archive uint64) {
	behind := func(stream string, ends, had uint64, by string) {
		if ends < had {
			p.report(Finding{Code: StoreBehind, Where: stream, What: fmt.Sprintf("it ends at %d, and %s has seen it up to %d", ends, by, had)})
		}
	}
	if h := p.head; h != nil {
		read := h.Seq
		for _, l := range h.Lanes {
			read = max(read, l.ReadSeq)
		}
		for _, q := range h.Queues {
			read = max(read, q.ReadSeq, q.LastSeq)
		}
		behind(topology.HistoryStream(p.partition), log, read, "the snapshot")
		behind(topology.TimerStream(p.partition), timer, h.TimerSeq, "the snapshot")
		behind(topology.ArchiveStream(p.partition), archive, h.ArchiveSeq, "the snapshot")
	}
	if c := p.cursor; c != nil {
		seen := max(c.EarlyFrom, 1) - 1
		for _, line := range slices.Concat([]*logv1.Cursor{c}, c.Apart) {
			seen = max(seen, line.BaseSeq, line.RoundSeq)
			for _, a := range line.Ahead {
				seen = max(seen, a.Seq)
			}
		}
		behind(topology.TimerStream(p.partition), timer, seen, "the timer's cursor")
	}
}

// covers reports whether the cursor says that an entry of a domain was fired.
func covers(c *logv1.Cursor, domain string, dueMS, seq int64, index uint32) bool {
	if c == nil {
		return false
	}
	if i := slices.IndexFunc(c.Apart, func(a *logv1.Cursor) bool { return a.Domain == domain }); i >= 0 {
		c = c.Apart[i]
	}
	upTo := func(due int64, last uint64, at uint32) bool {
		switch {
		case dueMS != due:
			return dueMS < due
		case seq != int64(last):
			return seq < int64(last)
		}
		return index <= at
	}
	for _, a := range c.Ahead {
		if seq <= int64(a.Seq) && upTo(a.LastDueMs, a.LastSeq, a.LastIndex) {
			return true
		}
	}
	within := func(due int64, last uint64) bool { return dueMS <= due && seq <= int64(last) }
	return within(c.BaseDueMs, c.BaseSeq) || within(c.RoundDueMs, c.RoundSeq) && upTo(c.LastDueMs, c.LastSeq, c.LastIndex)
}

// timer takes a message of the timer store.
func (p *pass) timer(r natslog.Record) error {
	stream := topology.TimerStream(p.partition)
	var b logv1.Batch
	if !p.decode(stream, r, &b) {
		return nil
	}
	if b.Fence {
		p.fence = max(p.fence, b.Epoch)
		return nil
	}
	bucket, _ := topology.TimerBucketOf(r.Subject)
	for i, raw := range b.Early {
		id, ok := p.taskID(stream, r.Seq, raw)
		if t := p.tasks[id]; ok && t != nil && i < len(b.EarlyParkings) && t.entry.generation == b.EarlyParkings[i] && t.entry.bucket == bucket {
			p.early(t, r.Time.UnixMilli(), int64(r.Seq), uint32(min(i, math.MaxInt32)))
		}
	}
	if b.Epoch != 0 && b.Epoch < p.fence {
		return nil // a replaced owner wrote it: it is void
	}
	for i, rec := range b.Tasks {
		p.scanned.Waiting++
		id, ok := p.taskID(stream, r.Seq, rec.Id)
		if !ok {
			continue
		}
		t := p.task(id, rec.Domain)
		s := timerEntry{seq: int64(r.Seq), bucket: bucket, dueMS: rec.DueAtMs, index: uint32(min(i, math.MaxInt32)), generation: rec.Parkings, state: waits}
		if covers(p.cursor, rec.Domain, s.dueMS, s.seq, s.index) {
			s.state = fired
		}
		// An entry may have been stored twice; it is fired if one of the two is. Only the first one fires early.
		if t.entry.state != nowhere && (t.entry.generation > s.generation || t.entry.generation == s.generation && (t.entry.state == fired || t.entry.early)) {
			continue
		}
		t.entry = s
		delete(p.keyOf, id)
		if rec.Unique != nil && !cameBack(rec) {
			p.keyOf[id] = topology.UniqueKey(p.partition, rec.Domain, topology.UniqueWithin(rec.Order.GetKey(), rec.Unique.Key))
		}
	}
	return p.full()
}

// early takes in that an entry fires before it is due. The first early message counts, and the cursor covers either key of an entry that was fired.
func (p *pass) early(t *task, atMS, seq int64, index uint32) {
	e := &t.entry
	if e.state != waits || e.early || e.dueMS <= atMS {
		return
	}
	e.dueMS, e.early = atMS, true
	if covers(p.cursor, t.domain, atMS, seq, index) {
		e.state = fired
	}
}

// log takes a message of the log.
func (p *pass) log(r natslog.Record) error {
	switch {
	case topology.IsSubmit(p.partition, r.Subject):
		return p.submitted(r)
	case r.Subject == topology.Event(p.partition):
		return p.turn(r)
	case r.Subject == topology.Fired(p.partition):
		return nil
	case topology.IsUniqueKey(p.partition, r.Subject):
		return p.said(r)
	case topology.DomainOfBatchHome(p.partition, r.Subject) != "":
		return p.batchHome(r)
	case topology.DomainOfScheduleHome(p.partition, r.Subject) != "":
		return p.scheduleHome(r)
	}
	return nil
}

func (p *pass) submitted(r natslog.Record) error {
	stream := topology.HistoryStream(p.partition)
	var b logv1.Batch
	if !p.decode(stream, r, &b) {
		return nil
	}
	done := p.admitted(r)
	for _, rec := range b.Tasks {
		p.scanned.Logged++
		id, ok := p.taskID(stream, r.Seq, rec.Id)
		if !ok {
			continue
		}
		t := p.task(id, rec.Domain)
		if rec.Parkings > 0 && t.submit.generation == rec.Parkings {
			p.report(Finding{
				Code: FiredTwice, Where: at(stream, r.Seq), id: id, Domain: rec.Domain,
				What: fmt.Sprintf("its generation %d came back here, and at #%d before", rec.Parkings, t.submit.seq),
			})
		}
		t.submit = submit{
			seq: r.Seq, atMS: r.Time.UnixMilli(), generation: rec.Parkings, done: done,
			void: rec.WithinMs > 0 && r.Time.Sub(id.Time()) > time.Duration(rec.WithinMs)*time.Millisecond,
		}
	}
	return p.full()
}

// admitted tells whether a submit had come into the state before the snapshot: each of its tasks is there, or stored elsewhere.
func (p *pass) admitted(r natslog.Record) bool {
	lane, ok := topology.LaneOf(p.partition, r.Subject)
	if !ok || p.head == nil {
		return false
	}
	for at := topology.PlaceOfSubmit(p.partition, r.Subject); at != ""; at = at.Parent() {
		for _, q := range p.head.Queues { // the lane's own cursor does not cover these
			if q.Lane == uint32(lane) && q.Place == string(at) {
				return r.Seq <= q.ReadSeq
			}
		}
	}
	for _, l := range p.head.Lanes {
		if l.Lane == uint32(lane) {
			return r.Seq <= l.ReadSeq
		}
	}
	return false
}

// turn takes a turn of the log: it must be one that this program can read.
func (p *pass) turn(r natslog.Record) error {
	var turn logv1.Turn
	p.decode(topology.HistoryStream(p.partition), r, &turn)
	return nil
}

// said takes a record of a unique key.
func (p *pass) said(r natslog.Record) error {
	stream := topology.HistoryStream(p.partition)
	var w logv1.UniqueKey
	if !p.decode(stream, r, &w) {
		return nil
	}
	p.scanned.Keys++
	id, ok := p.taskID(stream, r.Seq, w.TaskId)
	if !ok {
		delete(p.keyRecords, r.Subject) // it is in place of the one before, and another pass has it
		return nil
	}
	p.keyRecords[r.Subject] = keyRecord{seq: r.Seq, id: id, freeAtMS: w.FreeAtMs, at: r.Time, key: w.Key}
	return p.full()
}

// archived takes a message of the archive.
func (p *pass) archived(r natslog.Record) error {
	stream := topology.ArchiveStream(p.partition)
	switch {
	case topology.IsArchiveTasks(p.partition, r.Subject):
	case r.Subject == topology.ArchiveIndexed(p.partition):
		for _, g := range p.index.mark(r.Seq) {
			p.report(Finding{Code: ArchiveGap, Where: at(stream, g.seq), id: g.id, What: fmt.Sprintf("the mark at #%d says that it is in the index, and no page has it", r.Seq)})
		}
		if page := p.index.hidden(); page != "" {
			p.report(Finding{Code: ArchiveGap, Where: at(stream, r.Seq), What: "lists do not find the page at " + page + ": that of the longer span around it is not there"})
		}
		return nil
	default:
		var page logv1.ArchivePage
		if p.decode(stream, r, &page) && !p.index.page(r.Subject, &page) {
			p.report(Finding{Code: Unreadable, Where: at(stream, r.Seq), What: "the columns of a page of the index do not fit each other"})
		}
		return nil
	}
	var b logv1.Batch
	if !p.decode(stream, r, &b) {
		return nil
	}
	for _, rec := range b.Tasks {
		p.scanned.Archived++
		id, ok := p.taskID(stream, r.Seq, rec.Id)
		if !ok {
			continue
		}
		p.index.task(r.Seq, id)
		p.ended(id, r.Seq, r.Time, rec)
	}
	return p.full()
}

func (p *pass) ended(id ids.TaskID, seq uint64, stored time.Time, rec *logv1.Record) {
	where := at(topology.ArchiveStream(p.partition), seq)
	if what := contradiction(rec); what != "" {
		p.report(Finding{Code: GrantedTwice, Where: where, id: id, Domain: rec.Domain, What: what})
	}
	e := end{seq: seq, finishedMS: rec.FinishedAtMs, digest: digest(rec), generation: rec.Parkings, state: int8(rec.State)}
	if before, twice := p.ends[id]; twice && before.generation >= e.generation {
		if before.generation == e.generation && before.digest != e.digest {
			p.report(Finding{Code: EndedTwice, Where: where, id: id, Domain: rec.Domain, What: fmt.Sprintf("another end is at #%d", before.seq)})
		}
		return
	}
	p.ends[id] = e
	if e.state == int8(yardv1.TaskState_TASK_STATE_DEAD) {
		p.died[id] = stored
	}
	if rec.Unique != nil {
		p.keyFor[id] = rec.Unique.ForMs
	}
}
