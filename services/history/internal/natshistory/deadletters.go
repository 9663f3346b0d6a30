package natshistory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// deadMsgs is how many dead letters are under way at a time.
const deadMsgs = 256

// StoreDead implements partition.Archive: each letter is the first of its subject, or takes the place of an earlier stay's.
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
		if errors.Is(r.Err, natslog.ErrWrongLast) { // one is there
			r.Err = a.replaceDead(ctx, msgs[i], of[i])
		}
		switch {
		case r.Err == nil:
		case natslog.BadMessage(r.Err):
			failed = append(failed, &partition.RefusedTaskError{Task: of[i].ID, Reason: r.Err})
		default:
			return r.Err
		}
	}
	return errors.Join(failed...)
}

// replaceDead stores a letter in place of one of an earlier stay of its task.
func (a *Archive) replaceDead(ctx context.Context, msg natslog.Msg, t *taskstate.Task) error {
	there, err := natslog.LastForSubject(ctx, a.cfg.JetStream, topology.DeadLetterStream, msg.Subject)
	if err != nil || there == nil {
		return errors.Join(err, errLetterMoved)
	}
	old, err := record.Cut(there.Data, t.ID)
	if err == nil && old != nil && old.Parkings >= t.Parkings {
		return a.dropEarlier(ctx, t, there.Seq) // who stored it may have died before it could
	}
	if _, _, err := natslog.Append(ctx, a.cfg.NATS, msg.Over(there.Seq)); err != nil {
		return err
	}
	return a.dropEarlier(ctx, t, there.Seq+1)
}

// dropEarlier deletes the letters of t that lie before one.
func (a *Archive) dropEarlier(ctx context.Context, t *taskstate.Task, seq uint64) error {
	return a.DropDead(ctx, []replica.Letter{{Domain: t.Domain, Tasklist: t.Tasklist, ID: t.ID, Seq: seq - 1}})
}

var errLetterMoved = errors.New("the dead letter was deleted meanwhile")

// DropDead implements partition.Archive. It purges by subject, so that no sequence, wherever it comes from, deletes another task's letter.
func (a *Archive) DropDead(ctx context.Context, letters []replica.Letter) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	return dropLetters(ctx, a.cfg.JetStream, letters)
}

func dropLetters(ctx context.Context, js jetstream.JetStream, letters []replica.Letter) error {
	stream, err := js.Stream(ctx, topology.DeadLetterStream)
	if err != nil {
		return fmt.Errorf("look at the dead letters: %w", err)
	}
	return parallel(len(letters), func(i int) error {
		l := letters[i]
		return stream.Purge(ctx, jetstream.WithPurgeSubject(topology.Dead(l.Domain, l.Tasklist, l.ID)), jetstream.WithPurgeSequence(l.Seq+1))
	})
}

// Oldest implements partition.LetterStore.
func (r *Reader) Oldest(ctx context.Context, domain string, after uint64, limit, bytesMax int) (page []partition.Letter, behind uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	answers, err := r.direct.Get(ctx, topology.DeadLetterStream, []natslog.Query{{Seq: after + 1, NextFor: topology.DeadFilter(domain), Batch: limit, BytesMax: bytesMax}})
	if err != nil {
		return nil, 0, fmt.Errorf("read dead letters: %w", err)
	}
	for _, there := range answers[0].Records {
		_, id, ok := topology.DeadOfSubject(there.Subject)
		task, err := record.Cut(there.Data, id)
		if !ok || err != nil || task == nil {
			r.cfg.Log.Error("a dead letter cannot be read", "subject", there.Subject, "sequence", there.Seq, "error", err)
			continue
		}
		page = append(page, partition.Letter{Record: task, Seq: there.Seq})
	}
	return page, answers[0].Pending, nil
}

// Drop implements partition.LetterStore.
func (r *Reader) Drop(ctx context.Context, letters []replica.Letter) error {
	return dropLetters(ctx, r.cfg.JetStream, letters)
}

// Letters implements partition.Reader. The leader is asked: whether a letter is there decides whether its task comes back.
func (r *Reader) Letters(ctx context.Context, wanted []replica.Search) ([]*partition.Letter, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found := make([]*partition.Letter, len(wanted))
	return found, parallel(len(wanted), func(i int) error {
		s := wanted[i]
		if s.Domain == "" {
			return nil
		}
		there, err := natslog.LastForSubject(ctx, r.cfg.JetStream, topology.DeadLetterStream, topology.DeadOf(s.Domain, s.ID))
		if err != nil || there == nil {
			return err
		}
		task, err := record.Cut(there.Data, s.ID)
		if err != nil || task == nil {
			r.cfg.Log.Error("a dead letter cannot be read", "subject", there.Subject, "sequence", there.Seq, "error", err)
			return nil
		}
		found[i] = &partition.Letter{Record: task, Seq: there.Seq}
		return nil
	})
}

// parallelMax is how many calls about single letters are under way at a time.
const parallelMax = 16

// parallel does n things, some at a time, and returns what failed.
func parallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, parallelMax)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			errs[i] = do(i)
			<-slots
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
