package outcome

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/shared/batcher"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/distribution"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/filing"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/groupcommit"
)

// Outcomes brings events into the log and their verdicts back. Each partition
// has a group commit of its own; what is in flight waits for its verdicts there,
// so that batches grow when history is slow.
type Outcomes struct {
	Deps
	metrics    metrics
	partitions []*groupcommit.Queue[*share]
	urgent     []*urgent

	mu sync.Mutex
	// cancels go apart: the verdict on a task that is not in memory waits for a search
	// in other stores, and neither a worker's outcome nor another domain's cancel must
	// wait behind it.
	cancels map[cancelsKey]*cancels
	last    uint64
	flights map[uint64]*flight
	takes   *distribution.Cancels
}

// errCancelsWait: too many cancels wait in history.
var errCancelsWait = errors.New("too many cancels wait")

// urgent are the shares that wait in a partition for which slots are booked.
type urgent struct {
	waiting atomic.Int64
	changed chan struct{} // room for one: there may be one more
}

type cancelsKey struct {
	partition int
	domain    string
}

// cancels is the group commit of the cancels of one domain. It exists while any is on its
// way, so their number is bounded by that of the requests under way.
type cancels struct {
	batcher *batcher.Batcher[*share]
	pending int
}

// flight is one batch of events that was sent and misses verdicts.
type flight struct {
	verdicts []*logv1.EventVerdict // nil = missing
	sent     []int                 // the places in verdicts of the events of the last message
	left     int
	changed  chan struct{} // room for one: some have come
	refused  chan string   // room for one: why the log did not take it
}

// refusedPause is how soon events are sent again that the log refused.
const refusedPause = 200 * time.Millisecond

// New makes Outcomes.
func New(d Deps) *Outcomes {
	o := &Outcomes{
		Deps: d, metrics: newMetrics(d.Metrics), cancels: map[cancelsKey]*cancels{}, flights: map[uint64]*flight{},
		takes: distribution.NewCancels(d.Partitioning.History),
	}
	for p := range d.Partitioning.History {
		urgent := &urgent{changed: make(chan struct{}, 1)}
		o.urgent = append(o.urgent, urgent)
		o.partitions = append(o.partitions, groupcommit.New(d.Catalog.Weight, queuedEventsBytes, groupcommit.MessageBytesMax, groupcommit.MessageBytesMax, func(batch []*share) {
			for _, s := range batch {
				if s.urgent() {
					urgent.waiting.Add(-1)
				}
			}
			began := time.Now()
			n := o.flush(p, batch)
			o.rest(urgent, filing.Rest(n, time.Since(began)))
		}))
	}
	return o
}

// cancelsInFlight is how many batches of cancels of one domain and partition may wait for
// their verdicts; each may take as long as the search for one task.
const cancelsInFlight = 4

// enqueue hands a share to the group commit of its partition, or of its domain's cancels there.
func (o *Outcomes) enqueue(s *share) error {
	if !s.cancels() {
		return o.enqueueOutcomes(s)
	}
	if s.brings() && !o.HasRoom(s.partition) { // as for tasks: what is left is for the events of those that are there
		return natslog.ErrFull
	}
	if !o.takesCancels(s.partition, []*share{s}) {
		return errCancelsWait
	}
	key := cancelsKey{s.partition, s.request.call.Domain}
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.cancels[key]
	if c == nil {
		c = &cancels{}
		c.batcher = batcher.New(batcher.Config{BatchMax: groupcommit.MessageBytesMax, InFlight: cancelsInFlight, QueuedMax: queuedEventsBytes}, func(_ context.Context, batch []*share) {
			o.flush(key.partition, batch)
			o.forget(key, c, len(batch))
		})
		o.cancels[key] = c
	}
	if err := c.batcher.Add(key.domain, s, s.weight()); err != nil {
		return err
	}
	c.pending++
	return nil
}

// enqueueOutcomes hands a share to the group commit of its partition, if its domain has room there.
func (o *Outcomes) enqueueOutcomes(s *share) error {
	urgent, urges := o.urgent[s.partition], s.urgent()
	if urges { // counted before it can be in a batch
		urgent.waiting.Add(1)
	}
	queued := o.partitions[s.partition].Add(s)
	switch {
	case !urges:
	case !queued:
		urgent.waiting.Add(-1)
	default:
		select {
		case urgent.changed <- struct{}{}:
		default: // it has not looked since
		}
	}
	if !queued {
		return batcher.ErrFull
	}
	return nil
}

