// Package batchmembers reads and closes what the log of a partition says about the members of a batch: how many there are, and whether it takes more
// (decision 0047).
//
// Owns: the one way to close. Never does: count members; who stores them counts them in the same write. On failure: the caller repeats; what is closed
// stays closed.
package batchmembers

import (
	"context"
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// closeTries is how often a record is read again while more members are stored.
const closeTries = 100

// ErrUnreadable: a record cannot be decoded, or a newer version wrote it.
var ErrUnreadable = errors.New("the members of a batch are unreadable")

// Log is the history log of all partitions.
type Log interface {
	// LastFor returns the last message of a subject in partition p; nil = there is none.
	LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error)
	// Append stores one message. The error wraps natslog.ErrWrongLast if the last message of the subject is not the expected one.
	Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error)
}

// Key names a batch in a partition. Made is when the batch was created, Unix ms.
type Key struct {
	Partition  int
	Domain, ID string
	Made       int64
}

// Subject is where the log of the partition has the record.
func (k Key) Subject() string { return topology.BatchMembers(k.Partition, k.Domain, k.ID, k.Made) }

// Read returns the record and its sequence; 0 = there is none.
func Read(ctx context.Context, log Log, k Key) (said *logv1.BatchMembers, seq uint64, err error) {
	said = &logv1.BatchMembers{}
	m, err := log.LastFor(ctx, k.Partition, k.Subject())
	if err != nil || m == nil {
		return said, 0, err
	}
	if err = said.UnmarshalVT(m.Data); err == nil {
		err = logversion.Check(said.LogVersion)
	}
	if err != nil {
		return said, 0, fmt.Errorf("%w: message %d of partition %d: %w", ErrUnreadable, m.Seq, k.Partition, err)
	}
	return said, m.Seq, nil
}

// Close closes the record, or stores a closed one if there is none: the log takes no member over it. It returns how many members the partition has.
func Close(ctx context.Context, log Log, k Key, version uint32) (tasks int64, err error) {
	for range closeTries {
		said, seq, err := Read(ctx, log, k)
		if err != nil || said.Closed {
			return said.Tasks, err
		}
		said.BatchId, said.LogVersion, said.Closed = k.ID, version, true
		data, err := said.MarshalVT()
		if err != nil {
			return 0, fmt.Errorf("the members of a batch: %w", err)
		}
		_, _, err = log.Append(ctx, natslog.Msg{Subject: k.Subject(), Data: data}.InPlace(topology.BatchLifeMax).Over(seq))
		if !errors.Is(err, natslog.ErrWrongLast) {
			return said.Tasks, err
		}
	}
	return 0, fmt.Errorf("close a batch in partition %d: more of its tasks are stored all the time", k.Partition)
}
