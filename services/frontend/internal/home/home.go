// Package home reads and changes what is one message of the log of its home partition: a batch, or a schedule.
//
// Owns: the compare-and-set of that message, its repetition while its outcome is unknown, and the check of its log version.
//
// Never does: know what the message says, or for how long the log keeps it.
//
// On failure: a *fault.Error that says what is known: UNAVAILABLE if nothing was stored, UNKNOWN if that is not known.
package home

import (
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
)

// againFirst and againLast are the waits between two tries to store a message.
const againFirst, againLast = 10 * time.Millisecond, 500 * time.Millisecond

// Log is the history log of all partitions.
type Log interface {
	// Append stores one message; its errors wrap natslog.ErrNotStored or natslog.ErrOutcomeUnknown.
	Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error)
	// LastFor returns the last message of a subject in partition p; nil if there is none.
	LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error)
}

// Home is a generated message that says in which log version it is written.
type Home[M any] interface {
	*M
	MarshalVT() ([]byte, error)
	UnmarshalVT(data []byte) error
	GetLogVersion() uint32
}

// Place is where the log has a home.
type Place struct {
	Partition int
	Subject   string
	// Noun is what people call it.
	Noun string
}

// Decode reads a home that the log has.
func Decode[M any, H Home[M]](at Place, m *natslog.Record) (H, error) {
	h := H(new(M))
	if err := h.UnmarshalVT(m.Data); err != nil {
		return nil, fault.New(fault.Internal, "message %d of partition %d is no %s: %v", m.Seq, at.Partition, at.Noun, err)
	}
	if err := logversion.Check(h.GetLogVersion()); err != nil {
		return nil, fault.New(fault.Internal, "message %d of partition %d: %v", m.Seq, at.Partition, err)
	}
	return h, nil
}

// Read returns the home at a place; nil = there is none. Seq is where it lies.
func Read[M any, H Home[M]](ctx context.Context, log Log, at Place) (h H, seq uint64, err error) {
	m, err := log.LastFor(ctx, at.Partition, at.Subject)
	if err != nil {
		return nil, 0, fault.New(fault.Unavailable, "the log does not answer: %v", err).After(call.AwayRetryAfter)
	}
	if m == nil {
		return nil, 0, nil
	}
	h, err = Decode[M, H](at, m)
	return h, m.Seq, err
}

// Change stores what change makes of a home, nil = as it is, over what it was made of. It returns the home as it is then. If it is not known
// whether it was stored, the home is read again. An append may take so long; kept says for how long the log keeps the message.
func Change[M any, H Home[M]](
	ctx context.Context, log Log, at Place, appendTimeout time.Duration, kept func(H, natslog.Msg) natslog.Msg, change func(was H) (H, error),
) (H, error) {
	unknown := false // whether an append may have been stored
	for delay := backoff.New(againFirst, againLast); ; {
		was, seq, err := Read[M, H](ctx, log, at)
		if err != nil && unknown {
			return nil, fault.New(fault.Unknown, "the log did not say whether the %s is stored: repeat the request", at.Noun).After(call.AwayRetryAfter)
		}
		if err != nil {
			return nil, err
		}
		h, err := change(was)
		if err != nil || h == nil {
			return was, err
		}
		data, err := h.MarshalVT()
		if err != nil {
			return nil, fault.New(fault.Internal, "encode a %s: %v", at.Noun, err)
		}
		once, cancel := context.WithTimeout(ctx, appendTimeout)
		_, _, err = log.Append(once, kept(h, natslog.Msg{Subject: at.Subject, Data: data}).Over(seq))
		cancel()
		switch {
		case err == nil:
			return h, nil
		case errors.Is(err, natslog.ErrFull):
			return nil, call.StorageFull()
		}
		unknown = unknown || !errors.Is(err, natslog.ErrNotStored)
		delay.Sleep(ctx)
		if ctx.Err() != nil {
			code := fault.Unavailable
			if unknown {
				code = fault.Unknown
			}
			return nil, fault.New(code, "the log did not say in time that the %s is stored: repeat the request", at.Noun).After(call.AwayRetryAfter)
		}
	}
}
