package outcome

import (
	"context"
	"errors"
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

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/outcome"
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
	// last names the messages, sendings are by the name of their last one.
	last     uint64
	sendings map[uint64]*sending
	takes    *distribution.Cancels
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

// refusedPause is how soon events are sent again that the log refused.
const refusedPause = 200 * time.Millisecond

// New makes Outcomes.
func New(d Deps) *Outcomes {
	o := &Outcomes{
		Deps: d, metrics: newMetrics(d.Metrics), cancels: map[cancelsKey]*cancels{}, sendings: map[uint64]*sending{},
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
	partition int
	batch     []*share
	events    []*logv1.Event // of the batch
	changed   chan struct{}  // room for one: verdicts have come
	refused   chan string    // room for one: why the log did not take it
	why       string         // why a share expires

	// The lock guards these: the name of the last message, and what it misses.
	id     uint64
	flight *core.Flight[logv1.EventVerdict]
}

// flush sends one batch and waits for its verdicts. Once history has answered some of them the next
// batch may go: the rest, which needs a search, is waited for apart. It returns how many events it sent.
func (o *Outcomes) flush(p int, batch []*share) (sent int) {
	w := &sending{
		Outcomes: o, partition: p, batch: batch, changed: make(chan struct{}, 1), refused: make(chan string, 1), why: "there was no room for it in the log",
	}
	shares := make([]core.Share, len(batch))
	for i, s := range batch {
		shares[i] = core.Share{Events: len(s.events), Deadline: s.request.call.Deadline}
		w.events = append(w.events, s.events...)
	}
	w.flight = core.New[logv1.EventVerdict](shares, batch[0].cancels())
	if w.expire() == 0 {
		return 0
	}
	o.stamp(batch)
	w.why = "history gave no verdict in time"
	if !w.wait(w.send(), true) {
		go w.wait(o.VerdictTimeout, false)
	}
	return len(w.events)
}

// wait returns true when every share is answered, or, if partly, false when some verdicts have come.
// It sends the same events again if verdicts are missing: history returns the verdict of the first one for a repeated event. Each share waits until its own
// deadline.
func (w *sending) wait(next time.Duration, partly bool) (done bool) {
	timer := time.NewTimer(w.flight.Until(time.Now(), next))
	defer timer.Stop()
	for {
		select {
		case <-w.changed:
			if w.conclude() == 0 {
				return true
			}
			if partly {
				return false
			}
			continue
		case w.why = <-w.refused:
			timer.Reset(w.flight.Until(time.Now(), refusedPause))
			continue
		case <-w.Run.Base().Done():
			w.why = "the frontend is stopping"
		case <-timer.C:
		}
		if w.expire() == 0 {
			return true
		}
		timer.Reset(w.flight.Until(time.Now(), w.send()))
	}
}

// send sends what has no verdict, and returns when to look again.
func (w *sending) send() time.Duration {
	next, again := w.flight.Wait(w.VerdictTimeout), w.flight.Sent()
	if again && w.batch[0].cancels() && !w.takesCancels(w.partition, w.batch) {
		return next // they wait there
	}
	id, data := w.message()
	if data == nil {
		return next // they are answered
	}
	if w.Bus.PublishEvents(w.partition, id, data) != nil {
		next, w.why = refusedPause, "there is no connection to the log"
	}
	w.metrics.messages.Add(1)
	if again {
		w.metrics.resends.Add(1)
	}
	return next
}

// message makes the next message; nil if nothing is missing.
func (w *sending) message() (id uint64, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	again := w.flight.Sent()
	places, other := w.flight.Send()
	if len(places) == 0 {
		return 0, nil
	}
	if other {
		delete(w.sendings, w.id)
		w.last++
		w.id = w.last
		w.sendings[w.id] = w
	}
	m := &logv1.EventBatch{Events: make([]*logv1.Event, len(places)), ReplyTo: w.Bus.VerdictsTo(), RequestId: w.id, LogVersion: w.LogVersion()}
	for i, at := range places {
		m.Events[i] = w.events[at]
	}
	if again {
		copied(m.Events)
	}
	data, err := m.MarshalVT()
	if err != nil {
		w.why = err.Error()
	}
	return w.id, data
}

// expire answers UNKNOWN to the shares whose time is over, and returns how many still wait.
func (w *sending) expire() (left int) {
	over, left := w.end(func() []int { return w.flight.Expired(time.Now(), w.Run.Base().Err() != nil) })
	for _, i := range over {
		w.batch[i].fail(fault.Unknown, w.why+": repeat the entry")
	}
	return left
}

// conclude answers the shares that have all of their verdicts, and returns how many still wait.
func (w *sending) conclude() (left int) {
	done, left := w.end(w.flight.Concluded)
	for _, i := range done {
		w.batch[i].conclude(w.flight.Verdicts(i))
	}
	return left
}

// end ends some shares. With the last one nothing more is taken in.
func (w *sending) end(some func() []int) (ended []int, left int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ended, left = some(), w.flight.Left(); left == 0 {
		delete(w.sendings, w.id)
	}
	return ended, left
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
	if w := o.sendings[b.RequestId]; w != nil && w.flight.Take(int(b.First), b.Verdicts) {
		select {
		case w.changed <- struct{}{}:
		default: // it has not looked since
		}
	}
}

// EventsRefused takes in that the log did not take a batch of events.
func (o *Outcomes) EventsRefused(id uint64, why string) {
	o.mu.Lock()
	w := o.sendings[id]
	o.mu.Unlock()
	if w == nil {
		return
	}
	select {
	case w.refused <- why:
	default: // one refusal is enough to send it again
	}
}
