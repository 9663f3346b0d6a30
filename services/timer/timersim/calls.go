package timersim

import (
	"math"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// Wanted is a task that somebody wants fired now, and the caller's domain.
type Wanted = due.Wanted

// EarlyMessage is a message to append to the timer store.
type EarlyMessage struct {
	Subject string
	// Data is an encoded logv1.Batch.
	Data []byte
}

// FireEarly returns what is to be stored so that tasks fire now, and the answer for when all of it is stored. The caller sees to it that all that is in
// the store has arrived. There is no clock here: a task that is due gets a message too, which does nothing.
func (o *Owner) FireEarly(all []Wanted) (messages []EarlyMessage, answer due.Answer) {
	o.must(idle)
	for _, w := range all {
		o.bring(w.ID)
	}
	needed, answer := o.table.FireEarly(all, math.MinInt64)
	for _, m := range due.EarlyMessages(needed) {
		messages = append(messages, EarlyMessage{Subject: topology.Timer(o.partition, m.Bucket), Data: batch.Early(m, version)})
	}
	return messages, answer
}

// Located tells where a task is. All zero: it is not known here.
type Located struct {
	// Record is encoded, of a waiting task.
	Record []byte
	// Fired: its record is in the history log, at LogSeq; 0 = the place is not known.
	Fired  bool
	LogSeq uint64
	// Loading: its bucket is coming into memory, ask again.
	Loading bool
}

// Locate tells where a task is, to a caller of a domain, empty = a service of ours.
// The caller sees to it that all that is in the store has arrived.
func (o *Owner) Locate(id ids.TaskID, domain string) Located {
	o.must(idle)
	stay, status := o.table.Find(id, domain)
	switch status {
	case due.Waiting:
		return Located{Record: o.kept[stay.Seq].body.Record(stay.Index)}
	case due.Loading:
		return Located{Loading: true}
	}
	if far, ok := o.table.Far().Waits(o.again(id), domain); ok {
		return Located{Record: o.kept[far.Seq].body.Record(far.Index)}
	}
	return Located{Fired: status == due.Fired, LogSeq: stay.LogSeq}
}

// Purge says what is to be removed from the timer store: the messages of a
// subject up to a sequence, inclusive.
type Purge struct {
	Subject string
	UpTo    uint64
	purge   due.Purge
}

// Purgeable names what no one needs. Parked is the timer_seq of history's checkpoint; end
// is the last sequence of the store, read after that.
func (o *Owner) Purgeable(parked, end uint64) []Purge {
	o.must(idle)
	var all []Purge
	for _, p := range o.table.Purgeable(parked, end) {
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
