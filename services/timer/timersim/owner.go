// Package timersim is the owner of a timer partition as a machine that is driven by
// hand, for simulations of the whole system in one goroutine. For tests only.
//
// Owns: the steps of package firing in their order, around the same core: what it
// returns is to be stored, and what is reported to it has been stored. A simulation puts
// anything between two steps: other owners, crashes, lost answers.
//
// Never does: I/O, reading a clock, or drawing a random number. The same calls
// give the same bytes. It decides nothing that the core does not decide.
//
// On failure: a step out of order panics, and so does a message that is malformed or of
// an unknown log version; what it writes is of version 1. After Overtaken the owner is over; a new
// one is loaded in its place.
package timersim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
)

// Config of one ownership.
type Config struct {
	Partition int
	// Epoch names this ownership; no two may share one.
	Epoch uint64
	// ChunkTasksMax is how many tasks one append fires; 0 = the service's default.
	ChunkTasksMax int
	// FiredKeepMax is how many fired tasks are remembered; 0 = the service's default.
	FiredKeepMax int
	// Horizon is how long before its time a task comes into memory, NearMax how many do; 0 = the service's defaults.
	Horizon time.Duration
	NearMax int
}

// Message is one message of the timer store.
type Message struct {
	Seq     uint64
	AtMS    int64
	Subject string
	// Data is an encoded logv1.Batch; it is kept.
	Data []byte
}

// Submit is one message for the history log.
type Submit struct {
	Subject          string
	Domain, Tasklist string
	Lane             ids.Lane
	// Data is an encoded logv1.Batch.
	Data []byte
}

// Append is to be stored in the history log, all or none: the messages in order and
// the cursor behind them, if the last message of its subject is at Expected.
type Append struct {
	Messages []Submit
	// Cursor is an encoded logv1.Cursor.
	Cursor        []byte
	CursorSubject string
	Expected      uint64
}

// step is what an owner waits for.
type step uint8

// version is the log version of what it writes.
const version = 1

// renewAfter is after how many messages of the store a cursor is written though nothing fires.
const renewAfter = 8

const (
	loading step = iota
	idle
	// storing a chunk: Stored, NotStored or Refused comes next.
	storing
	over
)

// Owner is the machine: Resume, Arrive and Loaded, or Load; then the other steps. Between Resume and Arrive there may be NearFirst.
type Owner struct {
	partition int
	epoch     uint64
	limits    due.Limits
	table     *due.Table
	kept      map[uint64]kept
	readTo    uint64
	cursorSeq uint64
	step      step
	// end is that of the store when loading began: its last messages may be purged before they are read. restTo is the end of what is loaded last, 0 =
	// all is loaded.
	end, restTo uint64
	// appending is the cursor of the append that is under way.
	appending due.Cursor
}

// kept is a message with its records.
type kept struct {
	index due.Message
	body  *batch.Message
}

// New makes an owner that has loaded nothing.
func New(c Config) *Owner {
	cfg := firing.DefaultConfig()
	cfg.ChunkTasksMax = cmp.Or(c.ChunkTasksMax, cfg.ChunkTasksMax)
	cfg.FiredKeepMax = cmp.Or(c.FiredKeepMax, cfg.FiredKeepMax)
	cfg.Horizon, cfg.NearMax = cmp.Or(c.Horizon, cfg.Horizon), cmp.Or(c.NearMax, cfg.NearMax)
	return &Owner{
		partition: c.Partition, epoch: c.Epoch, limits: cfg.Limits(), table: due.New(cfg.Table()),
		kept: map[uint64]kept{},
	}
}

// Load is Resume, Arrive for each message, and Loaded.
func (o *Owner) Load(all []Message, cursor []byte, cursorSeq uint64, nowMS int64) error {
	if err := o.Resume(cursor, cursorSeq, nowMS); err != nil {
		return err
	}
	for _, m := range all {
		o.Arrive(m)
	}
	return o.Loaded()
}

// Arrive takes a message in, in the order of the store. While an append is under
// way messages wait, as the service's loop has them wait.
func (o *Owner) Arrive(m Message) (outdated int) {
	o.must(loading, idle)
	k := o.decode(m)
	if m.Seq > o.readTo {
		o.readTo = m.Seq
		o.kept[m.Seq] = k
	}
	for _, r := range o.table.EarlyFar(&k.index) {
		o.bring(r.ID)
	}
	return o.table.Load(k.index)
}

func (o *Owner) decode(m Message) kept {
	bucket, inBucket := topology.TimerBucketOf(m.Subject)
	fence := m.Subject == topology.TimerFence(o.partition)
	if !inBucket && !fence {
		panic(fmt.Sprintf("timersim: %q is no subject of the timer store", m.Subject))
	}
	body, index, err := firing.Decode(firing.Stored{Seq: m.Seq, AtMS: m.AtMS, Bucket: bucket, Fence: fence, Data: m.Data})
	if err = errors.Join(err, index.Malformed); err != nil {
		panic(fmt.Sprintf("timersim: message %d: %v", m.Seq, err))
	}
	return kept{index.Message, body}
}

