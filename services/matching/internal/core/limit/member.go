package limit

import (
	"encoding/binary"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Member names one attempt in a limit.
type Member [ids.BookingBytes]byte

func MemberOf(t ids.Trigger) Member {
	var m Member
	copy(m[:], t.ID[:])
	binary.BigEndian.PutUint32(m[len(t.ID):], t.Version)
	return m
}

// partition is the history partition of the attempt.
func (m Member) partition() int { return ids.TaskID(m[:16]).Partition() }
