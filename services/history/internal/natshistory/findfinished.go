package natshistory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/archive"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// listedMax is how many tasks, and spans, one page of a list may look at; listedBytes of messages count as one.
const listedMax, listedBytes = 1024, 32 << 10

// list is one page of a list that is read.
type list struct {
	*Reader
	*archive.Listing
	domain string
	before ids.TaskID
	limit  int
	take   func(*logv1.Record) bool

	stream jetstream.Stream
	mark   uint64 // the pages before it have all tasks that were not in the tail
	// seen are the tasks and spans that it has read, taken is how many tasks were taken, end the last one of them.
	seen, taken int
	end         ids.TaskID
}

// Finished implements partition.Reader. A page is read in steps, each in a turn of its own: one that has to look at much is not what others wait for.
func (r *Reader) Finished(ctx context.Context, domain string, before ids.TaskID, limit int, take func(*logv1.Record) bool) (end ids.TaskID, err error) {
	l := list{Reader: r, domain: domain, before: before, limit: limit, take: take, Listing: archive.NewListing(before, r.cfg.Partition)}
	err = r.lists.Steps(ctx, domain, func() (last bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		if l.stream == nil {
			return false, l.takeTail(ctx)
		}
		return l.step(ctx)
	})
	return l.end, err
}

// step reads some messages, or the index of a span.
func (l *list) step(ctx context.Context) (last bool, err error) {
	if l.seen >= listedMax {
		l.end = l.Taken()
		return true, nil
	}
	l.seen++
	// A filter that refuses most tasks is shown more of them at a time.
	if places := l.Take(min(max(l.limit, l.seen-1)-l.taken, listedMax-l.seen+1), listMsgs); len(places) > 0 {
		err := l.look(ctx, places)
		return l.taken >= l.limit, err
	}
	span, more := l.NextSpan()
	if !more {
		l.end = ids.TaskID{}
		return true, nil
	}
	return false, l.takeSpan(ctx, span)
}

// look takes the tasks at some places that are wanted.
func (l *list) look(ctx context.Context, places []archive.Place) error {
	tasks, bytesRead, err := l.tasksAt(ctx, places)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if l.taken < l.limit && bytes.Compare(t.Id, l.before[:]) < 0 && l.take(t) {
			l.taken, l.end = l.taken+1, ids.TaskID(t.Id)
		}
	}
	l.seen += max(len(places), bytesRead/listedBytes) - 1
	return nil
}

// takeTail takes the domain's tasks in the tail, and the longest spans that it has.
func (l *list) takeTail(ctx context.Context) (err error) {
	l.stream, err = l.cfg.JetStream.Stream(ctx, topology.ArchiveStream(l.cfg.Partition))
	for ended := false; err == nil && !ended; {
		ended, err = l.refresh(ctx, nil)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	tail, mark := l.index.TailOf(l.domain, l.Before)
	l.mu.Unlock()
	l.addPlaces(tail)
	l.mark = mark
	return l.addSpans(ctx, archive.Key{Domain: l.domain, Level: archive.Levels})
}

// takeSpan takes the tasks of a span, and the spans in it.
func (l *list) takeSpan(ctx context.Context, span archive.Key) error {
	for {
		l.mu.Lock()
		places, whole := l.index.Newest(span, l.mark, l.Before, listedMax)
		l.mu.Unlock()
		if whole {
			l.addPlaces(places)
			return l.addSpans(ctx, span)
		}
		if _, err := l.refresh(ctx, []archive.Key{span}); err != nil {
			return err
		}
	}
}

// addPlaces takes places, but for those before the first message: these have expired.
func (l *list) addPlaces(places []archive.Place) {
	first := l.stream.CachedInfo().State.FirstSeq
	l.Add(slices.DeleteFunc(places, func(p archive.Place) bool { return p.Seq < first }))
}

// addSpans takes the spans of the next level in one.
func (l *list) addSpans(ctx context.Context, in archive.Key) error {
	if in.Level == 0 {
		return nil
	}
	info, err := l.stream.Info(ctx, jetstream.WithSubjectFilter(topology.ArchivePage(l.cfg.Partition, in.Domain, in.Path()...)+".*"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		n, err := strconv.ParseInt(subject[strings.LastIndexByte(subject, '.')+1:], 10, 64)
		if err != nil {
			return fmt.Errorf("a page of the archive at %s: %w", subject, err)
		}
		l.AddSpan(archive.Key{Domain: in.Domain, Level: in.Level - 1, Span: n})
	}
	return nil
}

// tasksAt reads the tasks of the domain at some places, each as it ended last, the newest id first.
func (l *list) tasksAt(ctx context.Context, places []archive.Place) (tasks []*logv1.Record, size int, err error) {
	fingerprints, seqs := map[uint64]bool{}, []uint64(nil)
	for _, p := range places {
		fingerprints[p.Fingerprint] = true
		if !slices.Contains(seqs, p.Seq) {
			seqs = append(seqs, p.Seq)
		}
	}
	messages, err := l.messages(ctx, seqs)
	for i, data := range messages {
		some, err := record.CutEach(data, func(id ids.TaskID) bool { return fingerprints[archive.Fingerprint(id)] })
		if err != nil {
			return nil, 0, fmt.Errorf("message %d of the archive: %w", seqs[i], err)
		}
		tasks, size = append(tasks, some...), size+len(data)
	}
	tasks = slices.DeleteFunc(tasks, func(t *logv1.Record) bool { return t.Domain != l.domain })
	slices.SortFunc(tasks, func(a, b *logv1.Record) int {
		return cmp.Or(bytes.Compare(b.Id, a.Id), cmp.Compare(b.Parkings, a.Parkings))
	})
	return slices.CompactFunc(tasks, func(a, b *logv1.Record) bool { return bytes.Equal(a.Id, b.Id) }), size, err
}
