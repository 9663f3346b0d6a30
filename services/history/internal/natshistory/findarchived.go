package natshistory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/archive"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

const (
	// pagesMsgs and pagesBytes bound one read of a span, tailMsgs and tailBytes that of the tail; what is longer takes
	// several.
	pagesMsgs  = 1024
	pagesBytes = 256 << 10
	tailMsgs   = 512
	tailBytes  = 2 << 20
	// fetchMax is how many messages are fetched at a time.
	fetchMax = 16
	// refreshMax bounds how often a round reads the index again because others filed, or made the reader forget, what
	// it needs.
	refreshMax = 16
	// replicasFor is for how long it is remembered whether a stream has replicas.
	replicasFor = time.Minute
)

var errIndexUnsteady = errors.New("the archive's index changes faster than it is read")

// round answers some lookups: at once from what the reader remembers, and after reading what is new in the index where
// the task is not in there.
func (r *Reader) round(ctx context.Context, open []*lookup) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := r.answer(ctx, &open)
	for _, l := range open {
		l.answer(nil, err)
	}
}

// answer takes the lookups out of open that it has answered.
func (r *Reader) answer(ctx context.Context, open *[]*lookup) error {
	for fresh, refreshed, left := false, 0, len(*open); ; {
		fetch, places := r.places(open, fresh)
		if len(*open) < left {
			left, refreshed = len(*open), 0
		}
		switch {
		case len(fetch) > 0:
			if err := r.fetch(ctx, fetch, places); err != nil {
				return err
			}
			*open = slices.DeleteFunc(*open, func(l *lookup) bool { return l.answered })
		case len(*open) == 0:
			return nil
		case refreshed == refreshMax:
			return errIndexUnsteady
		default:
			ended, err := r.refresh(ctx, keysOf(*open))
			if err != nil {
				return err
			}
			fresh = fresh || ended
			refreshed++
		}
	}
}

// places lists messages that may hold what is looked for and were not tried, up to fetchMax, and for each who looks for
// it. One that a task was filed in later comes first. If the tail is fresh, it answers the lookups of tasks that are
// nowhere.
func (r *Reader) places(open *[]*lookup, fresh bool) (fetch []uint64, who map[uint64][]*lookup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	who = map[uint64][]*lookup{}
	var room [8]uint64
	*open = slices.DeleteFunc(*open, func(l *lookup) bool {
		seqs, whole := r.index.Find(l.task, room[:0])
		left := false
		for _, seq := range seqs {
			if slices.Contains(l.tried, seq) {
				continue
			}
			left = true
			if who[seq] == nil {
				if len(fetch) == fetchMax {
					break // an older one does not go before it
				}
				fetch = append(fetch, seq)
			}
			if !slices.Contains(who[seq], l) {
				who[seq] = append(who[seq], l)
			}
		}
		if absent := fresh && whole && !left; absent {
			l.answer(l.dead, nil)
			return true
		}
		return false
	})
	slices.SortFunc(fetch, func(a, b uint64) int { return cmp.Compare(b, a) })
	return fetch, who
}

// fetch reads messages and answers the lookups whose task is in them.
func (r *Reader) fetch(ctx context.Context, seqs []uint64, who map[uint64][]*lookup) error {
	messages, err := r.messages(ctx, seqs)
	if err != nil {
		return err
	}
	for i, seq := range seqs {
		for _, l := range who[seq] {
			l.tried = append(l.tried, seq)
			if l.answered || messages[i] == nil {
				continue
			}
			found, err := record.Cut(messages[i], l.task.ID)
			if err != nil {
				l.answer(nil, fmt.Errorf("message %d: %w", seq, err))
			} else if found != nil && found.Domain == l.task.Domain {
				l.end(found)
			}
		}
	}
	return nil
}

// messages reads messages of the archive; nil where one has expired.
func (r *Reader) messages(ctx context.Context, seqs []uint64) ([][]byte, error) {
	stream, queries := topology.ArchiveStream(r.cfg.Partition), make([]natslog.Query, len(seqs))
	for i, seq := range seqs {
		queries[i] = natslog.Query{Seq: seq, Bare: true}
	}
	answers, err := r.direct.Get(ctx, stream, queries)
	if err != nil {
		return nil, err
	}
	replicated, err := r.replicas.several(ctx, r.cfg.JetStream, stream)
	messages := make([][]byte, len(seqs))
	for i, a := range answers {
		switch {
		case err != nil:
			return nil, err
		case len(a.Records) > 0:
			messages[i] = a.Records[0].Data
		case replicated: // the one that answered may lag
			var there *natslog.Record
			if there, err = natslog.Next(ctx, r.cfg.JetStream, stream, topology.ArchiveTasks(r.cfg.Partition), seqs[i]); there != nil && there.Seq == seqs[i] {
				messages[i] = there.Data
			}
		}
	}
	return messages, err
}

// end takes in an end of the task. After that of a dead letter another one may follow, if it was redriven, which is in
// no message that was read so far: what lies behind is read before it counts.
func (l *lookup) end(found *logv1.Record) {
	if taskstate.State(found.State) != taskstate.Dead {
		l.answer(found, nil)
	} else if l.dead == nil || found.Parkings > l.dead.Parkings {
		l.dead = found
	}
}

// spanRead is one span that is read.
type spanRead struct {
	key        archive.Key
	subject    string
	from, mark uint64
}

