package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

const (
	// batchProducers each have one batch at a time, of up to requestsMost requests. Their unique keys are their own.
	batchProducers, batchRate, requestsMost, batchUniqueKeys = 3, 20, 6, 20
	// calledLife is the type of callbacks.
	calledLife = "called"
	// batchAsk is how long one who waits for a batch stays at a time.
	batchAsk = 3 * time.Second
)

// lifeBatch is a batch as its producer knows it.
type lifeBatch struct {
	id      string
	members []*lifeTask
	// cancel: its rest is cancelled, with what runs if running is set, once it has its members.
	cancel, running bool
	// done: it was closed, or its rest cancelled, between asked and answered.
	done            bool
	asked, answered time.Time
	// swept: the cancel said that it has left nothing.
	swept bool
	// gaveUp: it was not over in time.
	gaveUp bool
	// waits are the answers of those who waited for it.
	waits []*yard.BatchInfo
	// calls are the runs of its callback.
	calls []lifeCall
}

// lifeCall is a run of a callback.
type lifeCall struct {
	id      string
	headers map[string]string
}

// produceBatches starts the producers of batches. Each has one batch after the other: makes it, submits its members, and closes it, or cancels the rest.
func (l *life) produceBatches(ctx context.Context, busy *sync.WaitGroup, seed *rand.Rand) {
	l.t.Helper()
	for i := range l.many(batchProducers) {
		client, dice := l.cluster.Client(domain), fork(seed)
		by := l.bySDK(client)
		if i%2 == 1 {
			by = l.byHand(l.cluster.Conn(domain, nats.MaxReconnects(-1)), fork(seed))
		}
		busy.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				l.oneBatch(ctx, client, by, dice, i, fmt.Sprintf("batch-%d-%d-%d", l.round, i, n))
			}
		})
	}
}

func (l *life) oneBatch(ctx context.Context, client *yard.Client, by submitter, dice *rand.Rand, producer int, id string) {
	b := &lifeBatch{id: id, cancel: dice.IntN(4) == 0, running: dice.IntN(2) == 0}
	options := yard.BatchOptions{Callback: &yard.Task{Type: calledLife, Tasklist: tasklist, Payload: id}}
	made := l.untilDone("create "+id, func(ctx context.Context) error {
		_, err := client.NewBatch(ctx, id, options)
		return err
	})
	if !made {
		return
	}
	l.mu.Lock()
	l.batches[id] = b
	l.mu.Unlock()
	var waits sync.WaitGroup
	l.awaitBatch(&waits, client, b)
	for range dice.IntN(requestsMost + 1) {
		members := l.members(dice, producer, b)
		l.submit(by, members)
		wait(ctx, time.Duration(len(members))*time.Second/batchRate*batchProducers/2)
	}
	l.awaitBatch(&waits, client, b)
	l.endBatch(client, dice, b)
	if !b.cancel && dice.IntN(3) == 0 { // stored and counted, or refused
		late := l.lives(dice)
		late.batch, late.late = b, true
		l.submit(by, []*lifeTask{late})
	}
	l.waiting.Go(waits.Wait)
}