// rest leaves the log of a partition to others for d, or until something urgent waits.
func (o *Outcomes) rest(u *urgent, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for u.waiting.Load() == 0 {
		select {
		case <-u.changed:
			continue
		case <-o.Run.Base().Done():
		case <-timer.C:
		}
		return
	}
}

// forget counts n shares of cancels out.
func (o *Outcomes) forget(key cancelsKey, c *cancels, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.pending -= n; c.pending == 0 {
		delete(o.cancels, key)
	}
}

// takesCancels tells whether history takes the cancels, and counts them if it does.
func (o *Outcomes) takesCancels(p int, all []*share) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, s := range all {
		n += s.asCancels()
		if !o.takes.Takes(p, s.request.call.Domain) {
			return false
		}
	}
	o.takes.Sent(p, n)
	return true
}

// Report takes in how many cancels wait in a partition.
func (o *Outcomes) Report(load *rpcv1.HistoryLoad) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.takes.Report(int(load.Partition), load.CancelsFull, load.CancelsFullOf)
}

// sending is one batch of events that waits for its verdicts.
type sending struct {
	*Outcomes
	*flight
	id        uint64
	partition int
	batch     []*share
	events    []*logv1.Event // of the batch
	message   *logv1.EventBatch
	data      []byte
	sends     int
	why       string // what an answer without a verdict says
}

// flush sends one batch and waits for its verdicts. Once history has answered some of them the next
// batch may go: the rest, which needs a search, is waited for apart. It returns how many events it sent.
func (o *Outcomes) flush(p int, batch []*share) (sent int) {
	if o.expire(batch, "there was no room for it in the log") == 0 {
		return 0
	}
	batch = slices.DeleteFunc(batch, func(s *share) bool { return s.over })
	var events []*logv1.Event
	for _, s := range batch {
		events = append(events, s.events...)
	}
	id, f := o.open(len(events))
	o.stamp(batch)
	message := &logv1.EventBatch{Events: events, ReplyTo: o.Bus.VerdictsTo(), RequestId: id, LogVersion: o.LogVersion()}
	data, err := message.MarshalVT()
	if err != nil {
		o.close(id)
		for _, s := range batch {
			s.fail(fault.Internal, err.Error())
		}
		return 0
	}
	w := &sending{
		Outcomes: o, flight: f, id: id, partition: p, batch: batch, events: events, message: message, data: data,
		why: "history gave no verdict in time",
	}
	if !w.wait(o.untilNext(batch, w.send()), true) {
		go w.wait(o.untilNext(batch, o.VerdictTimeout), false)
	}
	return len(events)
}

// wait returns true when every share is answered, or, if partly, false when some verdicts have come.
// It sends the same events again if verdicts are missing: history gives a repeated event
// the verdict of the first. Each share waits until its own deadline.
func (w *sending) wait(next time.Duration, partly bool) (done bool) {
	timer := time.NewTimer(next)
	defer timer.Stop()
	defer func() {
		if done {
			w.close(w.id)
		}
	}()
	for {
		select {
		case <-w.changed:
			if w.conclude(w.batch, w.flight) == 0 {
				return true
			}
			if partly {
				return false
			}
			continue
		case w.why = <-w.refused:
			timer.Reset(w.untilNext(w.batch, refusedPause))
			continue
		case <-w.Run.Base().Done():
			w.why = "the frontend is stopping"
		case <-timer.C:
		}
		if w.expire(w.batch, w.why) == 0 {
			return true
		}
		timer.Reset(w.untilNext(w.batch, w.send()))
	}
}

// resendDoublings is how often the wait for the verdicts on cancels and updates grows twofold: where history is slow, the same events once more make it slower. The
// outcomes of attempts have no time for that.
const resendDoublings = 2

