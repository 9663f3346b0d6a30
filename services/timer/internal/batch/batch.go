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
// On failure: Decode returns an error for what is not a well-formed batch.
package batch

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// Field numbers of logv1.Batch and logv1.Record. A test compares them with the
// generated code.
const (
	batchTasks      = 1
	batchTombstones = 2
	batchEpoch      = 4
	batchFence      = 5

	recordID       = 1
	recordDomain   = 2
	recordTasklist = 3
	recordType     = 4
	recordPriority = 5
	recordDueAt    = 9
	recordFailures = 13
	recordParkings = 21
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
	err := fields(data, func(number protowire.Number, value []byte, at int) error {
		if number == batchTasks {
			m.spans = append(m.spans, span{uint32(at), uint32(at + len(value))})
		}
		return nil
	}, func(protowire.Number, uint64) {})
	return m, err
}

// Decode reads the index of an encoded batch and finds its records: the epoch, the
// tombstones and the tasks; Fence, where the batch says that it is one. Where it was
// stored is the caller's to add. The strings of the index are parts of data.
func Decode(data []byte) (*Message, due.Message, error) {
	m := &Message{data: data}
	var index due.Message
	err := fields(data, func(number protowire.Number, value []byte, at int) error {
		switch number {
		case batchTasks:
			task, err := decodeTask(value)
			if err != nil {
				return fmt.Errorf("record %d: %w", len(index.Tasks), err)
			}
			index.Tasks = append(index.Tasks, task)
			m.spans = append(m.spans, span{uint32(at), uint32(at + len(value))})
		case batchTombstones:
			id, err := ids.TaskIDFromBytes(value)
			if err != nil {
				return fmt.Errorf("tombstone: %w", err)
			}
			index.Tombstones = append(index.Tombstones, id)
		}
		return nil
	}, func(number protowire.Number, value uint64) {
		switch number {
		case batchEpoch:
			index.Epoch = value
		case batchFence:
			index.Fence = value != 0
		}
	})
	if err != nil {
		return m, due.Message{}, err
	}
	return m, index, nil
}

// fields calls visit for each length-delimited field of a message, with where
// its value begins, and number for each varint, and skips the others.
func fields(data []byte, visit func(number protowire.Number, value []byte, at int) error, varint func(number protowire.Number, value uint64)) error {
	for at := 0; at < len(data); {
		number, kind, n := protowire.ConsumeTag(data[at:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		if kind == protowire.VarintType {
			value, n := protowire.ConsumeVarint(data[at:])
			if n < 0 {
				return protowire.ParseError(n)
			}
			at += n
			varint(number, value)
			continue
		}
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data[at:]); n < 0 {
				return protowire.ParseError(n)
			}
			at += n
			continue
		}
		value, n := protowire.ConsumeBytes(data[at:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		if err := visit(number, value, at-len(value)); err != nil {
			return err
		}
	}
	return nil
}

func decodeTask(data []byte) (due.Task, error) {
	task := due.Task{Bytes: uint32(len(data)), Group: due.Group{Priority: priorityDefault}}
	for rest := data; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return task, protowire.ParseError(n)
		}
		rest = rest[n:]
		switch kind {
		case protowire.BytesType:
			value, n := protowire.ConsumeBytes(rest)
			if n < 0 {
				return task, protowire.ParseError(n)
			}
			rest = rest[n:]
			if err := setBytes(&task, number, value); err != nil {
				return task, err
			}
		case protowire.VarintType:
			value, n := protowire.ConsumeVarint(rest)
			if n < 0 {
				return task, protowire.ParseError(n)
			}
			rest = rest[n:]
			setVarint(&task, number, value)
		default:
			n := protowire.ConsumeFieldValue(number, kind, rest)
			if n < 0 {
				return task, protowire.ParseError(n)
			}
			rest = rest[n:]
		}
	}
	if task.ID.IsZero() {
		return task, errors.New("it has no id")
	}
	return task, nil
}

func setBytes(task *due.Task, number protowire.Number, value []byte) error {
	switch number {
	case recordID:
		id, err := ids.TaskIDFromBytes(value)
		task.ID = id
		return err
	case recordDomain:
		task.Group.Domain = unsafeString(value)
	case recordTasklist:
		task.Group.Tasklist = unsafeString(value)
	case recordType:
		task.Group.Type = unsafeString(value)
	}
	return nil
}

func setVarint(task *due.Task, number protowire.Number, value uint64) {
	switch number {
	case recordPriority:
		if value >= priorityFirst && value <= priorityLast {
			task.Group.Priority = uint8(value)
		}
	case recordDueAt:
		task.DueMS = max(int64(value), 0)
	case recordFailures:
		task.Group.Retry = int32(value) > 0
	case recordParkings:
		task.Parkings = uint32(value)
	}
}

// recordOverhead is what a record adds to a batch at most, besides its own bytes.
const recordOverhead = 1 + 5

// Join is an encoded batch of encoded records.
func Join(records [][]byte) []byte {
	size := 0
	for _, r := range records {
		size += len(r) + recordOverhead
	}
	data := make([]byte, 0, size)
	for _, r := range records {
		data = appendRecord(data, r)
	}
	return data
}

// appendRecord adds an encoded record to an encoded batch.
func appendRecord(b, record []byte) []byte {
	b = protowire.AppendTag(b, batchTasks, protowire.BytesType)
	return protowire.AppendBytes(b, record)
}

// Tombstones is an encoded batch that voids the earlier records of these tasks.
func Tombstones(all []ids.TaskID) []byte {
	b := make([]byte, 0, len(all)*(len(ids.TaskID{})+2))
	for _, id := range all {
		b = protowire.AppendTag(b, batchTombstones, protowire.BytesType)
		b = protowire.AppendBytes(b, id[:])
	}
	return b
}