// members are those of one request.
func (l *life) members(dice *rand.Rand, producer int, b *lifeBatch) (all []*lifeTask) {
	keys, kind := dice.Perm(batchUniqueKeys), dice.IntN(10)
	for range 1 + dice.IntN(batchMost) {
		var o *lifeTask
		switch {
		case kind < 5:
			o = l.anyLife(dice)
		case kind < 8:
			o = l.orderedLife(dice, l.orderKey(l.many(orderedProducers)+producer, dice.IntN(orderKeysEach)))
		default:
			o = l.uniqueLife(dice, fmt.Sprintf("of-batches-%d", keys[len(all)]))
		}
		o.batch = b
		all = append(all, o)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.members = append(b.members, all...)
	return all
}

// endBatch closes a batch, or cancels the rest of it, or both at once. Each is repeated now and then.
func (l *life) endBatch(client *yard.Client, dice *rand.Rand, b *lifeBatch) {
	asked, swept, batch := time.Now(), false, client.Batch(b.id)
	closing := func() bool {
		return l.untilDone("close "+b.id, func(ctx context.Context) error {
			_, err := batch.Close(ctx)
			return err
		})
	}
	cancelling := func() bool {
		return l.untilDone("cancel "+b.id, func(ctx context.Context) error {
			did, err := batch.Cancel(ctx, yard.PurgeOptions{Running: b.running, Rate: 2000, Reason: "no one wants it"})
			swept = err == nil && did.UnreadBatches == 0 && did.Undecided == 0
			return err
		})
	}
	both, again := dice.IntN(3) == 0, dice.IntN(3) == 0
	done := true
	for range 2 {
		var all sync.WaitGroup
		if !b.cancel || both {
			all.Go(func() { done = closing() && done })
		}
		if b.cancel {
			all.Wait()
		}
		if b.cancel {
			all.Go(func() { done = cancelling() && done })
		}
		all.Wait()
		if !again {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.asked, b.answered, b.done, b.swept = asked, time.Now(), done, swept
}

// untilDone asks until it is done. An answer that no fault explains is a violation.
func (l *life) untilDone(what string, ask func(ctx context.Context) error) bool {
	for began := time.Now(); ; wait(context.Background(), handWait) {
		ctx, cancel := context.WithTimeout(context.Background(), askedFor)
		err := ask(ctx)
		cancel()
		code := fault.CodeOf(err)
		switch {
		case err == nil:
			return true
		case code != fault.Unknown && !code.Retryable(), time.Since(began) > askedFor:
			l.offend("%s: %v", what, err)
			return false
		}
	}
}

// awaitBatch has someone wait for a batch.
func (l *life) awaitBatch(busy *sync.WaitGroup, client *yard.Client, b *lifeBatch) {
	busy.Go(func() {
		for {
			ctx, cancel := context.WithTimeout(context.Background(), batchAsk)
			info, err := client.Batch(b.id).Wait(ctx)
			cancel()
			code := fault.CodeOf(err)
			switch {
			case err == nil:
				l.mu.Lock()
				defer l.mu.Unlock()
				b.waits = append(b.waits, info)
				return
			case errors.Is(err, context.DeadlineExceeded), code == fault.Unknown, code.Retryable():
			default:
				l.offend("wait for %s: %v", b.id, err)
				return
			}
			l.mu.Lock()
			over := b.gaveUp
			l.mu.Unlock()
			if over {
				return
			}
		}
	})
}

// called notes a run of a callback.
func (l *life) called(a *yard.Attempt) error {
	var id string
	if err := a.Payload.Decode(&id); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.batches[id]
	if b == nil {
		if !l.batchesBefore[id] {
			l.offences = append(l.offences, "a callback of no batch ran: "+id)
		}
		return nil
	}
	b.calls = append(b.calls, lifeCall{a.TaskID, maps.Clone(a.Headers)})
	if len(b.calls) == 1 && len(id)%2 == 0 {
		return errors.New("the first attempt fails")
	}
	return nil
}

// checkBatches: each batch that was closed is complete, its counts are what became of its members, its callback ran, and is one task; one that was cancelled has
// left nothing behind that begins. The others wait until their members are known.
func (l *life) checkBatches(ends []*lifeEnd) (n int) {
	byBatch := map[string][]*lifeEnd{}
	for _, e := range ends {
		if e.BatchId != "" {
			byBatch[e.BatchId] = append(byBatch[e.BatchId], e)
		}
	}
	l.mu.Lock()
	all := make([]*lifeBatch, 0, len(l.batches))
	for _, b := range l.batches {
		if b.done {
			all = append(all, b)
		}
	}
	l.mu.Unlock()
	deadline := time.Now().Add(within)
	for _, b := range all {
		l.checkBatch(b, byBatch[b.id], deadline)
	}
	l.mu.Lock()
	for _, b := range l.batches {
		b.gaveUp = true
	}
	l.mu.Unlock()
	l.waiting.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range all {
		for _, w := range b.waits {
			if w.State != yard.BatchCompleted {
				l.offences = append(l.offences, fmt.Sprintf("who waited for %s got %+v", b.id, w))
			}
		}
		if len(b.waits) != 2 {
			l.offences = append(l.offences, fmt.Sprintf("%d of 2 heard that %s is over", len(b.waits), b.id))
		}
	}
	return len(all)
}

func (l *life) checkBatch(b *lifeBatch, ends []*lifeEnd, deadline time.Time) {
	var info *yard.BatchInfo
	for ; ; wait(context.Background(), 200*time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), askTry)
		var err error
		info, err = l.client.Batch(b.id).Info(ctx)
		cancel()
		if err == nil && info.State.Over() {
			break
		}
		if time.Now().After(deadline) {
			l.offend("%s is not over, and its members have ended: %+v %v", b.id, info, err)
			return
		}
	}
	var called *yardv1.Task
	for ; ; wait(context.Background(), 200*time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), askTry)
		task, err := l.client.Wire().Get(ctx, info.CallbackID)
		cancel()
		if err == nil && task.State == yardv1.TaskState_TASK_STATE_COMPLETED {
			called = task
			break
		}
		if time.Now().After(deadline) {
			l.offend("the callback of %s has not ended: %v %v", b.id, task, err)
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, wrong := range b.wrong(info, ends) {
		l.offences = append(l.offences, fmt.Sprintf("%s: %s\n  %+v\n  asked %s answered %s, cancel %v, running %v, swept %v", b.id, wrong, *info, stamp(b.asked), stamp(b.answered), b.cancel, b.running, b.swept))
	}
	if called == nil {
		return
	}
	for _, c := range append(b.calls, lifeCall{called.TaskId, called.Headers}) {
		for name, n := range map[string]int64{"tasks": info.Tasks, "completed": info.Completed, "dead": info.Dead, "cancelled": info.Cancelled, "expired": info.Expired} {
			if c.id != info.CallbackID || c.headers["yard-batch-id"] != b.id || c.headers["yard-batch-"+name] != strconv.FormatInt(n, 10) {
				l.offences = append(l.offences, fmt.Sprintf("%s has another callback than it says: %+v, %+v", b.id, c, *info))
				break
			}
		}
	}
	if len(b.calls) == 0 {
		l.offences = append(l.offences, "the callback of "+b.id+" has ended and never ran")
	}
}
