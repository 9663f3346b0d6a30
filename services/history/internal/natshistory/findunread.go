package natshistory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/batcher"
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
	// replicaTries is how often a replica is asked again, replicaWait apart, that lacks what the leader has.
	replicaTries = 50
	replicaWait  = 20 * time.Millisecond
)

var errReplicaBehind = errors.New("the replicas of the log lack what its leader has")

// search is one task that is looked for in the log from its creation on, which its id tells, until a message is too young to hold its submit.
type search struct {
	caller context.Context // the search ends when the caller leaves
	id     ids.TaskID
	read   replica.Levels
	// begun: a message was read that may hold it; bytes were read of the log from there on.
	begun bool
	bytes int
	found *logv1.Record
	at    ids.Position
	err   error
	over  bool
	done  chan struct{}
}

func (s *search) begin() time.Time { return s.id.Time().Add(-clockSkew) }
func (s *search) end() time.Time   { return s.id.Time().Add(clockSkew + topology.SubmitLatest) }

// finish ends it, once.
func (s *search) finish(err error) {
	if s.over {
		return
	}
	s.over, s.err = true, err
	close(s.done)
}

// Unread implements partition.Reader. The log is read as it lies, events too: for a filter the server would have to
// count what matches, which takes longer. Where many callers search at once, it is read once for all of them: repeats
// of submits come in crowds, where the log or its owner was slow.
func (r *Reader) Unread(ctx context.Context, id ids.TaskID, hint uint64, read replica.Levels) (*logv1.Record, ids.Position, error) {
	s := &search{caller: ctx, id: id, read: read, done: make(chan struct{})}
	if hint > 0 {
		answers, err := r.get(ctx, topology.HistoryStream(r.cfg.Partition), natslog.Query{Seq: hint, Batch: hintMsgs})
		if err != nil {
			return nil, 0, err
		}
		r.lookThrough(answers[0].Records, []*search{s})
		if s.over {
			return s.found, s.at, nil
		}
	}
	if err := r.searches.Add(s, 0); err != nil {
		if errors.Is(err, batcher.ErrFull) {
			err = partition.ErrReaderBusy
		}
		return nil, 0, fmt.Errorf("search the log: %w", err)
	}
	select {
	case <-s.done:
		return s.found, s.at, s.err
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("search the log: %w", ctx.Err())
	}
}

func (r *Reader) get(ctx context.Context, stream string, q natslog.Query) ([]natslog.Answer, error) {
	return r.direct.Get(ctx, stream, []natslog.Query{q})
}

// scan searches for some tasks. It reads what may hold the youngest of them first, and nothing twice.
func (r *Reader) scan(ctx context.Context, all []*search) {
	slices.SortFunc(all, func(a, b *search) int { return b.begin().Compare(a.begin()) })
	for len(all) > 0 {
		n := 1
		for n < len(all) && !all[n].end().Before(all[n-1].begin()) {
			n++
		}
		err := r.scanFor(ctx, all[:n])
		for _, s := range all[:n] {
			s.finish(err)
		}
		all = all[n:]
	}
}

// scanFor reads the log once for tasks that were made one soon after the other. Those that it leaves are not there, without an error.
func (r *Reader) scanFor(ctx context.Context, open []*search) error {
	stream := topology.HistoryStream(r.cfg.Partition)
	replicated, err := r.logReplicas.several(ctx, r.cfg.JetStream, stream)
	if err != nil {
		return err
	}
	next, err := r.firstUnread(ctx, stream, open, replicated)
	for tries := 0; err == nil && next != 0; {
		var answers []natslog.Answer
		if answers, err = r.get(ctx, stream, natslog.Query{Seq: next, Batch: scanMsgs, BytesMax: scanBytes}); err != nil {
			break
		}
		some := answers[0].Records
		if replicated && !answers[0].More { // by a replica that may lag: a submit that was answered must be found
			if answers[0].More, err = r.lags(ctx, stream, spanRead{subject: topology.HistoryAny(r.cfg.Partition), from: next}, answers[0]); err != nil {
				break
			}
			if answers[0].More && len(some) == 0 {
				if tries++; tries > replicaTries {
					return errReplicaBehind
				}
				if !backoff.Sleep(ctx, replicaWait) {
					return ctx.Err()
				}
				continue
			}
		}
		r.lookThrough(some, open)
		for _, s := range open {
			switch {
			case s.caller.Err() != nil:
				s.finish(s.caller.Err())
			case len(some) > 0 && some[len(some)-1].Time.After(s.end()):
				s.finish(nil)
			case s.bytes > scanBytesMax:
				s.finish(partition.ErrSearchTooLong)
			}
		}
		if open = slices.DeleteFunc(slices.Clone(open), func(s *search) bool { return s.over }); len(open) == 0 || !answers[0].More || len(some) == 0 {
			break
		}
		next = some[len(some)-1].Seq + 1
	}
	return err
}