// keysOf are the spans whose pages find what is looked for in the first domain: those of all together may be more than
// a reader remembers, and would drive each other out.
func keysOf(open []*lookup) (keys []archive.Key) {
	for _, l := range open {
		if l.task.Domain != open[0].task.Domain {
			continue
		}
		for level := range archive.Levels {
			if k := archive.KeyOf(l.task, level); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// refresh reads the archive's tail and what is new in some spans. Ended tells that the tail was read to its end.
func (r *Reader) refresh(ctx context.Context, keys []archive.Key) (ended bool, err error) {
	stream := topology.ArchiveStream(r.cfg.Partition)
	replicated, err := r.replicas.several(ctx, r.cfg.JetStream, stream)
	if err != nil {
		return false, err
	}
	mark, err := r.lastMark(ctx, stream, replicated)
	if err != nil {
		return false, err
	}
	tailFrom, spans := r.wanted(mark, keys)
	queries := []natslog.Query{{Seq: tailFrom, Batch: tailMsgs, BytesMax: tailBytes}}
	for _, s := range spans {
		queries = append(queries, natslog.Query{Seq: s.from, NextFor: s.subject, Batch: pagesMsgs, BytesMax: pagesBytes})
	}
	answers, err := r.direct.Get(ctx, stream, queries)
	if err != nil {
		return false, err
	}
	if replicated {
		tail := spanRead{subject: topology.ArchiveTasks(r.cfg.Partition), from: tailFrom}
		for i, s := range append([]spanRead{tail}, spans...) {
			if answers[i].More, err = r.lags(ctx, stream, s, answers[i]); err != nil {
				return false, err
			}
		}
	}
	return r.take(spans, answers)
}

// lastMark is the sequence of the archive's last mark, 0 = none.
func (r *Reader) lastMark(ctx context.Context, stream string, replicated bool) (uint64, error) {
	subject := topology.ArchiveIndexed(r.cfg.Partition)
	if replicated {
		last, err := natslog.LastForSubject(ctx, r.cfg.JetStream, stream, subject)
		if err != nil || last == nil {
			return 0, err
		}
		return last.Seq, nil
	}
	answers, err := r.direct.Get(ctx, stream, []natslog.Query{{LastFor: subject}})
	if err != nil || len(answers[0].Records) == 0 {
		return 0, err
	}
	return answers[0].Records[0].Seq, nil
}

// wanted takes the mark and tells what must be read.
func (r *Reader) wanted(mark uint64, keys []archive.Key) (tailFrom uint64, spans []spanRead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index.Mark(mark)
	for _, k := range keys {
		if from, mark, wanted := r.index.Wanted(k); wanted {
			spans = append(spans, spanRead{k, topology.ArchivePage(r.cfg.Partition, k.Domain, k.Path()...), from, mark})
		}
	}
	return r.index.TailFrom(), spans
}

// lags tells whether the replica that answered lacks messages that the leader has.
func (r *Reader) lags(ctx context.Context, stream string, s spanRead, a natslog.Answer) (bool, error) {
	if a.More {
		return true, nil
	}
	from := s.from
	if n := len(a.Records); n > 0 {
		from = a.Records[n-1].Seq + 1
	}
	next, err := natslog.Next(ctx, r.cfg.JetStream, stream, s.subject, from)
	return next != nil, err
}

// take puts what was read, the tail first, into the index.
func (r *Reader) take(spans []spanRead, answers []natslog.Answer) (ended bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range answers[0].Records {
		if !topology.IsArchiveTasks(r.cfg.Partition, rec.Subject) {
			r.index.AddTail(rec.Seq, nil)
			continue
		}
		all, err := record.Filed(rec.Data)
		if err != nil {
			return false, fmt.Errorf("message %d: %w", rec.Seq, err)
		}
		r.index.AddTail(rec.Seq, all)
	}
	for i, s := range spans {
		a := answers[i+1]
		pages := make([]archive.PageAt, len(a.Records))
		for k, rec := range a.Records {
			if pages[k], err = page(rec); err != nil {
				return false, err
			}
		}
		r.index.AddPages(s.key, s.from, pages, s.mark, !a.More)
	}
	return !answers[0].More, nil
}

func page(rec natslog.Record) (archive.PageAt, error) {
	var p logv1.ArchivePage
	if err := p.UnmarshalVTUnsafe(rec.Data); err != nil { // the page keeps the message
		return archive.PageAt{}, fmt.Errorf("message %d: %w", rec.Seq, err)
	}
	t := archive.Table{Base: p.Base, Fingerprints: p.Fingerprints, Offsets: p.Offsets}
	if p.LogVersion > 1 || !t.WellFormed() {
		return archive.PageAt{}, fmt.Errorf("message %d: an index page of a format that is not known", rec.Seq)
	}
	return archive.PageAt{Seq: rec.Seq, Table: t}, nil
}

// replicas remembers whether a stream has several replicas. Direct gets may then be answered by one that lags.
type replicas struct {
	mu    sync.Mutex
	many  bool
	asked time.Time
}

func (s *replicas) several(ctx context.Context, js jetstream.JetStream, stream string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.asked) < replicasFor {
		return s.many, nil
	}
	info, err := js.Stream(ctx, stream)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", stream, err)
	}
	s.many, s.asked = info.CachedInfo().Config.Replicas > 1, time.Now()
	return s.many, nil
}
