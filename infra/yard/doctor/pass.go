package doctor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

// bytesPerTask is what a pass takes per task at most: one that is in the log or in the timer store takes the most.
const bytesPerTask = 140

// candidatesMax bounds the findings of one code that a look takes to the next one.
const candidatesMax = 10_000

// part says which ids a pass is about: those whose random half, divided by of, leaves at.
type part struct{ at, of uint64 }

func (p part) has(id ids.TaskID) bool { return binary.BigEndian.Uint64(id[8:])%p.of == p.at }

// halves are the two parts that a part is made of.
func (p part) halves() [2]part { return [2]part{{p.at, 2 * p.of}, {p.at + p.of, 2 * p.of}} }

// pass is what is known of one partition, of a part of its tasks. What it takes, it takes in the order of the fields of order: a task
// that moves meanwhile goes the same way, so it is met at least once.
type pass struct {
	partition int
	part      part
	// only, if not nil, are the tasks that it is about.
	only map[ids.TaskID]bool
	// onlyBatches are the batches that it counts, if not nil.
	onlyBatches map[string]bool
	most        int
	// began is the server's time before anything was read.
	began time.Time
	// quarantined: something of this partition is in quarantine, so what is missing may be there.
	quarantined bool
	letters     *letters
	kept        retentions

	cp     *logv1.Checkpoint
	cursor *logv1.Cursor
	fence  uint64
	index  index

	tasks map[ids.TaskID]*task
	ends  map[ids.TaskID]end
	// died is when the archive stored the ends of dead tasks.
	died map[ids.TaskID]time.Time
	// words are the last ones on unique keys, by subject; keyOf is the subject of a waiting task's key, keyFor for how long
	// a task that has ended keeps its key, ms.
	words  map[string]word
	keyOf  map[ids.TaskID]string
	keyFor map[ids.TaskID]int64
	// counts are how tasks of batches ended, by topology.BatchOf; calls are the callbacks of batches that are over.
	counts map[string]*counts
	calls  map[ids.TaskID]call

	found  map[Code][]Finding
	missed map[Code]int
	looked Looked
}

// task is where a task is that has not ended, as far as the stores say.
type task struct {
	domain string
	stay   stay
	submit submit
	// carried: the log has its state, so it may be active without a submit.
	carried bool
}

// fate is what became of a stay.
type fate uint8

const (
	nowhere fate = iota
	waits
	void
	fired
)

// stay is the last stay of a task in the timer store.
type stay struct {
	seq, bucket     int64
	dueMS           int64
	index, parkings uint32
	fate            fate
}

// submit is the last record of a task on a lane.
type submit struct {
	seq      uint64
	atMS     int64
	parkings uint32
	// done: the checkpoint says that all of it is stored elsewhere. void: it was stored too late.
	done, void bool
}

// end is what the archive has of a task. A task that comes back from the dead letters ends again, after a later stay.
type end struct {
	seq        uint64
	finishedMS int64
	digest     uint32
	parkings   uint32
	state      int8
}

// word is the last one on a unique key.
type word struct {
	seq      uint64
	id       ids.TaskID
	freeAtMS int64
	at       time.Time
	key      string
}

func newPass(partition int, of part, only map[ids.TaskID]bool, most int) *pass {
	return &pass{
		partition: partition, part: of, only: only, most: most,
		index: newIndex(), tasks: map[ids.TaskID]*task{}, ends: map[ids.TaskID]end{}, died: map[ids.TaskID]time.Time{}, words: map[string]word{}, keyOf: map[ids.TaskID]string{}, keyFor: map[ids.TaskID]int64{},
		counts: map[string]*counts{}, calls: map[ids.TaskID]call{},
		found: map[Code][]Finding{}, missed: map[Code]int{},
	}
}

func (p *pass) keep(id ids.TaskID) bool {
	return p.part.has(id) && (p.only == nil || p.only[id])
}