// firstUnread is the first message that may hold one of some tasks and that its lane had not read when it was asked
// for, 0 = there is none. The read level of a lane that was not used recently, or never, says nothing of what is
// unread: its next message does.
func (r *Reader) firstUnread(ctx context.Context, stream string, some []*search, replicated bool) (first uint64, err error) {
	begin := some[len(some)-1].begin()
	if replicated { // a replica that lags would say that nothing is there
		oldest, err := natslog.NextSince(ctx, r.cfg.JetStream, stream, topology.HistoryAny(r.cfg.Partition), begin)
		if err != nil || oldest == nil {
			return 0, err
		}
		for _, q := range r.behind(oldest.Seq, some) {
			next, err := natslog.Next(ctx, r.cfg.JetStream, stream, q.NextFor, q.Seq)
			if err != nil {
				return 0, err
			}
			if next != nil && (first == 0 || next.Seq < first) {
				first = next.Seq
			}
		}
		return first, nil
	}
	answers, err := r.get(ctx, stream, natslog.Query{Since: &begin, Batch: 1})
	if err != nil || len(answers[0].Records) == 0 {
		return 0, err
	}
	queries := r.behind(answers[0].Records[0].Seq, some)
	if len(queries) == 0 {
		return 0, nil
	}
	if answers, err = r.direct.Get(ctx, stream, queries); err != nil {
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

// behind asks for the first message from a sequence on of each lane, and of each queue in it, behind the lowest level that was read.
func (r *Reader) behind(from uint64, some []*search) (queries []natslog.Query) {
	at := map[string]int{}
	after := func(seq uint64, subject string) {
		if seq == math.MaxUint64 {
			return
		}
		seq = max(from, seq+1)
		if i, ok := at[subject]; ok {
			queries[i].Seq = min(queries[i].Seq, seq)
			return
		}
		at[subject] = len(queries)
		queries = append(queries, natslog.Query{Seq: seq, NextFor: subject})
	}
	for _, s := range some {
		for lane, seq := range s.read.Lanes {
			after(seq, topology.SubmitLane(r.cfg.Partition, ids.Lane(lane)))
		}
		for _, q := range s.read.Queues {
			after(q.Seq, topology.SubmitsAt(r.cfg.Partition, q.Lane, q.Place))
		}
	}
	return queries
}

// lookThrough looks for tasks in messages of the log, and ends the searches for those that it finds.
func (r *Reader) lookThrough(some []natslog.Record, open []*search) {
	wanted := make(map[ids.TaskID][]*search, len(open))
	for _, s := range open {
		wanted[s.id] = append(wanted[s.id], s)
	}
	for _, rec := range some {
		submit := topology.IsSubmit(r.cfg.Partition, rec.Subject)
		lane, ok := topology.LaneOf(r.cfg.Partition, rec.Subject)
		at := replica.Queue{Lane: lane, Place: topology.PlaceOfSubmit(r.cfg.Partition, rec.Subject)}
		wasRead := func(s *search) bool { return ok && rec.Seq <= s.read.Of(at) }
		for _, s := range open {
			s.begun = s.begun || submit && !rec.Time.Before(s.begin()) && !wasRead(s)
			if s.begun {
				s.bytes += len(rec.Data)
			}
		}
		if !submit {
			continue
		}
		all, _ := record.CutEach(rec.Data, func(id ids.TaskID) bool { return len(wanted[id]) > 0 }) // what cannot be read goes to the quarantine when it is read
		for _, found := range all {
			for _, s := range wanted[ids.TaskID(found.Id)] {
				if s.over || wasRead(s) || record.Late(found, rec.Time) {
					continue
				}
				record.Date(found, rec.Time)
				s.found, s.at = found.CloneVT(), ids.NewPosition(rec.Seq, lane)
				s.finish(nil)
			}
		}
	}
}
