package natshistory

import (
	"context"
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
)

// errIndexRefused passes once the stream is set up as it should be.
var errIndexRefused = errors.New("the archive's stream takes finished tasks, but not the index that finds them")

// singleOut finds the task for which the archive refuses a write, by halves. Those that
// it tries before are filed. The index follows with a later write: it is not at fault
// unless the archive takes every task.
func (a *Archive) singleOut(ctx context.Context, tasks []*taskstate.Task, last uint64) error {
	for len(tasks) > 0 {
		half := tasks[:(len(tasks)+1)/2]
		_, encoded, err := a.encode(half)
		if err != nil {
			return err
		}
		msgs, _ := a.share(half, encoded)
		at, err := a.append(ctx, msgs, last, true)
		switch {
		case err == nil:
			tasks, last = tasks[len(half):], at
		case !mayBeBad(err):
			return err
		case len(half) == 1 && natslog.BadMessage(err):
			return &partition.RefusedTaskError{Task: half[0].ID, KeepS: a.retentionS(half[0]), Reason: err}
		case len(half) == 1:
			return err
		default:
			tasks = half
		}
	}
	return errIndexRefused
}

// mayBeBad tells whether a write may have failed for what one message of it is.
func mayBeBad(err error) bool {
	return natslog.BadMessage(err) || errors.Is(err, natslog.ErrIncomplete)
}

func tooLarge(t *taskstate.Task, keepS int64, bytes, limit int) error {
	return &partition.RefusedTaskError{
		Task: t.ID, KeepS: keepS, Reason: fmt.Errorf("it has %d bytes, a message holds at most %d", bytes, limit),
	}
}

// Quarantine implements partition.Quarantine.
func (c Config) Quarantine(ctx context.Context, item partition.Quarantined) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	q := &logv1.Quarantined{Service: "history", Partition: int32(c.Partition), Reason: item.Reason, Data: item.Data}
	if item.Unreadable {
		q.Kind = logv1.QuarantineKind_QUARANTINE_KIND_UNREADABLE
		q.OriginStream, q.OriginSubject, q.OriginSeq = topology.HistoryStream(c.Partition), item.Subject, item.Seq
	} else {
		q.Kind, q.TargetSubject, q.TtlS = logv1.QuarantineKind_QUARANTINE_KIND_UNWRITABLE, item.Subject, item.KeepS
	}
	return quarantine.Put(ctx, c.NATS, q)
}
