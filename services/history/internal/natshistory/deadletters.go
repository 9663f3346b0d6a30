package natshistory

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// deadMsgs is how many dead letters are under way at a time.
const deadMsgs = 256

// StoreDead implements partition.Archive: each letter is the first of its subject.
func (a *Archive) StoreDead(ctx context.Context, tasks []*taskstate.Task) error {
	limit := int(a.cfg.NATS.MaxPayload()) - headerRoom
	var failed []error
	for len(tasks) > 0 {
		var msgs []natslog.Msg
		var of []*taskstate.Task
		some := tasks[:min(len(tasks), deadMsgs)]
		tasks = tasks[len(some):]
		for _, t := range some {
			data := a.enc.AppendTask(nil, t)
			if len(data) > limit {
				failed = append(failed, tooLarge(t, 0, len(data), limit))
				continue
			}
			of = append(of, t)
			msgs = append(msgs, natslog.Msg{
				Subject: topology.Dead(t.Domain, t.Tasklist, t.ID), Data: data,
				Header: nats.Header{jetstream.ExpectedLastSubjSeqHeader: []string{"0"}},
			})
		}
		failed = append(failed, a.storeDead(ctx, msgs, of))
	}
	return errors.Join(failed...)
}

// storeDead stores letters, each for itself.
func (a *Archive) storeDead(ctx context.Context, msgs []natslog.Msg, of []*taskstate.Task) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	var failed []error
	for i, r := range natslog.AppendEach(ctx, a.cfg.NATS, msgs) {
		switch {
		case r.Err == nil, errors.Is(r.Err, natslog.ErrWrongLast): // that is: it is there
		case natslog.BadMessage(r.Err):
			failed = append(failed, &partition.RefusedTaskError{Task: of[i].ID, Reason: r.Err})
		default:
			return r.Err
		}
	}
	return errors.Join(failed...)
}