func (p *pass) full() error {
	if len(p.tasks)+len(p.ends)+len(p.words)+len(p.counts)+len(p.calls) > p.most {
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

// readable reports a message that is not, of the version and the error that decoding it gave.
func (p *pass) readable(stream string, seq uint64, version uint32, err error) bool {
	switch {
	case err != nil:
		p.report(Finding{Code: Unreadable, Where: at(stream, seq), What: err.Error()})
	case logversion.Check(version) != nil:
		p.report(Finding{Code: NewerRecord, Where: at(stream, seq), What: logversion.Check(version).Error()})
	default:
		return true
	}
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

// checkpoint takes what the owner of the partition has saved; nil = nothing was.
func (p *pass) checkpoint(cp *logv1.Checkpoint) { p.cp = cp }

// fired takes the timer's cursor; nil = there is none.
func (p *pass) fired(c *logv1.Cursor) { p.cursor = c }

// ends compares the last sequences of the stores, read after them, with what the checkpoint and the cursor have seen.
func (p *pass) lengths(log, timer, archive uint64) {
	behind := func(stream string, ends, had uint64, by string) {
		if ends < had {
			p.report(Finding{Code: StoreBehind, Where: stream, What: fmt.Sprintf("it ends at %d, and %s has seen it up to %d", ends, by, had)})
		}
	}
	if cp := p.cp; cp != nil {
		read := cp.EventFloor
		for _, l := range cp.Lanes {
			read = max(read, l.ReadSeq, l.AckSeq)
		}
		for _, q := range cp.Queues {
			read = max(read, q.ReadSeq, q.LastSeq)
		}
		behind(topology.HistoryStream(p.partition), log, read, "the checkpoint")
		behind(topology.TimerStream(p.partition), timer, cp.TimerSeq, "the checkpoint")
		behind(topology.ArchiveStream(p.partition), archive, cp.ArchiveSeq, "the checkpoint")
	}
	if c := p.cursor; c != nil {
		seen := max(c.BaseSeq, c.RoundSeq)
		for _, a := range c.Ahead {
			seen = max(seen, a.Seq)
		}
		behind(topology.TimerStream(p.partition), timer, seen, "the timer's cursor")
	}
}

// covers tells whether the cursor says that a stay was fired.
func covers(c *logv1.Cursor, dueMS, seq int64, index uint32) bool {
	if c == nil {
		return false
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
	err := b.UnmarshalVT(r.Data)
	if !p.readable(stream, r.Seq, b.LogVersion, err) {
		return nil
	}
	if b.Fence {
		p.fence = max(p.fence, b.Epoch)
		return nil
	}
	bucket, _ := topology.TimerBucketOf(r.Subject)
	for i, raw := range b.Tombstones {
		if id, ok := p.taskID(stream, r.Seq, raw); ok {
			if t := p.tasks[id]; t != nil && t.stay.bucket == bucket && (i >= len(b.TombstoneParkings) || t.stay.parkings <= b.TombstoneParkings[i]) {
				t.stay.fate = void
			}
		}
	}
	if b.Epoch != 0 && b.Epoch < p.fence {
		return nil // a replaced owner wrote it: it is void
	}
	for i, rec := range b.Tasks {
		p.looked.Waiting++
		id, ok := p.taskID(stream, r.Seq, rec.Id)
		if !ok {
			continue
		}
		t := p.task(id, rec.Domain)
		s := stay{seq: int64(r.Seq), bucket: bucket, dueMS: rec.DueAtMs, index: uint32(min(i, math.MaxInt32)), parkings: rec.Parkings, fate: waits}
		if covers(p.cursor, s.dueMS, s.seq, s.index) {
			s.fate = fired
		}
		// A stay may have been stored twice; it is fired if one of the two is.
		if t.stay.fate != nowhere && (t.stay.parkings > s.parkings || t.stay.parkings == s.parkings && t.stay.fate != waits) {
			continue
		}
		t.stay = s
		delete(p.keyOf, id)
		if rec.Unique != nil && !cameBack(rec) {
			p.keyOf[id] = topology.UniqueKey(p.partition, rec.Domain, topology.UniqueWithin(rec.Order.GetKey(), rec.Unique.Key))
		}
	}
	return p.full()
}

// log takes a message of the log.
func (p *pass) log(r natslog.Record) error {
	switch {
	case topology.IsSubmit(p.partition, r.Subject):
		return p.submitted(r)
	case r.Subject == topology.Event(p.partition):
		return p.event(r)
	case r.Subject == topology.Fired(p.partition):
		return nil
	case topology.IsUniqueKey(p.partition, r.Subject):
		return p.said(r)
	case topology.DomainOfBatchHome(p.partition, r.Subject) != "":
		return p.batchHome(r)
	case topology.BatchOfMembers(p.partition, r.Subject) != "":
		var w logv1.BatchMembers
		err := w.UnmarshalVT(r.Data)
		p.readable(topology.HistoryStream(p.partition), r.Seq, w.LogVersion, err)
		return nil
	}
	return nil
}

func (p *pass) submitted(r natslog.Record) error {
	stream := topology.HistoryStream(p.partition)
	var b logv1.Batch
	err := b.UnmarshalVT(r.Data)
	if !p.readable(stream, r.Seq, b.LogVersion, err) {
		return nil
	}
	done := p.acked(r)
	for _, rec := range b.Tasks {
		p.looked.Logged++
		id, ok := p.taskID(stream, r.Seq, rec.Id)
		if !ok {
			continue
		}
		t := p.task(id, rec.Domain)
		if rec.Parkings > 0 && t.submit.parkings == rec.Parkings {
			p.report(Finding{
				Code: FiredTwice, Where: at(stream, r.Seq), id: id, Domain: rec.Domain,
				What: fmt.Sprintf("its stay %d came back here, and at #%d before", rec.Parkings, t.submit.seq),
			})
		}
		t.submit = submit{
			seq: r.Seq, atMS: r.Time.UnixMilli(), parkings: rec.Parkings, done: done,
			void: rec.WithinMs > 0 && r.Time.Sub(id.Time()) > time.Duration(rec.WithinMs)*time.Millisecond,
		}
	}
	return p.full()
}

// acked tells whether the checkpoint says that all of a submit is stored elsewhere.
func (p *pass) acked(r natslog.Record) bool {
	lane, ok := topology.LaneOf(p.partition, r.Subject)
	if !ok || p.cp == nil {
		return false
	}
	domain := topology.DomainOfSubmit(p.partition, r.Subject)
	for _, q := range p.cp.Queues { // the lane's own cursor does not cover these
		if q.Lane == uint32(lane) && q.Domain == domain && r.Seq > q.AckSeq {
			return false
		}
	}
	for _, l := range p.cp.Lanes {
		if l.Lane == uint32(lane) {
			return r.Seq <= l.AckSeq
		}
	}
	return false
}

func (p *pass) event(r natslog.Record) error {
	stream := topology.HistoryStream(p.partition)
	var turn logv1.Turn
	err := turn.UnmarshalVT(r.Data)
	if !p.readable(stream, r.Seq, turn.LogVersion, err) {
		return nil
	}
	for _, b := range turn.Batches {
		for _, e := range b.Events {
			if e.Kind != logv1.EventKind_EVENT_KIND_CARRIED || e.Carried == nil {
				continue
			}
			if id, ok := p.taskID(stream, r.Seq, e.Carried.Id); ok {
				p.task(id, e.Carried.Domain).carried = true
			}
		}
	}
	return p.full()
}

// said takes a word on a unique key.
func (p *pass) said(r natslog.Record) error {
	stream := topology.HistoryStream(p.partition)
	var w logv1.UniqueKey
	err := w.UnmarshalVT(r.Data)
	if !p.readable(stream, r.Seq, w.LogVersion, err) {
		return nil
	}
	p.looked.Keys++
	id, ok := p.taskID(stream, r.Seq, w.TaskId)
	if !ok {
		delete(p.words, r.Subject) // it is in place of the one before, and another pass has it
		return nil
	}
	p.words[r.Subject] = word{seq: r.Seq, id: id, freeAtMS: w.FreeAtMs, at: r.Time, key: w.Key}
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
		return nil
	case topology.BatchOfEnds(p.partition, r.Subject) != "":
		return p.counted(r)
	case r.Subject == topology.BatchFiled(p.partition):
		return nil
	default:
		var page logv1.ArchivePage
		err := page.UnmarshalVT(r.Data)
		if p.readable(stream, r.Seq, page.LogVersion, err) && !p.index.page(&page) {
			p.report(Finding{Code: Unreadable, Where: at(stream, r.Seq), What: "the columns of a page of the index do not fit each other"})
		}
		return nil
	}
	var b logv1.Batch
	err := b.UnmarshalVT(r.Data)
	if !p.readable(stream, r.Seq, b.LogVersion, err) {
		return nil
	}
	for _, rec := range b.Tasks {
		p.looked.Archived++
		p.memberEnded(rec)
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
	e := end{seq: seq, finishedMS: rec.FinishedAtMs, digest: digest(rec), parkings: rec.Parkings, state: int8(rec.State)}
	if before, twice := p.ends[id]; twice && before.parkings >= e.parkings {
		if before.parkings == e.parkings && before.digest != e.digest {
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
