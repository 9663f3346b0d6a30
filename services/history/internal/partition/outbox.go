package partition

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// outbox gathers the effects of a turn. Hints and answers go out at its flush;
// writes go to writers that take all that has gathered as soon as their last
// write is stored: batches form by themselves, and the loop never waits.
type outbox struct {
	triggers map[triggerKey]*logv1.TriggerGroup
	releases map[releaseKey]*logv1.SlotRelease
	answers  []*answer
	// traced are the traced ones among the triggers.
	traced   []sentTrigger
	archives writer[*entry]
	parks    writer[*entry]
	events   writer[*logv1.Event]
	// archiveBy is when the archive's batch is written however small it is.
	archiveBy time.Time
	// ctx of all writes; it outlives the owner's own by the drain.
	ctx context.Context
}

type triggerKey struct {
	list     *tasklist
	taskType string
	priority int32
}

type releaseKey struct {
	shard            int
	domain, taskType string
}

// writer hands gathered items to one goroutine, all at once, when it is free.
type writer[T any] struct {
	queue []T
	busy  bool
	jobs  chan []T
}

// next hands over what has gathered, if the goroutine is free.
func (w *writer[T]) next(limit int) (started bool) {
	if w.busy || len(w.queue) == 0 {
		return false
	}
	n := min(len(w.queue), limit)
	job := w.queue[:n:n]
	w.queue = w.queue[n:]
	if len(w.queue) == 0 {
		w.queue = nil
	}
	w.busy = true
	w.jobs <- job
	return true
}

func newWriter[T any]() writer[T] { return writer[T]{jobs: make(chan []T, 1)} }

func newOutbox() outbox {
	return outbox{
		triggers: make(map[triggerKey]*logv1.TriggerGroup), releases: make(map[releaseKey]*logv1.SlotRelease),
		archives: newWriter[*entry](), parks: newWriter[*entry](), events: newWriter[*logv1.Event](),
	}
}

func (b *outbox) start(ctx context.Context, o *Owner) {
	b.ctx = ctx
	go o.runArchiver(ctx, b.archives.jobs)
	go o.runParker(ctx, b.parks.jobs)
	go o.runEventWriter(ctx, b.events.jobs)
}

func (b *outbox) trigger(e *entry) {
	key := triggerKey{e.list, e.Type, e.Priority}
	g, ok := b.triggers[key]
	if !ok {
		g = &logv1.TriggerGroup{
			Domain: e.Domain, Tasklist: e.Tasklist, Priority: e.Priority, Type: e.Type, ReadyAtUs: e.ReadyAt * 1000,
		}
		b.triggers[key] = g
	}
	g.Triggers = ids.AppendTrigger(g.Triggers, e.Trigger())
}

func (b *outbox) release(e *entry, version uint32) {
	key := releaseKey{e.list.shard, e.Domain, e.Type}
	r, ok := b.releases[key]
	if !ok {
		r = &logv1.SlotRelease{Domain: e.Domain, Type: e.Type}
		b.releases[key] = r
	}
	r.Bookings = append(r.Bookings, ids.Booking(e.ID, version)...)
}

// archive queues a finished task. The first one of a batch sets its time: see archiveLinger.
func (b *outbox) archive(e *entry) {
	if len(b.archives.queue) == 0 {
		b.archiveBy = time.Now().Add(archiveLinger)
	}
	b.archives.queue = append(b.archives.queue, e)
}

// archiveDue tells whether the archive's batch is worth a message: nobody waits for it, and
// at a low rate a message per task would make the archive long to search.
func (b *outbox) archiveDue(now time.Time) bool {
	return len(b.archives.queue) >= archiveTasksMin || !now.Before(b.archiveBy)
}

func (b *outbox) park(e *entry)           { b.parks.queue = append(b.parks.queue, e) }
func (b *outbox) own(events *logv1.Event) { b.events.queue = append(b.events.queue, events) }

// answerIfDone queues a's verdicts when the last one is known.
func (b *outbox) answerIfDone(a *answer) {
	if a != nil && a.left == 0 {
		b.answers = append(b.answers, a)
		a.left = -1 // sent once
	}
}

