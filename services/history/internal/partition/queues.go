package partition

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/gauges"
)

// queueReader reads a queue, as long as it has room.
type queueReader struct {
	replica.Queue
	source
	stop context.CancelFunc
	// full counts the beats for which it has had no room.
	full int
}

// fullMax is how many beats a reader without room is kept: it holds messages that no one reads for now, and there may be many.
const fullMax = 4

// queueReaders are the readers of the queues. They belong to the loop, but for lagging.
type queueReaders struct {
	running map[replica.Queue]*queueReader
	// unread is how many messages of a queue are not read, as last counted.
	unread   map[replica.Queue]int64
	counting bool
	counted  int
	// lagging are all queues, and since when as far as is known, Unix ms: their messages are not decoded by the lane's reader.
	lagging atomic.Pointer[map[replica.Queue]int64]
}

func newQueueReaders() queueReaders {
	return queueReaders{running: make(map[replica.Queue]*queueReader), unread: make(map[replica.Queue]int64)}
}

// splitAt is since when a place is split off, as far as is known; 0 = it is not.
func (q *queueReaders) splitAt(at replica.Queue) int64 {
	if all := q.lagging.Load(); all != nil {
		return (*all)[at]
	}
	return 0
}

// behind is how many messages are not read of the queues of a domain, "" = of all.
func (q *queueReaders) behind(domain string) (n int64) {
	for at, unread := range q.unread {
		if domain == "" || at.Place.Domain() == domain {
			n += unread
		}
	}
	return n
}

// standing is what the partition has. It looks at no task.
func (o *Owner) standing() *gauges.Report {
	now := o.now().MS
	r := &gauges.Report{NowMS: now, OldestReady: o.core.OldestReady(now), NotTaken: o.core.NotTaken()}
	r.SavedAtMS, r.UnsavedBytes = o.core.Saved()
	r.Domains, r.CountedAt = o.core.LastCensus()
	for lane, fill := range o.core.Fills() {
		r.Lanes[lane] = gauges.Lane{LaneFill: fill, Unread: o.readers.pending[lane].Load()}
	}
	if unread := o.readers.queues.unread; len(unread) > 0 {
		r.Unread = make(map[string]int64, len(unread))
		for at, n := range unread {
			r.Lanes[at.Lane].SplitOffUnread += n
			r.Unread[at.Place.Domain()] += n
		}
	}
	return r
}

// readQueues starts and stops the readers of queues, as the replica says.
func (o *Owner) readQueues() {
	q := &o.readers.queues
	readings := o.core.Readings()
	if was := q.lagging.Load(); len(readings) == 0 && (was == nil || len(*was) == 0) {
		return
	}
	lagging := make(map[replica.Queue]int64, len(readings))
	for _, rd := range readings {
		lagging[rd.Queue] = cmp.Or(q.splitAt(rd.Queue), o.now().MS)
		r := q.running[rd.Queue]
		switch {
		case r == nil && rd.Room:
			o.startQueue(rd)
		case r == nil:
		case rd.Room:
			r.full = 0
		default:
			if r.full++; r.full > fullMax {
				q.end(r)
			}
		}
	}
	q.lagging.Store(&lagging)
	for at, r := range q.running {
		if lagging[at] == 0 {
			q.end(r)
		}
	}
	maps.DeleteFunc(q.unread, func(at replica.Queue, _ int64) bool { return lagging[at] == 0 })
	o.countQueue(readings)
}

func (o *Owner) startQueue(rd replica.Reading) {
	ctx, stop := context.WithCancel(o.work)
	r := &queueReader{Queue: rd.Queue, source: newSource(), stop: stop}
	q := &o.readers.queues
	q.running[rd.Queue] = r
	go o.readers.followTo(ctx, Source(rd.Lane), rd.Place, rd.From, r.in)
}

func (q *queueReaders) end(r *queueReader) {
	r.stop()
	delete(q.running, r.Queue)
}

// countQueue counts what is behind one of the queues whose reader does not run, one after the other.
func (o *Owner) countQueue(readings []replica.Reading) {
	q := &o.readers.queues
	if q.counting || len(readings) == 0 {
		return
	}
	q.counted++
	rd := readings[q.counted%len(readings)]
	if q.running[rd.Queue] != nil {
		return
	}
	q.counting = true
	go func() {
		n, err := o.Log.Backlog(o.work, rd.Queue, rd.From-1)
		o.post(o.work, func() {
			q.counting = false
			if err == nil && q.running[rd.Queue] == nil && slices.Contains(o.core.Readings(), rd) { // or it may be read by now
				q.unread[rd.Queue] = int64(n)
			}
		})
	}()
}
