// Package batchclose closes a batch in the log of a partition (decision 0047).
//
// Owns: the record that closes it, and what makes the log refuse a task of the batch behind that. Never does: count tasks. On failure: the caller repeats;
// what is closed stays closed.
package batchclose

import (
	"context"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Log is the history log of all partitions.
type Log interface {
	// LastFor returns the last message of a subject in partition p; nil = there is none.
	LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error)
	// Append stores one message.
	Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error)
}

// Key names a batch in a partition. Made is when the batch was created, Unix ms.
type Key struct {
	Partition  int
	Domain, ID string
	Made       int64
}

func (k Key) subject() string { return topology.BatchClosed(k.Partition, k.Domain, k.ID, k.Made) }

// Member is m, which has tasks of the batch, as a message that the log refuses with natslog.ErrWrongLast once the batch is closed. A cluster refuses it, too,
// while another message of the batch is on its way: Closed tells.
func (k Key) Member(m natslog.Msg) natslog.Msg { return m.OverOf(k.subject(), 0) }

// Closed reports whether the batch is closed.
func Closed(ctx context.Context, log Log, k Key) (bool, error) {
	m, err := log.LastFor(ctx, k.Partition, k.subject())
	return m != nil, err
}

// Close closes the batch, if it is not closed.
func Close(ctx context.Context, log Log, k Key, version uint32) error {
	if closed, err := Closed(ctx, log, k); err != nil || closed {
		return err
	}
	return Keep(ctx, log, k, version, topology.BatchLifeMax)
}

// Keep stores the record that closes the batch, in place of the one before, for a while.
func Keep(ctx context.Context, log Log, k Key, version uint32, kept time.Duration) error {
	data, err := (&logv1.BatchClosed{BatchId: k.ID, LogVersion: version}).MarshalVT()
	if err != nil {
		return fmt.Errorf("close a batch: %w", err)
	}
	_, _, err = log.Append(ctx, natslog.Msg{Subject: k.subject(), Data: data}.InPlace(kept))
	return err
}
