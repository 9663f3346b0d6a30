package gateway

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/batchclose"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Tasks of a batch are stored as others are, in messages of their own, which the log refuses once the batch is closed in that partition (decision 0047).

const (
	// openKnownFor is for how long a frontend takes a batch for open that was. A batch that is closed meanwhile is closed in the log for longer.
	openKnownFor = 10 * time.Second
	// openKnownMax bounds the batches that are known to be open.
	openKnownMax = 4096
)

// inTransit is how long a message of a batch waits that a cluster has refused since another one was on its way.
func inTransit() time.Duration {
	return time.Duration(2+rand.IntN(18)) * time.Millisecond
}

// openBatches are batches that were open a moment ago.
type openBatches struct {
	mu    sync.Mutex
	known map[batchRef]openBatch
	// waiting are submissions whose batch is being read.
	waiting map[batchRef][]*submission
}

// openBatch is when a batch was created, Unix ms, and when it was read.
type openBatch struct {
	made int64
	read time.Time
}

// find returns when the batch of s was created, if it was open a moment ago. Else s waits until the batch is read; first: no one reads it so far.
func (o *openBatches) find(s *submission) (made int64, known, first bool) {
	of := s.batchRef()
	o.mu.Lock()
	defer o.mu.Unlock()
	if b, ok := o.known[of]; ok && time.Since(b.read) < openKnownFor {
		return b.made, true, false
	}
	if o.waiting == nil {
		o.waiting = make(map[batchRef][]*submission)
	}
	o.waiting[of] = append(o.waiting[of], s)
	return 0, false, len(o.waiting[of]) == 1
}

// read takes those out that wait for a batch.
func (o *openBatches) read(of batchRef) []*submission {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.waiting[of]
	delete(o.waiting, of)
	return all
}

func (o *openBatches) learn(of batchRef, made int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || len(o.known) >= openKnownMax {
		o.known = make(map[batchRef]openBatch)
	}
	o.known[of] = openBatch{made, time.Now()}
}

// batch is the batch of the tasks of s; "" = none.
func (s *submission) batch() string { return s.accepted.Records[0].BatchId }

func (s *submission) batchRef() batchRef { return batchRef{s.call.Domain, s.batch()} }

// closeKey names the batch of s in its partition.
func (s *submission) closeKey() batchclose.Key {
	return batchclose.Key{Partition: s.partition, Domain: s.call.Domain, ID: s.batch(), Made: s.accepted.Records[0].BatchMadeMs}
}

// member is m, a message of the tasks of s, as the log may take it.
func (s *submission) member(m natslog.Msg) natslog.Msg {
	if s.batch() == "" {
		return m
	}
	return s.closeKey().Member(m)
}

// joinBatch stores the tasks of s in their batch, if it is open. It answers s.
func (g *Gateway) joinBatch(s *submission) {
	made, known, first := g.openBatches.find(s)
	if known {
		s.joins(made)
		g.route(s)
		return
	}
	if !first {
		return
	}
	of := s.batchRef()
	var all []*submission
	failed := func(_ codec.Message, err error) {
		if err == nil {
			return
		}
		for _, s := range append(all, g.openBatches.read(of)...) {
			s.refuse(err)
		}
	}
	g.query(of.domain, time.Now().Add(g.Config.AppendTimeout), failed, func(ctx context.Context) (codec.Message, error) {
		home, _, err := g.batchHome(ctx, of.domain, of.id)
		if err == nil && home.GetClosedAtMs() == 0 && home != nil {
			g.openBatches.learn(of, home.CreatedAtMs)
		}
		all = g.openBatches.read(of)
		if err == nil && home.GetClosedAtMs() != 0 && slices.ContainsFunc(all, (*submission).repeats) { // what is not stored by now never will be
			err = g.closeMembers(ctx, of.domain, home)
		}
		for len(all) > 0 {
			s := all[0]
			all = all[1:]
			g.joinHome(s, home, err)
		}
		return nil, nil
	})
}

// joinHome stores the tasks of s in a batch, if it is open; nil = there is none. It answers s.
func (g *Gateway) joinHome(s *submission, home *logv1.BatchHome, err error) {
	refused := refusal(s.batch(), home)
	switch {
	case err != nil && s.repeats():
		g.unknown(s)
		return
	case err != nil:
		s.refuse(err)
		return
	case refused == nil:
		s.joins(home.CreatedAtMs)
	case !s.repeats():
		s.refuse(refused)
		return
	default:
		s.refusal, s.closed = refused, true
	}
	g.route(s)
}

// joins notes the batch that the tasks of s are of.
func (s *submission) joins(made int64) {
	for _, r := range s.accepted.Records {
		r.BatchMadeMs = made
	}
}

// refusal is why a batch takes no tasks, or nil.
func refusal(id string, home *logv1.BatchHome) error {
	const path = "/tasks/0/batch_id"
	switch {
	case home == nil:
		return fault.At(fault.NotFound, path, "there is no batch %q: make it with batches.create", id)
	case home.EndedAtMs != 0:
		return fault.At(fault.FailedPrecondition, path, "the batch %q is over", id)
	case home.ClosedAtMs != 0:
		return fault.At(fault.FailedPrecondition, path, "the batch %q is closed", id)
	}
	return nil
}

// refusedBy is why a log refuses the tasks of s for good, nil if it does not: their batch is closed in their partition.
func (s *submission) refusedBy(ctx context.Context, log Log) (refused, err error) {
	if s.batch() == "" {
		return nil, nil
	}
	closed, err := batchclose.Closed(ctx, log, s.closeKey())
	if err != nil || !closed {
		return nil, err
	}
	return refusal(s.batch(), &logv1.BatchHome{ClosedAtMs: 1}), nil
}

// meetsClose answers submissions of a batch that the log has refused, or places them again: their batch may not be closed.
func (a *appender) meetsClose(batch []*submission) {
	ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
	defer cancel()
	refused, err := batch[0].refusedBy(ctx, a.g.History)
	for _, s := range batch {
		a.returned(s)
		if err == nil && refused != nil {
			s.refusal, s.closed = refused, true
			s.refuse(refused)
		} else {
			time.AfterFunc(inTransit(), func() { a.place(s) })
		}
	}
}

// batchHome reads a batch; nil = there is none. Seq is where it lies.
func (g *Gateway) batchHome(ctx context.Context, domain, id string) (home *logv1.BatchHome, seq uint64, err error) {
	p := topology.BatchPartition(domain, id, g.Partitioning)
	m, err := g.History.LastFor(ctx, p, topology.BatchHome(p, domain, id))
	if err != nil {
		return nil, 0, fault.New(fault.Unavailable, "the log does not answer: %v", err).After(awayRetryAfter)
	}
	if m == nil {
		return nil, 0, nil
	}
	home = &logv1.BatchHome{}
	if err := home.UnmarshalVT(m.Data); err != nil {
		return nil, 0, fault.New(fault.Internal, "message %d of partition %d is no batch: %v", m.Seq, p, err)
	}
	if err := logversion.Check(home.LogVersion); err != nil {
		return nil, 0, fault.New(fault.Internal, "message %d of partition %d: %v", m.Seq, p, err)
	}
	return home, m.Seq, nil
}