// send sends the events, and returns when to look again.
func (w *sending) send() time.Duration {
	next := w.VerdictTimeout
	if w.batch[0].cancels() {
		next <<= min(w.sends, resendDoublings)
	}
	if w.sends > 0 && w.batch[0].cancels() && !w.takesCancels(w.partition, w.batch) {
		return next // they wait there
	}
	if w.sends > 0 && !w.again() {
		return next // they are answered
	}
	if w.Bus.PublishEvents(w.partition, w.id, w.data) != nil {
		next, w.why = refusedPause, "there is no connection to the log"
	}
	w.metrics.messages.Add(1)
	if w.sends++; w.sends > 1 {
		w.metrics.resends.Add(1)
	}
	return next
}

// again makes the message that is sent once more, and returns false if nothing is missing. An event with a verdict is not in it: history
// does not know each event again, and one that it has refused would be applied to a task that was redriven since.
func (w *sending) again() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	var missing []int
	at := 0
	for _, s := range w.batch {
		for range s.events {
			if w.verdicts[at] == nil && !s.over {
				missing = append(missing, at)
			}
			at++
		}
	}
	if len(missing) == 0 {
		return false
	}
	if len(missing) < len(w.sent) { // verdicts on the message before have other places
		delete(w.flights, w.id)
		w.last++
		w.id, w.sent = w.last, missing
		w.flights[w.id] = w.flight
		w.message.RequestId, w.message.Events = w.id, nil
		for _, at := range missing {
			w.message.Events = append(w.message.Events, w.events[at])
		}
	}
	copied(w.message.Events)
	if data, err := w.message.MarshalVT(); err == nil {
		w.data = data
	}
	return true
}

// untilNext is d, or less where a deadline comes before.
func (o *Outcomes) untilNext(batch []*share, d time.Duration) time.Duration {
	for _, s := range batch {
		if !s.over {
			d = min(d, time.Until(s.request.call.Deadline))
		}
	}
	return max(d, 0)
}

// expire answers UNKNOWN to the shares whose time is over, and returns how many
// still wait.
func (o *Outcomes) expire(batch []*share, why string) (left int) {
	now, stopping := time.Now(), o.Run.Base().Err() != nil
	for _, s := range batch {
		switch {
		case s.over:
		case stopping || s.late(now):
			s.over = true
			s.fail(fault.Unknown, why+": repeat the entry")
		default:
			left++
		}
	}
	return left
}

// conclude hands out the verdicts, which are in the order of the shares' events, to the shares
// that have all of theirs, and returns how many shares still wait.
func (o *Outcomes) conclude(batch []*share, f *flight) (left int) {
	at := 0
	for _, s := range batch {
		mine := f.verdicts[at : at+len(s.events)]
		at += len(s.events)
		switch {
		case s.over:
		case o.allDecided(mine):
			s.over = true
			s.conclude(mine)
		default:
			left++
		}
	}
	return left
}

func (o *Outcomes) allDecided(verdicts []*logv1.EventVerdict) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !slices.Contains(verdicts, nil)
}

func (o *Outcomes) open(n int) (uint64, *flight) {
	f := &flight{verdicts: make([]*logv1.EventVerdict, n), left: n, changed: make(chan struct{}, 1), refused: make(chan string, 1)}
	for at := range n {
		f.sent = append(f.sent, at)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	o.flights[o.last] = f
	return o.last, f
}

func (o *Outcomes) close(id uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.flights, id)
}

// TakeVerdicts takes in a VerdictBatch. The verdicts of one batch may come in
// several messages, more than once, and late.
func (o *Outcomes) TakeVerdicts(data []byte) {
	var b logv1.VerdictBatch
	if err := b.UnmarshalVT(data); err != nil {
		o.Log.Error("verdicts that cannot be read", "error", err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.flights[b.RequestId]
	if f == nil || uint64(b.First)+uint64(len(b.Verdicts)) > uint64(len(f.sent)) || f.left == 0 {
		return
	}
	for i, v := range b.Verdicts {
		if at := f.sent[int(b.First)+i]; f.verdicts[at] == nil {
			f.verdicts[at] = v
			f.left--
		}
	}
	select {
	case f.changed <- struct{}{}:
	default: // it has not looked since
	}
}

// EventsRefused tells that the log did not take a batch of events.
func (o *Outcomes) EventsRefused(id uint64, why string) {
	o.mu.Lock()
	f := o.flights[id]
	o.mu.Unlock()
	if f == nil {
		return
	}
	select {
	case f.refused <- why:
	default: // one refusal is enough to send it again
	}
}
