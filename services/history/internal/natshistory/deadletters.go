package natshistory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	results := natslog.AppendEach(ctx, a.cfg.NATS, msgs)
	var there []int // where a letter, or a mark, lies already
	for i, r := range results {
		if errors.Is(r.Err, natslog.ErrWrongLast) {
			there = append(there, i)
		}
	}
	_ = parallel(len(there), func(i int) error { // each has its result
		results[there[i]].Err = a.replaceDead(ctx, msgs[there[i]], of[there[i]])
		return nil
	})
	var failed []error
	for i, r := range results {
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
	if _, _, err := natslog.Append(ctx, a.cfg.NATS, msg.Over(there.Seq)); err != nil || there.IsMark() { // a mark goes by itself
		return err
	}
	return a.dropEarlier(ctx, t, there.Seq+1)
}

// dropEarlier deletes the letters of t that lie before one.
func (a *Archive) dropEarlier(ctx context.Context, t *taskstate.Task, seq uint64) error {
	return a.DropDead(ctx, []replica.Letter{{Domain: t.Domain, Tasklist: t.Tasklist, ID: t.ID, Seq: seq - 1}})
}

var errLetterMoved = errors.New("the dead letter was deleted meanwhile")

// dropLetters purges letters, each for itself.
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

// oldestRounds is how many pages without a letter are read together: where many letters are gone, marks lie before the others. The pages grow, up to marksPage.
const oldestRounds, marksPage = 100, 4000

// Oldest implements partition.LetterStore.
func (r *Reader) Oldest(ctx context.Context, domain string, after uint64, limit, bytesMax int) (page partition.LetterPage, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	passed := uint64(0)
	var oldest time.Time
	for more, n, round := true, limit, 0; more && len(page.Letters) == 0 && round < oldestRounds; n, round = max(limit, min(2*n, marksPage)), round+1 {
		answers, err := r.direct.Get(ctx, topology.DeadLetterStream, []natslog.Query{{Seq: after + 1, NextFor: topology.DeadFilter(domain), Batch: n, BytesMax: bytesMax}})
		if err != nil {
			return page, fmt.Errorf("read dead letters: %w", err)
		}
		page.Behind, more = answers[0].Pending, answers[0].More
		for i := range answers[0].Records {
			if len(page.Letters) == limit {
				page.Behind += uint64(len(answers[0].Records) - i)
				break
			}
			there := &answers[0].Records[i]
			after = there.Seq
			if oldest.IsZero() {
				oldest = there.Time
			}
			if there.IsMark() {
				passed++
				continue
			}
			_, id, ok := topology.DeadOfSubject(there.Subject)
			task, err := record.Cut(there.Data, id)
			if !ok || err != nil || task == nil {
				r.cfg.Log.Error("a dead letter cannot be read", "subject", there.Subject, "sequence", there.Seq, "error", err)
				continue
			}
			page.Letters = append(page.Letters, partition.Letter{Record: task, Seq: there.Seq})
		}
	}
	marks, sure, err := r.marked(ctx, domain) // only now: what was counted was said before
	page.Marks, page.Sure = marks-min(marks, passed), sure && r.certainty.all(r.cfg.NATS.Stats().Reconnects, oldest, time.Now())
	return page, err
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
		if err != nil || there == nil || there.IsMark() {
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