// again reads the records of a task that is not in memory.
func (o *Owner) again(id ids.TaskID) (all []due.Reread) {
	for _, at := range o.table.Far().Places(id) {
		if k := o.kept[at.Seq]; int(at.Index) < len(k.index.Tasks) && k.index.Tasks[at.Index].ID == id {
			all = append(all, due.Reread{Place: at, Task: k.index.Tasks[at.Index]})
		}
	}
	return all
}

// bring brings a task into memory that is to fire early.
func (o *Owner) bring(id ids.TaskID) { o.table.Bring(o.again(id)) }

// Resume begins the loading with the last cursor; it is empty, and its sequence 0, if there is none.
func (o *Owner) Resume(cursor []byte, cursorSeq uint64, nowMS int64) error {
	o.must(loading)
	c, err := batch.DecodeCursor(cursor)
	if err != nil {
		return err
	}
	o.table.Resume(c, o.epoch, nowMS)
	o.cursorSeq = cursorSeq
	return nil
}

// Loaded ends the loading. All that was in the store after the cursor was read must have arrived.
func (o *Owner) Loaded() error {
	o.must(loading)
	o.readTo = max(o.readTo, o.end)
	c := o.table.Cursor()
	if covered := c.Seq(); covered > o.readTo {
		return fmt.Errorf("timersim: the cursor covers messages up to %d, the store ends at %d", covered, o.readTo)
	}
	o.table.Loaded()
	o.step = idle
	return nil
}

// ReadTo is how far in the store it has read.
func (o *Owner) ReadTo() uint64 { return o.readTo }

// Waiting is how many tasks wait.
func (o *Owner) Waiting() int { return o.table.Len() }

// Fire begins to store the next chunk of due tasks, or a cursor without tasks. It is false if nothing is to be stored.
func (o *Owner) Fire(nowMS int64) (Append, bool) {
	o.must(idle)
	chunk, ok := o.table.NextChunk(nowMS, o.limits)
	if !ok {
		if chunk.Cursor = (due.Rest{Table: o.table}).Renew(); chunk.Cursor.EarlyFrom < o.table.Cursor().EarlyFrom+renewAfter {
			return Append{}, false
		}
	}
	o.step = storing
	return o.append(chunk.Messages, chunk.Cursor), true
}

func (o *Owner) append(all []due.Outgoing, c due.Cursor) Append {
	data, err := batch.EncodeCursor(c, version)
	if err != nil {
		panic(err)
	}
	o.appending = c
	a := Append{Cursor: data, CursorSubject: topology.Fired(o.partition), Expected: o.cursorSeq}
	for _, m := range all {
		records := make([][]byte, len(m.Records))
		for i, r := range m.Records {
			records[i] = o.kept[r.Seq].body.Record(r.Index)
		}
		a.Messages = append(a.Messages, Submit{
			Subject: topology.Submit(o.partition, m.Lane, m.Domain, m.Tasklist),
			Domain:  m.Domain, Tasklist: m.Tasklist, Lane: m.Lane, Data: batch.Join(records, version),
		})
	}
	return a
}

// Stored ends an append: it was stored, with its cursor at a sequence.
func (o *Owner) Stored(cursorSeq uint64, nowMS int64) {
	o.must(storing)
	o.cursorSeq = cursorSeq
	o.table.Commit(nowMS, cursorSeq)
	o.step = idle
}

// NotStored ends an append that is known not to have been stored, for another
// reason than the cursor: the log is full, or has no leader.
func (o *Owner) NotStored() {
	o.must(storing)
	o.table.Abort()
	o.step = idle
}

// Outcome is what became of an append, see Refused.
type Outcome = due.Outcome

// The outcomes.
const (
	Again     = due.Again
	Stored    = due.Stored
	Overtaken = due.Overtaken
)

// Refused ends an append that was refused because of the cursor, or of which the
// answer was lost; given is the cursor as it stands after that. Stored: it was
// stored all the same, and this owner goes on. Overtaken: it is over. Again: it is
// still under way; the same append is to be tried again.
func (o *Owner) Refused(cursor []byte, cursorSeq uint64, nowMS int64) Outcome {
	o.must(storing)
	c, err := batch.DecodeCursor(cursor)
	if err != nil {
		panic(err)
	}
	outcome := due.OutcomeOf(o.appending, o.cursorSeq, c, cursorSeq)
	switch outcome {
	case due.Stored:
		o.Stored(cursorSeq, nowMS)
	case due.Overtaken:
		o.step = over
	}
	return outcome
}

func (o *Owner) must(allowed ...step) {
	if !slices.Contains(allowed, o.step) {
		panic(fmt.Sprintf("timersim: not in step %d", o.step))
	}
}
