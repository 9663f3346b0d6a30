package natshistory

import (
	"cmp"
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

// search is one task that is looked for in the log: from its creation on, which its id tells, until a message is too young to hold its submit; and then,
// if a clock was ahead, some seconds before that.
type search struct {
	caller context.Context // the search ends when the caller leaves
	domain string          // the caller's
	id     ids.TaskID
	read   replica.Levels
	// next is the message that is read next, 0 = it is to be found where the search begins; tries is how often that was not there yet.
	next  uint64
	tries int
	// rest is where the messages before the creation begin, as long as they are to be read, and stop where they end; 0 = there are none.
	rest, stop uint64
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

// bytesMax is how much the search reads. The first part leaves half of it to the second one.
func (s *search) bytesMax() int {
	if s.rest > 0 {
		return scanBytesMax / 2
	}
	return scanBytesMax
}

// passed ends the first part of a search, from the creation on, or the second one.
func (s *search) passed(err error) {
	if s.rest == 0 {
		s.finish(cmp.Or(s.err, err))
		return
	}
	s.next, s.rest, s.err = s.rest, 0, err
}

// Unread implements partition.Reader. The log is read as it lies, events too: for a filter the server would have to
// count what matches, which takes longer. Searches of all domains share what is read for the one whose turn it is: repeats
// of submits come in crowds, when the log or its owner was slow.
func (r *Reader) Unread(ctx context.Context, wanted replica.Search, hint uint64, read replica.Levels) (*logv1.Record, ids.Position, error) {
	s := &search{caller: ctx, domain: wanted.Domain, id: wanted.ID, read: read, done: make(chan struct{})}
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
	if err := r.searches.Add(s.domain, s, 1); err != nil {
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

// scan reads once for the search whose turn it is, the first one, and for those of the others that can use what is read. Searches that are not
// over wait for their turn again, and the first one comes behind the others: so none waits for more than one read of each domain.
func (r *Reader) scan(ctx context.Context, all []*search) {
	for _, s := range all {
		if err := s.caller.Err(); err != nil {
			s.finish(err)
		}
	}
	all = slices.DeleteFunc(all, func(s *search) bool { return s.over })
	if len(all) == 0 {
		return
	}
	step := r.readOn
	if all[0].next == 0 {
		step = r.findBegin
	}
	failed := step(ctx, all)
	for _, s := range append(all[1:], all[0]) {
		err := failed
		if err == nil && !s.over {
			err = r.searches.Add(s.domain, s, 1) // its domain may have no place to wait, others have
		}
		if errors.Is(err, batcher.ErrFull) {
			err = partition.ErrReaderBusy
		}
		if err != nil {
			s.finish(err)
		}
	}
}

// findBegin finds where the first search begins to read, and those that have not begun either and whose tasks were made at about the same time.
// If nothing is unread there, these tasks are not in the log.
func (r *Reader) findBegin(ctx context.Context, all []*search) error {
	var some []*search
	for _, s := range all {
		if s.next == 0 && !s.begin().After(all[0].end()) && !s.end().Before(all[0].begin()) {
			some = append(some, s)
		}
	}
	slices.SortFunc(some, func(a, b *search) int { return b.begin().Compare(a.begin()) })
	stream := topology.HistoryStream(r.cfg.Partition)
	replicated, err := r.logReplicas.several(ctx, r.cfg.JetStream, stream)
	if err != nil {
		return err
	}
	next, err := r.firstUnread(ctx, stream, some, replicated)
	if err != nil {
		return err
	}
	if next == 0 {
		for _, s := range some {
			s.finish(nil)
		}
		return nil
	}
	created := all[0].id.Time()
	behind, err := r.get(ctx, stream, natslog.Query{Since: &created, Batch: 1})
	if err != nil {
		return err
	}
	for _, s := range some {
		s.next = next
		if at := behind[0].Records; len(at) > 0 && at[0].Seq > next {
			s.next, s.rest, s.stop = at[0].Seq, next, at[0].Seq
		}
	}
	return nil
}

// readOn reads some of the log from where the first search has come to, and looks through it for all searches that have come to a message in there.
func (r *Reader) readOn(ctx context.Context, all []*search) error {
	stream := topology.HistoryStream(r.cfg.Partition)
	replicated, err := r.logReplicas.several(ctx, r.cfg.JetStream, stream)
	if err != nil {
		return err
	}
	from := all[0].next
	answers, err := r.get(ctx, stream, natslog.Query{Seq: from, Batch: scanMsgs, BytesMax: scanBytes})
	if err != nil {
		return err
	}
	some, more := answers[0].Records, answers[0].More
	if replicated && !more { // by a replica that may lag: a submit that was answered must be found
		if more, err = r.lags(ctx, stream, spanRead{subject: topology.HistoryAny(r.cfg.Partition), from: from}, answers[0]); err != nil {
			return err
		}
	}
	switch {
	case len(some) == 0 && more:
		all[0].await(ctx)
		return nil
	case len(some) == 0:
		all[0].passed(nil)
		return nil
	}
	last := some[len(some)-1]
	all = slices.DeleteFunc(slices.Clone(all), func(s *search) bool { return s.next < from || s.next > last.Seq })
	r.lookThrough(some, all)
	for _, s := range all {
		s.next, s.tries = last.Seq+1, 0
		switch {
		case s.over:
		case s.bytes > s.bytesMax():
			s.passed(partition.ErrSearchTooLong)
		case !more || last.Time.After(s.end()) || s.rest == 0 && s.stop > 0 && s.next >= s.stop:
			s.passed(nil)
		}
	}
	return nil
}

// await waits a moment for a replica that lacks what the leader has.
func (s *search) await(ctx context.Context) {
	if s.tries++; s.tries > replicaTries {
		s.finish(errReplicaBehind)
	}
	backoff.Sleep(ctx, replicaWait)
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
		wasRead := func(s *search) bool { return rec.Seq < s.next || ok && rec.Seq <= s.read.Of(at) }
		for _, s := range open {
			s.begun = s.begun || submit && !rec.Time.Before(s.begin()) && !wasRead(s)
			if s.begun && rec.Seq >= s.next {
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
