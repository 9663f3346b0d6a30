package ids

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// RequestID names a submit for good: a UUID of version 7 (RFC 9562), 48 bits of time (Unix ms) and 74 random bits.
// The client makes it when it sends the request first.
type RequestID [16]byte

// RequestIDChars is the length of a printed request id.
const RequestIDChars = 36

var errRequestID = errors.New("is not a UUID of version 7, such as 01890a5d-ac96-774b-bcce-b302099a8057")

// NewRequestID makes the id of a request that is first sent at now.
func NewRequestID(now time.Time) (id RequestID) {
	_, _ = rand.Read(id[:]) // never fails
	ms := uint64(now.UnixMilli())
	binary.BigEndian.PutUint16(id[:2], uint16(ms>>32))
	binary.BigEndian.PutUint32(id[2:6], uint32(ms))
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// Time is when the request was first sent, by the client's clock, to the millisecond.
func (id RequestID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint16(id[:2]))<<32 | int64(binary.BigEndian.Uint32(id[2:6])))
}

// String prints the 36 characters, in lower case.
func (id RequestID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// ParseRequestID is the inverse of String. It reads capital letters too, as RFC 9562 wants.
func ParseRequestID(s string) (id RequestID, err error) {
	if len(s) != RequestIDChars || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return RequestID{}, errRequestID
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil || id[6]>>4 != 7 || id[8]>>6 != 2 {
		return RequestID{}, errRequestID
	}
	return id, nil
}
