package natshistory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// deadMsgs is how many dead letters are under way at a time.
const deadMsgs = 256

// StoreDead implements partition.Archive: each letter is the first of its subject, or takes the place of an earlier stay's.
func (a *Archive) StoreDead(ctx context.Context, tasks []*taskstate.Task) error {
	limit := int(a.cfg.NATS.MaxPayload()) - headerRoom
	var failed []error
	for some := range slices.Chunk(tasks, deadMsgs) {
		var msgs []natslog.Msg
		var of []*taskstate.Task
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
	results := natslog.AppendEach(ctx, a.cfg.NATS, msgs)
	var there []int // where a letter lies already
	for i, r := range results {
		if errors.Is(r.Err, natslog.ErrWrongLast) {
			there = append(there, i)
		}
	}
	_ = parallel.Each(ctx, len(there), parallelMax, func(ctx context.Context, i int) error { // each has its result
		results[there[i]].Err = a.replaceDead(ctx, msgs[there[i]], of[there[i]])
		return nil
	})
	return notStored(results, of)
}

// notStored tells of what writes of tasks were refused, each for itself, or of the first one that failed otherwise.
func notStored(results []natslog.Appended, of []*taskstate.Task) error {
	var refused []error
	for i, r := range results {
		switch {
		case r.Err == nil:
		case natslog.BadMessage(r.Err):
			refused = append(refused, &partition.RefusedTaskError{Task: of[i].ID, Reason: r.Err})
		default:
			return r.Err
		}
	}
	return errors.Join(refused...)
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

// DropDead implements partition.Archive.
func (a *Archive) DropDead(ctx context.Context, letters []replica.Letter) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	places := make([]natslog.Place, len(letters))
	for i, l := range letters {
		places[i] = natslog.Place{Subject: topology.Dead(l.Domain, l.Tasklist, l.ID), Seq: l.Seq}
	}
	_, err := natslog.Delete(ctx, a.cfg.JetStream, topology.DeadLetterStream, places)
	return err
}

// DeadLetters deletes the dead letters of domains that are beyond their limits (letterlimit.Store).
type DeadLetters struct {
	reader *Reader
	most   int64 // that a purge deletes
}

// NewDeadLetters deletes by way of a reader.
func NewDeadLetters(r *Reader) DeadLetters { return DeadLetters{r, deletedMost} }

// deletedMost is how many letters a purge deletes at most. The server does nothing else with the stream meanwhile, for some tenths of a second.
const deletedMost = 50_000

// DeleteBefore implements letterlimit.Store.
func (d DeadLetters) DeleteBefore(ctx context.Context, domain string, at time.Time) (deleted int64, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	js, filter := d.reader.cfg.JetStream, topology.DeadFilter(domain)
	last, err := natslog.LastSeq(ctx, js, topology.DeadLetterStream) // what is stored later is younger
	if err != nil {
		return 0, false, err
	}
	first, err := natslog.Next(ctx, js, topology.DeadLetterStream, filter, 1)
	if err != nil || first == nil || !first.Time.Before(at) {
		return 0, false, err
	}
	young, err := natslog.NextSince(ctx, js, topology.DeadLetterStream, filter, at)
	if err != nil {
		return 0, false, err
	}
	end := last + 1
	if young != nil {
		end = min(end, young.Seq)
	}
	if end, more, err = d.some(ctx, filter, first.Seq, end); err != nil {
		return 0, false, err
	}
	deleted, err = natslog.Purge{Subject: filter, Before: end}.Do(ctx, js, topology.DeadLetterStream)
	return deleted, more, err
}

// some brings end nearer to first until no more letters lie between them than are deleted together.
func (d DeadLetters) some(ctx context.Context, filter string, first, end uint64) (nearer uint64, more bool, err error) {
	if int64(end-first) <= d.most {
		return end, false, nil
	}
	all, err := d.count(ctx, filter, first)
	for ; err == nil && int64(end-first) > d.most; end, more = first+(end-first)/2, true {
		behind, failed := d.count(ctx, filter, end)
		if failed != nil || all-behind <= d.most {
			return end, more, failed
		}
	}
	return end, more, err
}

// DeleteBeyond implements letterlimit.Store.
func (d DeadLetters) DeleteBeyond(ctx context.Context, domain string, keep int64) (deleted int64, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	filter := topology.DeadFilter(domain)
	all, err := d.count(ctx, filter, 1)
	if err != nil || all <= keep {
		return 0, false, err
	}
	some := max(keep, all-d.most) // the server counts again, so what was deleted meanwhile does no harm
	deleted, err = natslog.Purge{Subject: filter, Keep: uint64(some)}.Do(ctx, d.reader.cfg.JetStream, topology.DeadLetterStream)
	return deleted, some > keep, err
}

// count is how many letters there are from a sequence on, as any replica knows.
func (d DeadLetters) count(ctx context.Context, filter string, from uint64) (int64, error) {
	answers, err := d.reader.direct.Get(ctx, topology.DeadLetterStream, []natslog.Query{{Seq: from, NextFor: filter, Batch: 1}})
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return int64(len(answers[0].Records)) + int64(answers[0].Pending), nil
}

// Letters implements partition.Reader. The leader is asked: whether a letter is there decides whether its task comes back.
func (r *Reader) Letters(ctx context.Context, wanted []replica.Search) ([]*partition.Letter, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found := make([]*partition.Letter, len(wanted))
	return found, parallel.Each(ctx, len(wanted), parallelMax, func(ctx context.Context, i int) error {
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
