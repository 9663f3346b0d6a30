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
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// listedMax is how many tasks, and spans, one page of a list may look at.
const listedMax = 1024

// list is one page of a list that is read.
type list struct {
	*Reader
	*archive.Listing
	domain string
	stream jetstream.Stream
	mark   uint64 // the pages before it have all tasks that were not in the tail
}

// Finished implements partition.Reader.
func (r *Reader) Finished(ctx context.Context, domain string, before ids.TaskID, limit int, wanted func(*logv1.Record) bool) (found []*logv1.Record, end ids.TaskID, err error) {
	r.list.Lock()
	defer r.list.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	l := list{Reader: r, domain: domain, Listing: archive.NewListing(before, r.cfg.Partition)}
	err = l.takeTail(ctx)
	for looked := 0; err == nil && len(found) < limit; looked++ {
		if looked >= listedMax {
			return found, l.Taken(), nil
		}
		// A filter that refuses most tasks is shown more of them at a time.
		if places := l.Take(min(max(limit, looked)-len(found), listedMax-looked), listMsgs); len(places) > 0 {
			var tasks []*logv1.Record
			tasks, err = l.tasksAt(ctx, places)
			found = append(found, slices.DeleteFunc(tasks, func(t *logv1.Record) bool {
				return t.Domain != domain || bytes.Compare(t.Id, before[:]) >= 0 || !wanted(t)
			})...)
			looked += len(places) - 1
		} else if span, more := l.NextSpan(); more {
			err = l.takeSpan(ctx, span)
		} else {
			return found, end, nil
		}
	}
	if err != nil || limit <= 0 {
		return nil, end, err
	}
	return found[:limit], ids.TaskID(found[limit-1].Id), nil
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
	l.Add(tail)
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
			l.Add(places)
			return l.addSpans(ctx, span)
		}
		if _, err := l.refresh(ctx, []archive.Key{span}); err != nil {
			return err
		}
	}
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

// tasksAt reads the tasks at some places, each as it ended last, the newest id first.
func (l *list) tasksAt(ctx context.Context, places []archive.Place) (tasks []*logv1.Record, err error) {
	fingerprints := map[uint64]bool{}
	var queries []natslog.Query
	for _, p := range places {
		fingerprints[p.Fingerprint] = true
		if q := (natslog.Query{Seq: p.Seq, Bare: true}); !slices.Contains(queries, q) {
			queries = append(queries, q)
		}
	}
	answers, err := l.direct.Get(ctx, topology.ArchiveStream(l.cfg.Partition), queries)
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		for _, m := range a.Records { // none: it has expired
			some, err := record.CutEach(m.Data, func(id ids.TaskID) bool { return fingerprints[archive.Fingerprint(id)] })
			if err != nil {
				return nil, fmt.Errorf("message %d of the archive: %w", m.Seq, err)
			}
			tasks = append(tasks, some...)
		}
	}
	slices.SortFunc(tasks, func(a, b *logv1.Record) int {
		return cmp.Or(bytes.Compare(b.Id, a.Id), cmp.Compare(b.Parkings, a.Parkings))
	})
	return slices.CompactFunc(tasks, func(a, b *logv1.Record) bool { return bytes.Equal(a.Id, b.Id) }), nil
}
