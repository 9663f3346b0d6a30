package yard

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

const (
	// beatDefault is how often an attempt without a heartbeat timeout has a heartbeat for: only to learn of a cancel.
	beatDefault = 10 * time.Second
	// beatMin bounds how soon a beat that failed is tried again.
	beatMin = 50 * time.Millisecond
	// progressPace is how often an attempt's progress is sent.
	progressPace = time.Second
	// hintPace bounds how often hints of a cancel make an attempt be beaten for: anybody in the domain may send some.
	hintPace = 100 * time.Millisecond
	// beatTimeout bounds one request; a later beat does the same work.
	beatTimeout = 5 * time.Second
	// beatBytes is the size of one beat without its progress, rounded up.
	beatBytes = 80
	// beatFlightsMax bounds the requests under way.
	beatFlightsMax = 4
)

// pulse is when the next heartbeat of an attempt is due, and what is sent with it.
type pulse struct {
	every time.Duration
	next  time.Time
	last  time.Time
	// paced: the next beat is for a hint of a cancel, or repeats one that was in vain; it must not go along with an earlier one.
	paced bool
	// progress is what the handler reported and the engine has not confirmed.
	progress *yardv1.Payload
}

// beater sends the heartbeats of all active attempts, batched. Its cost is one
// pass over the attempts per batch; most attempts are over before their first.
type beater struct {
	log  *slog.Logger
	send func(context.Context, []*yardv1.Beat) ([]*yardv1.Verdict, error)

	mu       sync.Mutex
	attempts map[*activeAttempt]struct{}
	// planned is when the loop wakes by itself; zero = not at all.
	planned time.Time
	// wake holds a token when a beat is due before that.
	wake chan struct{}
}

func newBeater(log *slog.Logger, send func(context.Context, []*yardv1.Beat) ([]*yardv1.Verdict, error)) *beater {
	return &beater{log: log, send: send, attempts: map[*activeAttempt]struct{}{}, wake: make(chan struct{}, 1)}
}

// add beats for h from now on until remove.
func (b *beater) add(h *activeAttempt) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	h.pulse = pulse{every: beatDefault, last: now}
	if h.HeartbeatTimeout > 0 {
		h.pulse.every = min(h.HeartbeatTimeout/3, beatDefault)
	}
	b.attempts[h] = struct{}{}
	b.plan(h, now.Add(h.pulse.every))
}

// remove stops beating for h. It may be called for one that was never added.
func (b *beater) remove(h *activeAttempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.attempts, h)
}

// progress sends p with a heartbeat within progressPace of the last one.
func (b *beater) progress(h *activeAttempt, p *yardv1.Payload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.attempts[h]; !ok {
		return // finished meanwhile
	}
	h.pulse.progress = p
	if due := h.pulse.last.Add(progressPace); due.Before(h.pulse.next) {
		b.plan(h, due)
	}
}

// hear has a beat sent at once for those of the tasks that this worker runs: somebody cancelled them, or changed their deadline.
func (b *beater) hear(taskIDs []string) {
	ids := make(map[string]bool, len(taskIDs))
	for _, id := range taskIDs {
		ids[id] = true
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for h := range b.attempts {
		if due := h.pulse.last.Add(hintPace); ids[h.TaskID] && due.Before(h.pulse.next) {
			if due.Before(now) {
				due = now
			}
			h.pulse.paced = true
			b.plan(h, due)
		}
	}
}

// plan sets h's next beat, and wakes the loop if it would sleep past it.
func (b *beater) plan(h *activeAttempt, at time.Time) {
	h.pulse.next = at
	if b.planned.IsZero() || at.Before(b.planned) {
		b.planned = at
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
}

// run beats until ctx ends.
func (b *beater) run(ctx context.Context) {
	var flights sync.WaitGroup
	defer flights.Wait()
	seats := make(chan struct{}, beatFlightsMax)
	timer := time.NewTimer(beatDefault)
	defer timer.Stop()
	for {
		due, next := b.due(time.Now())
		for len(due) > 0 {
			var batch []*activeAttempt
			batch, due = b.split(due)
			select {
			case seats <- struct{}{}:
			case <-ctx.Done():
				return
			}
			flights.Go(func() {
				b.beat(ctx, batch)
				<-seats
			})
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-timer.C:
		case <-b.wake:
		case <-ctx.Done():
			return
		}
	}
}

// split cuts the next request's worth off the attempts that are due.
func (b *beater) split(due []*activeAttempt) (batch, rest []*activeAttempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := fitting(len(due), requestBytesMax, func(i int) int { return beatBytes + len(due[i].pulse.progress.GetData()) })
	return due[:n], due[n:]
}

// due returns the attempts to beat for now, and when to look again. An attempt that is due within a quarter of its interval goes along, so that
// attempts begun at different times end up in common requests.
func (b *beater) due(now time.Time) (due []*activeAttempt, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for h := range b.attempts {
		p := &h.pulse
		ahead := p.every / 4
		if p.progress != nil || p.paced {
			ahead = 0 // paced; not to be sent with every batch
		}
		if !p.next.After(now.Add(ahead)) {
			due = append(due, h)
			p.last, p.next, p.paced = now, now.Add(p.every), false
		}
		if next.IsZero() || p.next.Before(next) {
			next = p.next
		}
	}
	b.planned = next
	return due, next
}

// beat sends one request and does what its verdicts say.
func (b *beater) beat(ctx context.Context, batch []*activeAttempt) {
	beats := make([]*yardv1.Beat, len(batch))
	b.mu.Lock()
	for i, h := range batch {
		beats[i] = &yardv1.Beat{TaskId: h.TaskID, Token: h.token, Progress: h.pulse.progress}
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	verdicts, err := b.send(ctx, beats)
	if err != nil {
		b.log.Debug("a heartbeat failed; it is repeated", "attempts", len(batch), "error", err)
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, h := range batch {
		if err != nil {
			b.again(h, now)
			continue
		}
		b.apply(h, beats[i], verdicts[i], now)
	}
}

// apply does what the engine answered for one attempt.
func (b *beater) apply(h *activeAttempt, sent *yardv1.Beat, v *yardv1.Verdict, now time.Time) {
	switch code := fault.Code(v.Code); {
	case v.Code == codeOK:
		if h.pulse.progress == sent.Progress {
			h.pulse.progress = nil
		}
		if v.TimeoutMs > 0 && h.until != nil { // an update may have changed it
			h.until.move(now.Add(time.Duration(v.TimeoutMs) * time.Millisecond))
		}
		if v.CancelRequested {
			h.cancel(ErrCancelled)
		}
	case code == fault.Stale, code == fault.NotFound, code == fault.FailedPrecondition:
		h.cancel(ErrLostAttempt)
		delete(b.attempts, h)
	default:
		b.again(h, now)
	}
}

// again beats for h sooner than usual, since the last beat was in vain.
func (b *beater) again(h *activeAttempt, now time.Time) {
	if _, ok := b.attempts[h]; !ok {
		return
	}
	if soon := now.Add(max(h.pulse.every/4, beatMin)); soon.Before(h.pulse.next) {
		h.pulse.paced = true
		b.plan(h, soon)
	}
}
