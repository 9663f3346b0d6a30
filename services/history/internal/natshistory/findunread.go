package natshistory

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

const (
	// clockSkew is how far the clocks of a frontend and the log may be apart.
	clockSkew = 5 * time.Second
	// hintMsgs is how many messages are looked at where a hint points to.
	hintMsgs = 4
	// scanMsgs and scanBytes are read of the log at a time, scanBytesMax in all.
	scanMsgs     = 256
	scanBytes    = 1 << 20
	scanBytesMax = 64 << 20
)

// Unread implements partition.Reader. The log is read as it lies, events too: for a
// filter the server would have to count what matches, which takes longer.
func (r *Reader) Unread(ctx context.Context, id ids.TaskID, hint uint64, read replica.Levels) (*logv1.Record, ids.Position, error) {
	if hint > 0 {
		answers, err := r.get(ctx, topology.HistoryStream(r.cfg.Partition), natslog.Query{Seq: hint, Batch: hintMsgs})
		if err != nil {
			return nil, 0, err
		}
		found, at, err := r.unreadIn(answers[0].Records, id, read)
		if err != nil || found != nil {
			return found, at, err
		}
	}
	select {
	case r.scans <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("search the log: %w", ctx.Err())
	}
	defer func() { <-r.scans }()
	return r.scan(ctx, id, read)
}

// get asks once. An answer may be lost, so it is not waited for without end.
func (r *Reader) get(ctx context.Context, stream string, q natslog.Query) ([]natslog.Answer, error) {
	return r.ask(ctx, stream, []natslog.Query{q})
}

func (r *Reader) ask(ctx context.Context, stream string, queries []natslog.Query) ([]natslog.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return r.direct.Get(ctx, stream, queries)
}

// scan reads the log from the task's creation, which its id tells, until a message
// is too young to hold its submit.
func (r *Reader) scan(ctx context.Context, id ids.TaskID, read replica.Levels) (*logv1.Record, ids.Position, error) {
	stream := topology.HistoryStream(r.cfg.Partition)
	created := id.Time()
	begin, end := created.Add(-clockSkew), created.Add(clockSkew+topology.SubmitLatest)
	answers, err := r.get(ctx, stream, natslog.Query{Since: &begin, Batch: 1})
	if err != nil || len(answers[0].Records) == 0 {
		return nil, 0, err
	}
	next, err := r.firstUnread(ctx, stream, answers[0].Records[0].Seq, read)
	if err != nil || next == 0 {
		return nil, 0, err
	}
	for bytes := 0; ; {
		answers, err := r.get(ctx, stream, natslog.Query{Seq: next, Batch: scanMsgs, BytesMax: scanBytes})
		if err != nil {
			return nil, 0, err
		}
		some := answers[0].Records
		for i, rec := range some {
			if rec.Time.After(end) {
				return r.unreadIn(some[:i], id, read)
			}
			bytes += len(rec.Data)
		}
		found, at, err := r.unreadIn(some, id, read)
		if err != nil || found != nil || !answers[0].More || len(some) == 0 {
			return found, at, err
		}
		if bytes > scanBytesMax {
			return nil, 0, partition.ErrSearchTooLong
		}
		next = some[len(some)-1].Seq + 1
	}
}

// firstUnread is the first message from a sequence on that its lane has not read, 0 = there
// is none. The read level of a lane that was not used recently, or never, says nothing of what
// is unread: its next message does.
func (r *Reader) firstUnread(ctx context.Context, stream string, from uint64, read replica.Levels) (first uint64, err error) {
	var queries []natslog.Query
	after := func(seq uint64, subject string) {
		if seq < math.MaxUint64 {
			queries = append(queries, natslog.Query{Seq: max(from, seq+1), NextFor: subject})
		}
	}
	for lane, seq := range read.Lanes {
		after(seq, topology.SubmitLane(r.cfg.Partition, ids.Lane(lane)))
	}
	for _, q := range read.Queues {
		after(q.Seq, topology.SubmitDomain(r.cfg.Partition, q.Lane, q.Domain))
	}
	if len(queries) == 0 {
		return 0, nil
	}
	answers, err := r.ask(ctx, stream, queries)
	if err != nil {
		return 0, err
	}
	for _, a := range answers {
		for _, rec := range a.Records {
			if first == 0 || rec.Seq < first {
				first = rec.Seq
			}
		}
	}
	return first, nil
}

// unreadIn looks through messages of the log, and tells where the task lies.
func (r *Reader) unreadIn(some []natslog.Record, id ids.TaskID, read replica.Levels) (*logv1.Record, ids.Position, error) {
	for _, rec := range some {
		if !topology.IsSubmit(r.cfg.Partition, rec.Subject) {
			continue
		}
		lane, ok := topology.LaneOf(r.cfg.Partition, rec.Subject)
		at := replica.Queue{Lane: lane, Domain: topology.DomainOfSubmit(r.cfg.Partition, rec.Subject)}
		if ok && rec.Seq <= read.Of(at) {
			continue
		}
		found, err := record.Cut(rec.Data, id)
		if err == nil && found != nil && !record.Late(found, rec.Time) { // what cannot be read goes to the quarantine when it is read
			return found, ids.NewPosition(rec.Seq, lane), nil
		}
	}
	return nil, 0, nil
}
