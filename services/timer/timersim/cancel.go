package timersim

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// Wanted is a task that somebody wants cancelled, and the caller's domain.
type Wanted = due.Wanted

// Fate is where a fired task went.
type Fate = due.Fate

// Tombstones is a message to append to the timer store.
type Tombstones struct {
	Subject string
	// Data is an encoded logv1.Batch.
	Data []byte
}

// Answer is what a cancel answers.
type Answer struct {
	// Records are the encoded records taken out, now or before.
	Records [][]byte
	Fired   []Fate
	// Failed: the caller hears an error instead, and may ask again.
	Failed bool
}

// Cancel begins a cancel, which may be several calls at once. The steps: each
// message it returns is stored, in any order, or fails; Tombstoned for each that
// was stored; Fence, and the end of its append; Answer.
func (o *Owner) Cancel(all []Wanted) []Tombstones {
	o.must(idle)
	if o.wanted != nil {
		panic("timersim: a cancel before the answer to the last one")
	}
	o.wanted = append([]due.Wanted{}, all...)
	var messages []Tombstones
	for _, one := range o.table.Tombstones(all) {
		subject := topology.Timer(o.partition, one.Bucket)
		o.tombstones[subject] = one.All
		messages = append(messages, Tombstones{Subject: subject, Data: batch.Tombstones(one.All, version)})
	}
	return messages
}

// Tombstoned says that a message of the cancel was stored.
func (o *Owner) Tombstoned(m Tombstones) {
	o.must(idle)
	for _, tomb := range o.tombstones[m.Subject] {
		o.table.Cancel(tomb.ID)
	}
	delete(o.tombstones, m.Subject)
}

// Fence begins to store the cursor as it stands, so that an owner that has not
// read the tombstones cannot fire, and one that was overtaken does not answer. It is false where
// that is not needed.
func (o *Owner) Fence() (Append, bool) {
	o.must(idle)
	if !o.table.Unfenced() {
		return Append{}, false
	}
	o.step = storingFence
	return o.append(nil, o.table.Cursor()), true
}

// Answer ends a cancel.
func (o *Owner) Answer() Answer {
	o.must(idle)
	got := o.table.Answer(o.wanted)
	o.wanted = nil
	clear(o.tombstones)
	a := Answer{Fired: got.Fired, Failed: got.Undone}
	for _, r := range got.Cancelled {
		a.Records = append(a.Records, o.kept[r.Seq].body.Record(r.Index))
	}
	return a
}

// Look tells what a cancel would take out; nil = nothing. Fired: it was fired recently, or may have been.
func (o *Owner) Look(one Wanted) (record []byte, fired bool) {
	o.must(idle)
	stay, status := o.table.FindWanted(one)
	fired = len(o.table.Answer([]due.Wanted{one}).Fired) > 0
	if status == due.Waiting || status == due.Cancelled {
		record = o.kept[stay.Seq].body.Record(stay.Index)
	}
	return record, fired
}

// Located tells where a task is. All zero: it is not known here.
type Located struct {
	// Record is encoded, of a waiting task.
	Record []byte
	// Fired: its record is in the history log, at LogSeq; 0 = the place is not known.
	Fired  bool
	LogSeq uint64
}

// Locate tells where a task is, to a caller of a domain, empty = a service of ours.
// The caller sees to it that all that is in the store has arrived.
func (o *Owner) Locate(id ids.TaskID, domain string) Located {
	o.must(idle)
	stay, status := o.table.Find(id, domain)
	switch status {
	case due.Waiting:
		return Located{Record: o.kept[stay.Seq].body.Record(stay.Index)}
	case due.Fired:
		return Located{Fired: true, LogSeq: stay.LogSeq}
	}
	return Located{}
}

// Purge says what is to be removed from the timer store: the messages of a
// subject up to a sequence, inclusive.
type Purge struct {
	Subject string
	UpTo    uint64
	purge   due.Purge
}

// Purgeable names what no one needs. Parked is the timer_seq of history's checkpoint
// and savedMS its at_ms; end is the last sequence of the store, read after that.
func (o *Owner) Purgeable(parked, end uint64, savedMS int64) []Purge {
	o.must(idle)
	var all []Purge
	for _, p := range o.table.Purgeable(parked, end, savedMS) {
		subject := topology.Timer(o.partition, p.Bucket)
		if p.Fences {
			subject = topology.TimerFence(o.partition)
		}
		all = append(all, Purge{Subject: subject, UpTo: p.UpTo, purge: p})
	}
	return all
}

// Purged says that it was removed.
func (o *Owner) Purged(p Purge) {
	o.must(idle)
	o.table.Purged(p.purge)
	for seq, k := range o.kept {
		if k.index.Fence == p.purge.Fences && k.index.Bucket == p.purge.Bucket && seq <= p.UpTo {
			delete(o.kept, seq)
		}
	}
}
