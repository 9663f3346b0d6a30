package ids

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
)

// TaskID identifies a task: 48 bits of creation time (Unix ms), 16 bits of
// history partition, 64 random bits. Ids sort by creation time.
type TaskID [16]byte

// Last is behind every id.
var Last = TaskID(bytes.Repeat([]byte{0xff}, 16))

// TaskIDChars is the length of a printed task id.
const TaskIDChars = 26

// NewTaskID makes the id of a task created at now in partition p.
func NewTaskID(now time.Time, p int, random uint64) TaskID {
	var id TaskID
	binary.BigEndian.PutUint64(id[:8], uint64(now.UnixMilli())<<16|uint64(uint16(p)))
	binary.BigEndian.PutUint64(id[8:], random)
	return id
}

// Time is when the task was created, to the millisecond.
func (id TaskID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}

// Partition is the history partition that owns the task, for its whole life.
func (id TaskID) Partition() int { return int(binary.BigEndian.Uint16(id[6:8])) }

// IsZero tells whether id is unset.
func (id TaskID) IsZero() bool { return id == TaskID{} }

// String prints the 26 characters.
func (id TaskID) String() string {
	var b [TaskIDChars]byte
	encoding.Encode(b[:], id[:])
	return string(b[:])
}

// ParseTaskID is the inverse of String.
func ParseTaskID(s string) (TaskID, error) {
	var id TaskID
	if len(s) != TaskIDChars {
		return id, fmt.Errorf("a task id has %d characters, not %d", TaskIDChars, len(s))
	}
	if !decode(id[:], s) {
		return TaskID{}, fmt.Errorf("%q is not a task id", s)
	}
	return id, nil
}

// TaskIDFromBytes reads the 16 packed bytes.
func TaskIDFromBytes(b []byte) (TaskID, error) {
	var id TaskID
	if len(b) != len(id) {
		return id, fmt.Errorf("a task id has %d bytes, not %d", len(id), len(b))
	}
	copy(id[:], b)
	return id, nil
}
