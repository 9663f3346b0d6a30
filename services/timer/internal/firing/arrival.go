package firing

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// arrival is one message of the store, read and decoded.
type arrival struct {
	index   due.Message
	version uint32
	body    *batch.Message
	// firstDueMS is the earliest due time in it.
	firstDueMS int64
}

// decode fails where the message is of an unknown log version (I13), or when ctx
// ends. A malformed message is in quarantine when it returns; the rest goes on.
func (o *Owner) decode(ctx context.Context, m Stored) (arrival, error) {
	body, index, err := Decode(m)
	if unknownVersion(err) {
		return arrival{}, fmt.Errorf("message %d of the timer store: %w", m.Seq, err)
	}
	if malformed := errors.Join(err, index.Malformed); malformed != nil {
		if err := o.setApart(ctx, m, malformed); err != nil {
			return arrival{}, err
		}
	}
	a := arrival{index: index.Message, version: index.Version, body: body}
	for i := range index.Tasks {
		if i == 0 || index.Tasks[i].DueMS < a.firstDueMS {
			a.firstDueMS = index.Tasks[i].DueMS
		}
	}
	return a, nil
}

// Decode is the index of a stored message, and the message with its records. With
// an error both hold nothing but where it lies: it is a *logversion.UnknownError (I13), or
// the message is malformed as a whole.
func Decode(m Stored) (*batch.Message, batch.Index, error) {
	body, index, err := batch.Decode(m.Data)
	if err == nil && index.Fence != m.Fence {
		err = errors.New("a fence that lies in a bucket, or no fence where only fences do")
		body, index = &batch.Message{}, batch.Index{}
	}
	index.Seq, index.AtMS, index.Bucket, index.Fence = m.Seq, m.AtMS, m.Bucket, m.Fence
	for i := range index.Tasks {
		if t := &index.Tasks[i]; t.ID != (ids.TaskID{}) && (topology.TimerBucket(t.DueMS) != m.Bucket || i > far.IndexMost) {
			index.Malformed = cmp.Or(index.Malformed, fmt.Errorf("record %d: it is due in another minute, or there are too many before it", i))
			*t = due.Task{}
		}
	}
	return body, index, err
}

// setApart puts a message into quarantine, whole, and tries for as long as it takes:
// its bucket may be purged once it has been passed over.
func (o *Owner) setApart(ctx context.Context, m Stored, reason error) error {
	for wait := backoff.New(retryFirst, retryLast); ; {
		err := o.Quarantine(ctx, m, reason.Error())
		if err == nil {
			o.Logger.Error("a message of the timer store is malformed and was put into quarantine", "sequence", m.Seq, "error", reason)
			return nil
		}
		o.Logger.Warn("a malformed message cannot be put into quarantine, trying again", "sequence", m.Seq, "error", err)
		if !wait.Sleep(ctx) {
			return ctx.Err()
		}
	}
}

// unknownVersion tells whether something is of a log version that this program
// does not know. The owner ends then.
func unknownVersion(err error) bool {
	var unknown *logversion.UnknownError
	return errors.As(err, &unknown)
}
