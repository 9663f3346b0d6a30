package gateway

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// String is the id as it travels.
func (m messageID) String() string { return hex.EncodeToString(m[:]) }

// token pins a repeat of a submit of unknown outcome to the partition, the ids
// and the log message of its first try (decision 0005).
type token struct {
	partition int
	at        time.Time
	seed      uint64
	tasks     int
	message   messageID
}

const (
	tokenVersion = 1
	tokenBytes   = 1 + 2 + 8 + 8 + 2 + 16
)

// String prints the token; it is opaque to clients.
func (t token) String() string {
	b := append(make([]byte, 0, tokenBytes), tokenVersion)
	b = binary.BigEndian.AppendUint16(b, uint16(t.partition))
	b = binary.BigEndian.AppendUint64(b, uint64(t.at.UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, t.seed)
	b = binary.BigEndian.AppendUint16(b, uint16(t.tasks))
	b = append(b, t.message[:]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseToken(s string) (*token, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != tokenBytes || b[0] != tokenVersion {
		return nil, fault.At(fault.InvalidArgument, "/retry_token", "is not a token of ours")
	}
	return &token{
		partition: int(binary.BigEndian.Uint16(b[1:])),
		at:        time.UnixMilli(int64(binary.BigEndian.Uint64(b[3:]))),
		seed:      binary.BigEndian.Uint64(b[11:]),
		tasks:     int(binary.BigEndian.Uint16(b[19:])),
		message:   messageID(b[21:]),
	}, nil
}

// check tells whether t may be used at now for a request of so many tasks.
func (t *token) check(partitions, tasks int, now time.Time) error {
	age := now.Sub(t.at)
	switch {
	case t.partition >= partitions || age < -repeatMax:
		return fault.At(fault.InvalidArgument, "/retry_token", "is not a token of this cluster")
	case t.tasks != tasks:
		return fault.At(fault.InvalidArgument, "/retry_token", "belongs to a request of %d tasks, this one has %d", t.tasks, tasks)
	case age > repeatMax:
		first := submission{at: t.at, seed: t.seed, partition: t.partition}
		e := fault.At(fault.FailedPrecondition, "/retry_token", "has expired: ask tasks.get for task %s, with which all stand or fall", first.id(0))
		e.Detail = map[string]string{"task_id": first.id(0).String()}
		return e
	}
	return nil
}
