package natshistory

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// endedMsgs is how many ends of keys go in one write.
const endedMsgs = 256

// EndKeys implements partition.Archive. The last word on a key is stored in place of the one before, if that is the task's own, and
// the server forgets it once it says nothing any more. Many go in one atomic batch, with one sync to disk; where one of them was said already, or the key is
// another's, each goes for itself.
func (a *Archive) EndKeys(ctx context.Context, tasks []*taskstate.Task) error {
	var failed []error
	for len(tasks) > 0 {
		some := tasks[:min(len(tasks), endedMsgs)]
		tasks = tasks[len(some):]
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
	var failed []error
	for i, r := range natslog.AppendEach(ctx, a.cfg.NATS, msgs) {
		switch {
		case r.Err == nil, errors.Is(r.Err, natslog.ErrWrongLast): // that is: it was said, or is another's
		case natslog.BadMessage(r.Err):
			failed = append(failed, &partition.RefusedTaskError{Task: tasks[i].ID, Reason: r.Err})
		default:
			return r.Err
		}
	}
	return errors.Join(failed...)
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
	return natslog.Msg{
		Subject: topology.UniqueKey(c.Partition, t.Domain, topology.UniqueWithin(t.OrderKey(), u.Key)), Data: data,
		Header: nats.Header{
			jetstream.MsgRollup:    []string{jetstream.MsgRollupSubject},
			jetstream.MsgTTLHeader: []string{strconv.FormatInt(int64(kept/time.Second), 10)},
		},
	}.Over(u.Seq), nil
}
