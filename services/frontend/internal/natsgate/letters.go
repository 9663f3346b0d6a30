package natsgate

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/operate"
)

// Letters are the dead letters on JetStream (operate.DeadLetters).
type Letters struct{ *Reader }

// Last is the sequence of the last letter that was ever stored.
func (l Letters) Last(ctx context.Context) (uint64, error) {
	last, err := natslog.LastSeq(ctx, l.js, topology.DeadLetterStream)
	return last, unread(err)
}

const (
	// windowFirst and windowMax are of how many sequences letters are read at a time.
	windowFirst, windowMax = 4, 32
	// windowBytes is up to how many bytes a window may have.
	windowBytes = 512 << 10
)

// Page reads the letters of a domain, or of one tasklist of it, behind a sequence. More may lie behind them.
//
// Where letters lie close together they are read one by one, in windows: for a batch the server counts what lies behind it, letter by letter.
func (l Letters) Page(ctx context.Context, domain, tasklist string, after uint64, limit, bytesMax int) (page []operate.DeadLetter, more bool, err error) {
	filter := topology.DeadFilter(domain)
	if tasklist != "" {
		filter = topology.DeadOfTasklist(domain, tasklist)
	}
	bytes := 0
	take := func(all []natslog.Record) error {
		for i := range all {
			after = all[i].Seq
			bytes += len(all[i].Data)
			task, err := deadLetterOf(all[i].Data)
			if err != nil {
				return err
			}
			page = append(page, operate.DeadLetter{Seq: after, Record: brief(task)})
		}
		return nil
	}
	for n, near := windowFirst, true; near && len(page) < limit && bytes < bytesMax; {
		n = min(n, limit-len(page))
		all, end, err := l.window(ctx, filter, after, n)
		if err == nil {
			err = take(all)
		}
		if err != nil || end {
			return page, false, err
		}
		near = 2*len(all) >= n
		if bytes/len(page)*2*n <= windowBytes {
			n = min(2*n, windowMax)
		}
	}
	if len(page) >= limit || bytes >= bytesMax {
		return page, true, nil
	}
	answers, err := l.direct.Get(ctx, topology.DeadLetterStream, []natslog.Query{{Seq: after + 1, NextFor: filter, Batch: limit - len(page), BytesMax: bytesMax - bytes}})
	if err != nil {
		return nil, false, unread(err)
	}
	return page, answers[0].More, take(answers[0].Records)
}

// window reads the letters that lie at the next n sequences, and the first one behind them if one of these has none. End tells that none lies behind them.
func (l Letters) window(ctx context.Context, filter string, after uint64, n int) (all []natslog.Record, end bool, err error) {
	queries := make([]natslog.Query, n)
	for i := range queries {
		queries[i] = natslog.Query{Seq: after + 1 + uint64(i), NextFor: filter}
	}
	answers, err := l.direct.Get(ctx, topology.DeadLetterStream, queries)
	if err != nil {
		return nil, false, unread(err)
	}
	for _, a := range answers {
		if len(a.Records) == 0 {
			return all, true, nil
		}
		if r := a.Records[0]; len(all) == 0 || r.Seq > all[len(all)-1].Seq {
			all = append(all, r)
		}
	}
	return all, false, nil
}

// Find reads the letters of tasks, as the stream's leader has them; nil where there is none.
func (l Letters) Find(ctx context.Context, domain string, wanted []ids.TaskID) ([]*operate.DeadLetter, error) {
	found := make([]*operate.DeadLetter, len(wanted))
	err := parallel.Each(ctx, len(wanted), parallelMax, func(ctx context.Context, i int) (err error) {
		if found[i], err = l.Get(ctx, domain, wanted[i]); found[i] != nil {
			found[i].Record = brief(found[i].Record)
		}
		return err
	})
	return found, err
}

// Get reads one, as the stream's leader has it.
func (l Letters) Get(ctx context.Context, domain string, id ids.TaskID) (*operate.DeadLetter, error) {
	r, err := natslog.LastForSubject(ctx, l.js, topology.DeadLetterStream, topology.DeadOf(domain, id))
	if err != nil || r == nil {
		return nil, unread(err)
	}
	task, err := deadLetterOf(r.Data)
	if err != nil {
		return nil, err
	}
	return &operate.DeadLetter{Seq: r.Seq, Record: task}, nil
}

// brief leaves out what only Get tells of: a request may be about many, and many requests are under way.
func brief(r *logv1.Record) *logv1.Record {
	r.Payload, r.Steps = nil, nil
	return r
}

// Delete deletes letters, and what may be left of earlier ones of the same tasks; nil ones are passed over.
func (l Letters) Delete(ctx context.Context, letters []*operate.DeadLetter) (deleted int64, err error) {
	var all []natslog.Place
	for _, one := range letters {
		if one != nil {
			all = append(all, natslog.Place{Subject: topology.Dead(one.Record.Domain, one.Record.Tasklist, ids.TaskID(one.Record.Id)), Seq: one.Seq})
		}
	}
	deleted, err = natslog.Delete(ctx, l.js, topology.DeadLetterStream, all)
	return deleted, unread(err)
}

// deadLetterOf is the task of a dead letter: a batch of one.
func deadLetterOf(data []byte) (*logv1.Record, error) {
	var b logv1.Batch
	if err := b.UnmarshalVT(data); err != nil {
		return nil, fault.New(fault.Internal, "a dead letter cannot be read: %v", err)
	}
	if len(b.Tasks) != 1 {
		return nil, fault.New(fault.Internal, "a dead letter holds %d tasks", len(b.Tasks))
	}
	if _, err := ids.TaskIDFromBytes(b.Tasks[0].Id); err != nil {
		return nil, fault.New(fault.Internal, "a dead letter cannot be read: %v", err)
	}
	return b.Tasks[0], nil
}

func unread(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Unavailable, "the store of dead letters does not answer: %v", err)
}

// parallelMax is how many calls about single letters of a request are under way at a time.
const parallelMax = 16
