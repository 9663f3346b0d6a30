package gateway

import (
	"context"
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

// openBatches are batches that were open a moment ago.
type openBatches struct {
	mu    sync.Mutex
	known map[batchRef]openBatch
}

// openBatch is when a batch was created, Unix ms, and when it was read.
type openBatch struct {
	made int64
	read time.Time
}

func (o *openBatches) made(of batchRef) (made int64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.known[of]
	return b.made, ok && time.Since(b.read) < openKnownFor
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
	if made, ok := g.openBatches.made(s.batchRef()); ok {
		s.joins(made)
		g.route(s)
		return
	}
	g.query(s.call.Domain, s.call.Deadline, s.failed, func(ctx context.Context) (codec.Message, error) {
		home, _, err := g.batchHome(ctx, s.call.Domain, s.batch())
		if err == nil && home.GetClosedAtMs() != 0 && s.repeats() { // what is not stored by now never will be
			err = g.closeMembers(ctx, s.call.Domain, home)
		}
		switch {
		case err != nil && s.repeats():
			g.unknown(s)
			return nil, nil
		case err != nil:
			return nil, err
		}
		switch refused := refusal(s.batch(), home); {
		case refused == nil:
			g.openBatches.learn(s.batchRef(), home.CreatedAtMs)
			s.joins(home.CreatedAtMs)
		case !s.repeats():
			return nil, refused
		case s.refusal == nil:
			s.refusal = refused
		}
		g.route(s)
		return nil, nil
	})
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

// refusedBy is why the log refuses the tasks of s for good, nil if it does not: their batch is closed in their partition.
func (g *Gateway) refusedBy(ctx context.Context, s *submission) (refused, err error) {
	if s.batch() == "" {
		return nil, nil
	}
	closed, err := batchclose.Closed(ctx, g.History, s.closeKey())
	if err != nil || !closed {
		return nil, err
	}
	return refusal(s.batch(), &logv1.BatchHome{ClosedAtMs: 1}), nil
}

// meetsClose answers submissions of a batch that the log has refused, or places them again: their batch may not be closed.
func (a *appender) meetsClose(batch []*submission) {
	ctx, cancel := context.WithTimeout(a.g.base, a.g.Config.AppendTimeout)
	defer cancel()
	refused, err := a.g.refusedBy(ctx, batch[0])
	for _, s := range batch {
		a.returned(s)
		if err == nil && refused != nil {
			s.refusal = refused
			s.refuse(refused)
		} else {
			a.place(s)
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
