package gateway

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// String is the id as it travels.
func (m messageID) String() string { return hex.EncodeToString(m[:]) }

// token pins a repeat of a submit of unknown outcome to the partition, the ids
// and the log message of its first try (decision 0005). It is sealed for its domain:
// whoever could make one up could submit a task under the id of another domain's.
type token struct {
	partition int
	at        time.Time
	seed      uint64
	tasks     int
	message   messageID
	// spans: the request has several tasklists. Frontends of before take a duplicate of such a message for
	// the request's own, so they must not read the token.
	spans bool
}

const (
	tokenVersion      = 2
	tokenVersionSpans = 3
	tokenBytes        = 1 + 2 + 8 + 8 + 2 + 16
)

// print prints the token for clients of a domain; it is opaque to them.
func (t token) print(seals *ids.Tokens, domain string) string {
	version := byte(tokenVersion)
	if t.spans {
		version = tokenVersionSpans
	}
	b := append(make([]byte, 0, tokenBytes+ids.SealBytes), version)
	b = binary.BigEndian.AppendUint16(b, uint16(t.partition))
	b = binary.BigEndian.AppendUint64(b, uint64(t.at.UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, t.seed)
	b = binary.BigEndian.AppendUint16(b, uint16(t.tasks))
	b = append(b, t.message[:]...)
	seal := seals.Seal(domain, b)
	b = append(b, seal[:]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseToken reads a token that a client of a domain presents.
func parseToken(seals *ids.Tokens, domain, s string) (*token, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != tokenBytes+ids.SealBytes || b[0] != tokenVersion && b[0] != tokenVersionSpans || !seals.Sealed(domain, b[:tokenBytes], b[tokenBytes:]) {
		return nil, fault.At(fault.InvalidArgument, "/retry_token", "is not a token that this domain was given")
	}
	return &token{
		partition: int(binary.BigEndian.Uint16(b[1:])),
		at:        time.UnixMilli(int64(binary.BigEndian.Uint64(b[3:]))),
		seed:      binary.BigEndian.Uint64(b[11:]),
		tasks:     int(binary.BigEndian.Uint16(b[19:])),
		message:   messageID(b[21:tokenBytes]),
		spans:     b[0] == tokenVersionSpans,
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
