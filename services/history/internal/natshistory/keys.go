package natshistory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// endedMsgs is how many ends of keys go in one write.
const endedMsgs = 256

// EndKeys implements partition.Archive. The last word on a key is stored in place of the one before, if that is the task's own, and
// the server forgets it once it says nothing any more. Many go in one atomic batch, with one sync to disk; where one of them was said already, or the key is
// another's, each goes for itself.
func (a *Archive) EndKeys(ctx context.Context, tasks []*taskstate.Task) error {
	var failed []error
	for some := range slices.Chunk(tasks, endedMsgs) {
		msgs := make([]natslog.Msg, len(some))
		for i, t := range some {
			msg, err := a.cfg.keyEnded(t, time.Now())
			if err != nil {
				return err
			}
			msgs[i] = msg
		}
		failed = append(failed, a.endKeys(ctx, some, msgs))
	}
	return errors.Join(failed...)
}

func (a *Archive) endKeys(ctx context.Context, tasks []*taskstate.Task, msgs []natslog.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	_, err := natslog.AppendAtomic(ctx, a.cfg.NATS, msgs)
	if err == nil || !errors.Is(err, natslog.ErrWrongLast) && !mayBeBad(err) {
		return err
	}
	results := natslog.AppendEach(ctx, a.cfg.NATS, msgs)
	for i := range results {
		if errors.Is(results[i].Err, natslog.ErrWrongLast) { // it was said, or is another's
			results[i].Err = nil
		}
	}
	return notStored(results, tasks)
}

// keyEnded is the last word on the unique key of t.
func (c *Config) keyEnded(t *taskstate.Task, now time.Time) (natslog.Msg, error) {
	u := t.Unique()
	freeAt := t.FinishedAt + u.ForMS
	data, err := (&logv1.UniqueKey{
		TaskId: t.ID[:], Key: u.Key, FreeAtMs: freeAt, LogVersion: c.LogVersion(),
	}).MarshalVT()
	if err != nil {
		return natslog.Msg{}, fmt.Errorf("encode the end of a unique key: %w", err)
	}
	kept := max(time.UnixMilli(freeAt).Sub(now), 0) + topology.UniqueKeyKept
	subject := topology.UniqueKey(c.Partition, t.Domain, topology.UniqueWithin(t.OrderKey(), u.Key))
	return natslog.Msg{Subject: subject, Data: data}.InPlace(kept).Over(u.Seq), nil
}
