package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/batcher"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/distribution"
)

// appender brings submissions into the log: it chooses their partition, merges
// those of one destination into one message, and moves them to the next
// partition where that is known to have failed.
type appender struct {
	g *Gateway

	mu           sync.Mutex
	balancer     *distribution.Balancer
	destinations map[destinationKey]*destination
}

// destinationKey names a subject of the log: submissions of one key may share a
// message. Those of a domain that span tasklists have one of their own, of no partition yet.
type destinationKey struct {
	partition        int
	lane             ids.Lane
	domain, tasklist string
}

// destination exists while anything is on its way there, so their number is
// bounded by that of the requests under way.
type destination struct {
	batcher *batcher.Batcher[*submission]
	pending int
}

func newAppender(g *Gateway) *appender {
	return &appender{
		g:            g,
		balancer:     distribution.New(g.Partitioning.History),
		destinations: map[destinationKey]*destination{},
	}
}

// TakeLoad takes in what the owner of a partition reports (topology.HintLoad).
func (g *Gateway) TakeLoad(data []byte) {
	var load rpcv1.HistoryLoad
	if load.UnmarshalVT(data) != nil {
		return // a hint: the next one comes in half a second
	}
	g.outcomes.report(&load)
	g.appender.mu.Lock()
	defer g.appender.mu.Unlock()
	g.appender.balancer.Report(int(load.Partition), load.Active, load.UnreadBatches)
	g.appender.balancer.ReportFull(int(load.Partition), load.StorageFull)
}

// place sends s, which has one share, to the best partition. It answers s, now
// or later, whatever happens.
func (a *appender) place(s *submission) {
	now := time.Now()
	if why := a.tooLate(s, now); why != "" {
		s.unavailable(why)
		return
	}
	a.mu.Lock()
	p, ok := a.balancer.Pick(now, s.tasks(), rand.Uint64())
	if !ok {
		wait, full := a.patience(s, now), a.balancer.Full(now) > 0
		a.mu.Unlock()
		if full {
			s.refuseStorageFull()
			return
		}
		time.AfterFunc(wait, func() { a.place(s) })
		return
	}
	s.place(p)
	share := s.accepted.Shares[0]
	key := destinationKey{p, share.Lane, s.call.Domain, share.Tasklist}
	err := a.enqueue(s, key, batcher.Config{MaxBytes: batchBytesMax}, a.flush)
	if err != nil {
		a.balancer.Returned(p, s.tasks())
	}
	a.mu.Unlock()
	if err != nil {
		s.refuseFull()
	}
}

// refuseFull answers s: there is no room for it to wait.
func (s *submission) refuseFull() {
	s.refuse(fault.New(fault.ResourceExhausted, "too many tasks wait for the log").After(fullRetryAfter))
}

// enqueue hands s to the group commit of its destination; a.mu is held.
func (a *appender) enqueue(s *submission, key destinationKey, cfg batcher.Config, flush func(destinationKey, []*submission)) error {
	d := a.destinations[key]
	if d == nil {
		d = &destination{}
		d.batcher = batcher.New(cfg, func(_ context.Context, batch []*submission) {
			flush(key, batch)
			a.forget(key, d, len(batch))
		})
		a.destinations[key] = d
	}
	if err := d.batcher.Add(s, s.weight); err != nil {
		return err
	}
	d.pending++
	return nil
}

// forget counts n submissions out, and drops a destination with none left.
func (a *appender) forget(key destinationKey, d *destination, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.pending -= n; d.pending == 0 {
		delete(a.destinations, key)
	}
}

// flush appends one batch as one message and tells each submission.
func (a *appender) flush(key destinationKey, batch []*submission) {
	now := time.Now()
	batch = a.dropLate(batch, now)
	if len(batch) == 0 {
		return
	}
	if !a.healthy(key.partition) { // failed while these waited
		for _, s := range batch {
			a.returned(s)
			a.place(s)
		}
		return
	}
	message := newMessageID()
	msg := natslog.Msg{Subject: topology.Submit(key.partition, key.lane, key.domain, key.tasklist), MsgID: message.String()}
	var err error
	if msg.Data, err = merged(batch, a.g.logVersion()).MarshalVT(); err != nil {
		for _, s := range batch {
			a.returned(s)
			s.refuse(fault.New(fault.Internal, "encode a batch: %v", err))
		}
		return
	}
	_, _, err = a.append(msg)
	a.learn(key.partition, batch, err)
	switch {
	case err == nil:
		a.g.storedAll(batch, 1, now, time.Now())
	case errors.Is(err, natslog.ErrNotStored):
		for _, s := range batch {
			a.place(s)
		}
	default:
		a.g.Log.Warn("an append has no known outcome, repeating it", "subject", msg.Subject, "error", err)
		go a.settle(msg, message, batch, now)
	}
}

func merged(batch []*submission, version uint32) *logv1.Batch {
	if len(batch) == 1 {
		return &logv1.Batch{Tasks: batch[0].accepted.Records, LogVersion: version}
	}
	n := 0
	for _, s := range batch {
		n += s.tasks()
	}
	tasks := make([]*logv1.Record, 0, n)
	for _, s := range batch {
		tasks = append(tasks, s.accepted.Records...)
	}
	return &logv1.Batch{Tasks: tasks, LogVersion: version}
}

// storedAll answers submissions that lie in so many messages of the log.
func (g *Gateway) storedAll(batch []*submission, messages int, sent, acked time.Time) {
	g.metrics.logMessages.Add(int64(messages))
	for _, s := range batch {
		g.stored(s, sent, acked)
	}
}

func (a *appender) append(msg natslog.Msg) (seq uint64, duplicate bool, err error) {
	ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
	defer cancel()
	return a.g.History.Append(ctx, msg)
}

// learn tells the balancer how an append to p went.
func (a *appender) learn(p int, batch []*submission, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.balancer.Stored(p)
		return
	}
	a.g.metrics.appendsFailed.Add(1)
	n := 0
	for _, s := range batch {
		n += s.tasks()
	}
	if errors.Is(err, natslog.ErrFull) {
		a.balancer.Refused(p, n, time.Now())
		return
	}
	a.balancer.Failed(p, n, time.Now())
}

func (a *appender) healthy(p int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.balancer.Healthy(p)
}

func (a *appender) returned(s *submission) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balancer.Returned(s.partition, s.tasks())
}

// dropLate answers those that waited too long for their turn.
func (a *appender) dropLate(batch []*submission, now time.Time) []*submission {
	kept := batch[:0]
	for _, s := range batch {
		if why := a.tooLate(s, now); why != "" {
			a.returned(s)
			s.unavailable(why)
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// tooLate says why s must not be sent any more, or nothing.
func (a *appender) tooLate(s *submission, now time.Time) string {
	if a.g.base.Err() != nil {
		return "the frontend is stopping"
	}
	if !now.Before(s.call.Deadline) {
		return "no partition of the log took it in time"
	}
	return ""
}

// patienceMin and patienceMax bound how soon a submission that found no healthy
// partition asks again.
const patienceMin, patienceMax = 5 * time.Millisecond, 250 * time.Millisecond

// patience is how long s waits for a healthy partition; a.mu is held.
func (a *appender) patience(s *submission, now time.Time) time.Duration {
	wait := patienceMax
	if at, ok := a.balancer.Next(); ok {
		wait = min(wait, at.Sub(now))
	}
	return max(patienceMin, min(wait, s.call.Deadline.Sub(now)))
}
