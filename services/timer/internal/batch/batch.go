// Package batch reads and writes the messages of the timer store and of the
// submit lanes (logv1.Batch) without decoding the records inside, and the firing
// cursor.
//
// Owns: which fields of a record the due table needs, and the cutting and
// joining of encoded records: a fired record is copied byte by byte as it was
// parked, so that nothing a newer history wrote into it is lost.
//
// Never does: I/O, or changing a record.
//
// On failure: Decode returns an error for what is not a well-formed batch, and a
// *logversion.UnknownError for one of a format that this program does not know. Of a
// well-formed batch with a malformed record it reads the others.
package batch

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
	"github.com/yardmaster-io/yardmaster/shared/protofield"
)

// Field numbers of logv1.Batch and logv1.Record. A test compares them with the
// generated code.
const (
	batchTasks      = 1
	batchEarly      = 2
	batchLogVersion = 3
	batchEpoch      = 4
	batchFence      = 5
	batchParkings   = 6
	batchSeqs       = 7
	batchIndexes    = 8
	batchBytes      = 9
	batchDomain     = 10
	batchTasklist   = 11

	recordID       = 1
	recordDomain   = 2
	recordTasklist = 3
	recordType     = 4
	recordPriority = 5
	recordDueAt    = 9
	recordFailures = 13
	recordParkings = 21
	recordOrder    = 41
)

// The priorities of submit lanes. A record that says otherwise is filed under
// the default, as the frontend would have done.
const (
	priorityFirst   = 1
	priorityLast    = 5
	priorityDefault = 3
)

// Message is a stored message whose records can be cut out by their index.
type Message struct {
	data []byte
	// spans are the start and the end of each record.
	spans []span
}

type span struct{ start, end uint32 }

func spanOf(f protofield.Field) span { return span{uint32(f.At), uint32(f.At + len(f.Bytes))} }

// Records is how many it holds.
func (m *Message) Records() int { return len(m.spans) }

// Bytes is about what it costs to keep.
func (m *Message) Bytes() int { return len(m.data) + 8*len(m.spans) }

// Record is the encoded record at index i, or nil where there is none. It is a
// part of the message's memory.
func (m *Message) Record(i uint32) []byte {
	if int64(i) >= int64(len(m.spans)) {
		return nil
	}
	return m.data[m.spans[i].start:m.spans[i].end]
}

// Split finds the records of an encoded batch. The message keeps data.
func Split(data []byte) (*Message, error) {
	m := &Message{data: data}
	err := protofield.Each(data, func(f protofield.Field) error {
		if f.Number == batchTasks {
			m.spans = append(m.spans, spanOf(f))
		}
		return nil
	})
	return m, err
}

// Index is what the due table needs of a batch.
type Index struct {
	// Message has the epoch, the early stays and the tasks, and Fence where the batch
	// says that it is one. Where it was stored is the caller's to add. The zero Task
	// stands for a record that is malformed.
	due.Message
	// Version is the log version of the batch.
	Version uint32
	// Malformed says what is wrong with the first malformed record or early stay; nil =
	// nothing.
	Malformed error
}

func (i *Index) malformed(err error) {
	if i.Malformed == nil {
		i.Malformed = err
	}
}

// Decode reads the index of an encoded batch and finds its records. The strings
// of the index are parts of data.
func Decode(data []byte) (*Message, Index, error) {
	m, index := &Message{data: data}, Index{}
	var packed [batchBytes + 1][]uint64
	err := protofield.Each(data, func(f protofield.Field) error {
		switch f.Number {
		case batchTasks:
			task, err := decodeTask(f.Bytes)
			if err != nil {
				index.malformed(fmt.Errorf("record %d: %w", len(index.Tasks), err))
				task = due.Task{}
			}
			index.Tasks = append(index.Tasks, task)
			m.spans = append(m.spans, spanOf(f))
		case batchEarly:
			id, err := ids.TaskIDFromBytes(f.Bytes)
			if err != nil {
				index.malformed(fmt.Errorf("early task %d: %w", len(index.Early), err))
			}
			index.Early = append(index.Early, due.Early{ID: id})
		case batchLogVersion:
			index.Version = uint32(min(f.Varint, math.MaxUint32))
		case batchParkings, batchSeqs, batchIndexes, batchBytes:
			numbers, err := unpack(f.Bytes)
			if err != nil {
				index.malformed(err)
			}
			packed[f.Number] = append(packed[f.Number], numbers...)
		case batchDomain:
			index.Domain = unsafeString(f.Bytes)
		case batchTasklist:
			index.Tasklist = unsafeString(f.Bytes)
		case batchEpoch:
			index.Epoch = f.Varint
		case batchFence:
			index.Fence = f.Varint != 0
		}
		return nil
	})
	index.early(packed[batchParkings], packed[batchSeqs], packed[batchIndexes], packed[batchBytes])
	// The version first: what looks malformed may be of another format.
	if unknown := logversion.Check(index.Version); unknown != nil {
		err = unknown
	}
	if err != nil {
		return &Message{}, Index{}, err
	}
	return m, index, nil
}

