package partition

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// The waits between repeats of a write that failed.
const (
	writeRetryMin = 50 * time.Millisecond
	writeRetryMax = 2 * time.Second
)

// persist repeats a write until it is stored. False = ctx ended first.
func (o *Owner) persist(ctx context.Context, what string, write func(context.Context) error) bool {
	wait, complained := writeRetryMin, false
	for {
		err := write(ctx)
		if err == nil {
			if complained {
				o.Logger.Info("history writes again", "partition", o.Partition, "what", what)
			}
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		o.Metrics.WriteRetries.Add(1)
		if !complained && wait >= writeRetryMin*4 {
			complained = true
			o.Logger.Warn("history cannot write, keeps trying", "partition", o.Partition, "what", what, "error", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
		wait = min(2*wait, writeRetryMax)
	}
}

// batches cuts encoded tasks that belong together into messages that fit. It is used
// again and again by one writer, and so are its buffers: reset when all is stored.
type batches[K comparable] struct {
	order []K
	open  map[K][]byte
	full  []keyed[K]
	free  [][]byte
}

type keyed[K comparable] struct {
	key  K
	data []byte
}

func (b *batches[K]) add(key K, encode func([]byte) []byte) {
	if b.open == nil {
		b.open = make(map[K][]byte)
	}
	data, known := b.open[key]
	if !known {
		b.order = append(b.order, key)
	}
	if n := len(b.free); data == nil && n > 0 {
		data, b.free = b.free[n-1], b.free[:n-1]
	}
	data = encode(data)
	if len(data) >= batchBytesMax {
		b.full = append(b.full, keyed[K]{key, data})
		data = nil
	}
	b.open[key] = data
}

func (b *batches[K]) all() []keyed[K] {
	for _, key := range b.order {
		if data := b.open[key]; len(data) > 0 {
			b.full = append(b.full, keyed[K]{key, data})
		}
	}
	return b.full
}

// reset keeps the buffers, as far as they are worth it.
func (b *batches[K]) reset() {
	for _, m := range b.full {
		if len(b.free) < buffersMax && cap(m.data) <= 2*batchBytesMax {
			b.free = append(b.free, m.data[:0])
		}
	}
	clear(b.open)
	clear(b.full)
	b.order, b.full = b.order[:0], b.full[:0]
}

// buffersMax bounds what a writer keeps for reuse: 8 × 800 KiB.
const buffersMax = 8

type archiveKey struct {
	domain string
	minute int64
}

// runArchiver files finished tasks. They are not changed any more, so it may read them.
func (o *Owner) runArchiver(ctx context.Context, jobs <-chan []*entry) {
	var enc record.Encoder
	var b batches[archiveKey]
	for {
		var job []*entry
		select {
		case job = <-jobs:
		case <-ctx.Done():
			return
		}
		b.reset()
		for _, e := range job {
			b.add(archiveKey{e.Domain, topology.ArchiveMinute(e.CreatedAt())}, func(data []byte) []byte { return enc.AppendTask(data, &e.Task) })
			if e.State != taskstate.Dead {
				continue
			}
			letter := enc.AppendTask(nil, &e.Task)
			if !o.persist(ctx, "dead letter", func(ctx context.Context) error { return o.Store.Bury(ctx, e.Domain, e.Tasklist, e.ID, letter) }) {
				return
			}
		}
		for _, m := range b.all() {
			if !o.persist(ctx, "archive", func(ctx context.Context) error { return o.Store.Archive(ctx, m.key.domain, m.key.minute, m.data) }) {
				return
			}
		}
		o.post(ctx, func() {
			o.outbox.archives.busy = false
			for _, e := range job {
				o.recent.add(&e.Task)
				o.leave(e)
			}
			o.Metrics.Archived.Add(int64(len(job)))
		})
	}
}

// runParker moves tasks into the timer store.
func (o *Owner) runParker(ctx context.Context, jobs <-chan []*entry) {
	var enc record.Encoder
	var b batches[int64]
	for {
		var job []*entry
		select {
		case job = <-jobs:
		case <-ctx.Done():
			return
		}
		b.reset()
		for _, e := range job {
			b.add(topology.TimerBucket(e.DueAt), func(data []byte) []byte { return enc.AppendTask(data, &e.Task) })
		}
		var last uint64
		for _, m := range b.all() {
			ok := o.persist(ctx, "timer store", func(ctx context.Context) error {
				seq, err := o.Store.Park(ctx, m.key, m.data)
				last = max(last, seq)
				return err
			})
			if !ok {
				return
			}
		}
		o.post(ctx, func() {
			o.outbox.parks.busy = false
			o.parked.stored(last)
			for _, e := range job {
				o.parkStored(e)
			}
			o.Metrics.Parked.Add(int64(len(job)))
		})
	}
}

// parkStored lets go of a task that the timer store has now.
func (o *Owner) parkStored(e *entry) {
	if e.gone {
		return
	}
	o.recent.add(&e.Task)
	o.leave(e)
	e.gone = true
	for _, w := range e.cancels {
		o.mark(w)
	}
	e.cancels = nil
}

// runEventWriter appends the owner's own events to the log.
func (o *Owner) runEventWriter(ctx context.Context, jobs <-chan []*logv1.Event) {
	for {
		var job []*logv1.Event
		select {
		case job = <-jobs:
		case <-ctx.Done():
			return
		}
		for len(job) > 0 {
			n, size := 0, 0
			for n < len(job) && n < 1000 && (n == 0 || size+job[n].SizeVT() <= batchBytesMax) {
				size += job[n].SizeVT()
				n++
			}
			batch, err := (&logv1.EventBatch{Events: job[:n]}).MarshalVT()
			if err != nil {
				panic("partition: " + err.Error()) // every field is of our making
			}
			if !o.persist(ctx, "events", func(ctx context.Context) error { return o.Store.AppendEvents(ctx, batch) }) {
				return
			}
			job = job[n:]
		}
		o.post(ctx, func() { o.outbox.events.busy = false })
	}
}

// parkedLevels tells up to which records everything parked is in the timer store. A
// takeover uses it to park nothing twice: what these records parked is there, and what
// later ones parked is found in the store's tail.
type parkedLevels struct {
	// Stored: parks by records up to these are in the store up to timerSeq.
	lanes    [ids.Lanes]uint64
	events   uint64
	timerSeq uint64
	// Under way: will be the stored levels when the writer's job is.
	nextLanes  [ids.Lanes]uint64
	nextEvents uint64
}

// begin notes the levels of a job that takes all that is queued.
func (p *parkedLevels) begin(o *Owner) {
	if len(o.outbox.parks.queue) > 0 {
		return // the job is a part of what is queued: its levels stay those before
	}
	p.nextLanes, p.nextEvents = o.readLevels(), o.eventAt
}

func (p *parkedLevels) stored(timerSeq uint64) {
	p.lanes, p.events, p.timerSeq = p.nextLanes, p.nextEvents, max(p.timerSeq, timerSeq)
}

// idle moves the levels up while nothing is under way.
func (p *parkedLevels) idle(o *Owner) {
	if !o.outbox.parks.busy && len(o.outbox.parks.queue) == 0 {
		p.lanes, p.events = o.readLevels(), o.eventAt
	}
}

func (o *Owner) readLevels() (levels [ids.Lanes]uint64) {
	for i, l := range o.lanes {
		levels[i] = l.ReadLevel()
	}
	return levels
}