// idle tells whether nothing waits to be stored.
func (b *outbox) idle() bool {
	return !b.archives.busy && !b.parks.busy && !b.events.busy &&
		len(b.archives.queue) == 0 && len(b.parks.queue) == 0 && len(b.events.queue) == 0
}

const (
	// hintBytesMax bounds one hint message: 14 thousand triggers.
	hintBytesMax = 400 << 10
	// writeTasksMax bounds what a writer takes at once.
	writeTasksMax = 5000
	// archiveLinger is how long a finished task may wait for company on its way into
	// the archive, archiveTasksMin how many are company enough. The loop looks every
	// beatEvery at the latest.
	archiveLinger   = 200 * time.Millisecond
	archiveTasksMin = 500
	// batchBytesMax bounds one stored batch.
	batchBytesMax = 400 << 10
)

// flush sends what the turn has gathered: hints, then answers; and starts the
// writers that are free.
func (o *Owner) flush() {
	b := &o.outbox
	if len(b.triggers) > 0 || len(b.releases) > 0 {
		o.flushHints()
	}
	for _, a := range b.answers {
		o.send(a)
	}
	clear(b.answers)
	b.answers = b.answers[:0]
	if o.leaving || b.archiveDue(time.Now()) {
		b.archives.next(writeTasksMax)
	}
	if b.parks.next(writeTasksMax) {
		o.parked.begin(o)
	}
	b.events.next(writeTasksMax)
	o.search()
}

func (o *Owner) flushHints() {
	b := &o.outbox
	byShard := make(map[int]*logv1.Hints, 4)
	hints := func(shard int) *logv1.Hints {
		h, ok := byShard[shard]
		if !ok {
			h = &logv1.Hints{}
			byShard[shard] = h
		}
		return h
	}
	for key, r := range b.releases {
		h := hints(key.shard)
		h.Releases = append(h.Releases, r)
	}
	for key, g := range b.triggers {
		h := hints(key.list.shard)
		for len(g.Triggers) > hintBytesMax { // a group alone may exceed a message
			n := hintBytesMax / ids.TriggerBytes * ids.TriggerBytes
			o.publishHints(key.list.shard, &logv1.Hints{Triggers: []*logv1.TriggerGroup{{
				Domain: g.Domain, Tasklist: g.Tasklist, Priority: g.Priority, Type: g.Type, ReadyAtUs: g.ReadyAtUs, Triggers: g.Triggers[:n],
			}}})
			g.Triggers = g.Triggers[n:]
		}
		h.Triggers = append(h.Triggers, g)
		if h.SizeVT() > hintBytesMax {
			o.publishHints(key.list.shard, h)
			delete(byShard, key.list.shard)
		}
	}
	for shard, h := range byShard {
		o.publishHints(shard, h)
	}
	clear(b.triggers)
	clear(b.releases)
	o.traceTriggers()
}

func (o *Owner) publishHints(shard int, h *logv1.Hints) {
	data, err := h.MarshalVT()
	if err != nil {
		panic("partition: " + err.Error()) // every field is of our making
	}
	o.Wire.Publish(topology.Matching(shard), data)
}

// send answers an event batch. If the answer reaches nobody, the attempts it
// grants are taken back at once rather than when their leases run out.
func (o *Owner) send(a *answer) {
	messages := a.messages()
	if len(a.grants) == 0 {
		for _, m := range messages {
			o.Wire.Publish(a.replyTo, m)
		}
		return
	}
	grants := a.grants
	for i, m := range messages {
		if i > 0 {
			o.Wire.Publish(a.replyTo, m)
			continue
		}
		o.Wire.Answer(a.replyTo, m, func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			o.post(ctx, func() { o.takeBack(grants) })
		})
	}
}

// takeBack releases attempts whose grant reached nobody.
func (o *Owner) takeBack(grants []grant) {
	for _, g := range grants {
		e := ownEvent(logv1.EventKind_EVENT_KIND_RELEASED, g.id, g.fence)
		e.Message = "the poller went away"
		o.outbox.own(e)
	}
	o.Metrics.Bounced.Add(int64(len(grants)))
}