// early says which stays fire early, and where they lie.
func (i *Index) early(generations, seqs, indexes, sizes []uint64) {
	n := len(i.Early)
	if len(generations) != n || len(seqs) != n || len(indexes) != n || len(sizes) != n {
		i.malformed(fmt.Errorf("%d stays at %d places of %d early tasks", len(generations), min(len(seqs), len(indexes), len(sizes)), n))
		clear(i.Early)
		return
	}
	for at := range i.Early {
		e := &i.Early[at]
		e.Generation, e.Bytes = uint32(generations[at]), uint32(sizes[at])
		e.Place = far.Place{Seq: seqs[at], Index: uint32(indexes[at])}
	}
}

func unpack(data []byte) (all []uint64, err error) {
	for len(data) > 0 {
		number, n := protowire.ConsumeVarint(data)
		if n < 0 {
			return all, errors.New("the stays of early tasks cannot be read")
		}
		all = append(all, number)
		data = data[n:]
	}
	return all, nil
}

func decodeTask(data []byte) (due.Task, error) {
	task := due.Task{Bytes: uint32(len(data)), Group: due.Group{Priority: priorityDefault}}
	var badID error
	err := protofield.Each(data, func(f protofield.Field) error {
		switch f.Number {
		case recordID:
			task.ID, badID = ids.TaskIDFromBytes(f.Bytes)
		case recordDomain:
			task.Group.Domain = unsafeString(f.Bytes)
		case recordTasklist:
			task.Group.Tasklist = unsafeString(f.Bytes)
		case recordType:
			task.Group.Type = unsafeString(f.Bytes)
		case recordOrder:
			task.Group.Keyed = true
		case recordPriority:
			if f.Varint >= priorityFirst && f.Varint <= priorityLast {
				task.Group.Priority = uint8(f.Varint)
			}
		case recordDueAt:
			task.DueMS = max(int64(f.Varint), 0)
		case recordFailures:
			task.Failures = int(int32(f.Varint))
			task.Group.Retry = task.Failures > 0
		case recordParkings:
			task.Parkings = uint32(f.Varint)
		}
		return nil
	})
	switch {
	case err != nil:
		return task, err
	case badID != nil:
		return task, badID
	case task.ID.IsZero():
		return task, errors.New("it has no id")
	}
	return task, checkGroup(&task.Group)
}

// checkGroup refuses what no subject of a submit lane can hold: such a record could never
// be fired, and what is due after it would wait for it.
func checkGroup(g *due.Group) error {
	if err := ids.CheckName(g.Domain); err != nil {
		return fmt.Errorf("its domain %w", err)
	}
	if err := ids.CheckName(g.Tasklist); err != nil {
		return fmt.Errorf("its tasklist %w", err)
	}
	if err := ids.CheckTypeName(g.Type); err != nil {
		return fmt.Errorf("its type %w", err)
	}
	return nil
}

// recordOverhead is what a record adds to a batch at most, besides its own bytes.
const recordOverhead = 1 + 5

// Join is an encoded batch of encoded records, of a log version.
func Join(records [][]byte, version uint32) []byte {
	size := versionOverhead
	for _, r := range records {
		size += len(r) + recordOverhead
	}
	data := make([]byte, 0, size)
	for _, r := range records {
		data = appendRecord(data, r)
	}
	return appendVersion(data, version)
}

// appendRecord adds an encoded record to an encoded batch.
func appendRecord(b, record []byte) []byte {
	b = protowire.AppendTag(b, batchTasks, protowire.BytesType)
	return protowire.AppendBytes(b, record)
}

// versionOverhead is what a version adds to a batch at most.
const versionOverhead = 1 + 5

// appendVersion gives an encoded batch its log version.
func appendVersion(b []byte, version uint32) []byte {
	b = protowire.AppendTag(b, batchLogVersion, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(version))
}

// Early is an encoded early message.
func Early(m due.EarlyMessage, version uint32) []byte {
	b := make([]byte, 0, len(m.All)*(len(ids.TaskID{})+12)+len(m.Domain)+len(m.Tasklist)+versionOverhead)
	var packed [batchBytes + 1][]byte
	for i := range m.All {
		e := &m.All[i]
		b = protowire.AppendTag(b, batchEarly, protowire.BytesType)
		b = protowire.AppendBytes(b, e.ID[:])
		for field, value := range map[int]uint64{
			batchParkings: uint64(e.Generation), batchSeqs: e.Place.Seq, batchIndexes: uint64(e.Place.Index), batchBytes: uint64(e.Bytes),
		} {
			packed[field] = protowire.AppendVarint(packed[field], value)
		}
	}
	b = appendVersion(b, version)
	for field := batchParkings; field <= batchBytes; field++ {
		b = protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(field), protowire.BytesType), packed[field])
	}
	b = protowire.AppendString(protowire.AppendTag(b, batchDomain, protowire.BytesType), m.Domain)
	return protowire.AppendString(protowire.AppendTag(b, batchTasklist, protowire.BytesType), m.Tasklist)
}
