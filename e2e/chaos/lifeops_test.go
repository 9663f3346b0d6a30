package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

const (
	lifeOperators = 16
	// askTry bounds one try of an operator, askedFor all of them.
	askTry, askedFor = 5 * time.Second, 90 * time.Second
	// redrivers bring letters back at the same time, at redriveRate a second, every redriveEvery.
	redrivers, redriveAtRate, redriveEvery = 2, 200, 2 * time.Second
	// strayAfter is how long after the last submit tasks are looked for whose submits got no answer.
	strayAfter = 5 * time.Second
)

// lifeDo is what an operator does to a task.
type lifeDo int

const (
	cancelIt lifeDo = iota
	updateIt
	// updateTwice asks for two updates of one revision at a time.
	updateTwice
	// free has one run that waits for long, unblock one that holds up its key: now, soon, or never.
	free
	unblock
)

type lifeJob struct {
	do    lifeDo
	id    string
	n     int
	after time.Duration
}

// plan has operators do something with some tasks. The lock is held.
func (l *life) plan(o *lifeTask) {
	dice := rand.New(rand.NewPCG(uint64(o.n), uint64(l.round)))
	add := func(do lifeDo, most time.Duration) {
		l.later(lifeJob{do: do, id: o.id, n: o.n, after: upTo(dice, most)})
	}
	if o.delay == far && (o.batch == nil || !o.batch.cancel) {
		l.later(lifeJob{do: free, id: o.id, n: o.n, after: latest + upTo(dice, latest)})
	}
	switch n := dice.IntN(100); {
	case n < 3:
		add(cancelIt, 20*time.Millisecond)
	case n < 6:
		add(cancelIt, latest)
	case n < 9:
		add(updateIt, 20*time.Millisecond)
	case n < 11:
		add(updateTwice, 20*time.Millisecond)
	case n < 40 && o.delay > 0:
		for range 1 + dice.IntN(3) {
			add(updateIt, o.delay%latest)
		}
	case n < 50 && o.delay > 0:
		add(updateTwice, o.delay%latest)
	}
}

// later queues a job. The lock is held.
func (l *life) later(j lifeJob) {
	if j.do == unblock {
		j.after = time.Duration(10+j.n%500) * time.Millisecond
	}
	l.open++
	queue := l.queued
	time.AfterFunc(j.after, func() { queue <- j }) // it has room for all of a round
}

// operate starts those who cancel, update and redrive.
func (l *life) operate(ctx context.Context, busy *sync.WaitGroup, seed *rand.Rand) {
	l.t.Helper()
	queue := l.queued
	for range l.many(lifeOperators) {
		client, dice := l.cluster.Client(domain), fork(seed)
		busy.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case j := <-queue:
					l.do(ctx, client, dice, j)
					l.mu.Lock()
					l.open--
					l.mu.Unlock()
				}
			}
		})
	}
	for i := range redrivers {
		client, typ := l.cluster.Client(domain), [...]string{plainLife, beatingLife}
		busy.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				l.redrive(client, typ[n%2])
				wait(ctx, redriveEvery)
			}
		})
	}
}

// redrive brings all letters of a type back.
func (l *life) redrive(client *yard.Client, typ string) {
	ctx, cancel := context.WithTimeout(context.Background(), askedFor)
	defer cancel()
	did, err := client.Redrive(ctx, yard.RedriveOptions{Filter: yard.DeadLetterFilter{Type: typ, ErrorType: goneType}, Rate: redriveAtRate, Reason: "the other side works again"})
	if code := fault.CodeOf(err); err != nil && code != fault.Unknown && !code.Retryable() {
		l.offend("redrive: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.redriven += did.Redriven
}

func (l *life) do(ctx context.Context, client *yard.Client, dice *rand.Rand, j lifeJob) {
	switch j.do {
	case cancelIt:
		l.cancel(client, j.id)
	case updateIt:
		l.update(client, j, func(u *yardv1.TaskUpdate) {
			if dice.IntN(3) == 0 {
				u.Priority = 1 + dice.Int32N(5)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if it := l.item(j.id); dice.IntN(3) == 0 && it.revision > 0 {
				u.IfRevision = it.revision
			}
			if it := l.item(j.id); it.task != nil && it.task.delay < far && dice.IntN(3) == 0 {
				u.DelayMs = 1 + dice.Int64N(latest.Milliseconds()/4)
			}
		})
	case updateTwice:
		l.mu.Lock()
		revision := max(l.item(j.id).revision, 1)
		l.mu.Unlock()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { l.update(client, j, func(u *yardv1.TaskUpdate) { u.IfRevision = revision }) })
		}
		both.Wait()
	case free:
		l.release(ctx, client, dice, j, func() bool { return true })
	case unblock:
		l.release(ctx, client, dice, j, func() bool {
			task, err := client.Wire().Get(ctx, j.id)
			return err != nil || task.Blocked
		})
	}
}

// release has a task run, or cancels it, once it is where it waits for that.
func (l *life) release(ctx context.Context, client *yard.Client, dice *rand.Rand, j lifeJob, waits func() bool) {
	for began := time.Now(); !waits(); wait(ctx, 50*time.Millisecond) {
		if time.Since(began) > 20*time.Second || ctx.Err() != nil {
			return // it went on, since its failure was not heard of
		}
	}
	for range 3 {
		if dice.IntN(5) == 0 {
			l.cancel(client, j.id)
			return
		}
		soon := dice.IntN(3) == 0
		code := l.update(client, j, func(u *yardv1.TaskUpdate) {
			if u.RunNow = !soon; soon {
				u.DelayMs = 1 + dice.Int64N(500)
			}
		})
		if code != fault.Unknown {
			return
		}
	}
}

// cancel asks until the answer is clear.
func (l *life) cancel(client *yard.Client, id string) {
	c := &lifeCancel{asked: time.Now()}
	l.mu.Lock()
	it := l.item(id)
	it.cancels = append(it.cancels, c)
	l.mu.Unlock()
	code := l.untilClear(func(ctx context.Context) *yardv1.Verdict {
		verdicts, err := client.Wire().Cancel(ctx, &yardv1.CancelRequest{TaskIds: []string{id}, Reason: "no one wants it"})
		if err != nil {
			return verdictOf(err)
		}
		c.ran = verdicts[0].CancelRequested
		return verdicts[0]
	}).Code
	l.mu.Lock()
	defer l.mu.Unlock()
	c.answered, c.sure = time.Now(), code == codeOK
	l.clear("cancel", it, code)
	if code == string(fault.FailedPrecondition) {
		it.over(c.answered)
	}
}

const codeOK = "OK"

func verdictOf(err error) *yardv1.Verdict { return &yardv1.Verdict{Code: string(fault.CodeOf(err))} }

// over notes that a task is said to have ended before an instant.
func (it *lifeItem) over(at time.Time) {
	if it.saidOver.IsZero() || at.Before(it.saidOver) {
		it.saidOver = at
	}
}

// clear counts an answer, and holds that no accepted task is unknown. The lock is held.
func (l *life) clear(what string, it *lifeItem, code string) {
	l.asks[what+" "+code]++
	switch fault.Code(code) {
	case fault.NotFound, fault.InvalidArgument, fault.Internal, fault.PermissionDenied, fault.Unimplemented:
		l.offences = append(l.offences, what+" of "+it.id+" gets "+code)
	}
}

// untilClear asks until there is an answer that says what was done.
func (l *life) untilClear(ask func(ctx context.Context) *yardv1.Verdict) (v *yardv1.Verdict) {
	for began := time.Now(); time.Since(began) < askedFor; wait(context.Background(), handWait) {
		ctx, cancel := context.WithTimeout(context.Background(), askTry)
		v = ask(ctx)
		cancel()
		if code := fault.Code(v.Code); v.Code == codeOK || code != fault.Unknown && !code.Retryable() {
			return v
		}
	}
	v.Code = string(fault.Unknown)
	return v
}

// update gives a task a new input, and more.
func (l *life) update(client *yard.Client, j lifeJob, change func(u *yardv1.TaskUpdate)) fault.Code {
	u := &yardv1.TaskUpdate{TaskId: j.id}
	change(u)
	l.mu.Lock()
	it := l.item(j.id)
	it.version++
	w := &lifeWrite{value: lifeInput{j.n, it.version}, asked: time.Now()}
	it.writes = append(it.writes, w)
	l.mu.Unlock()
	data, _ := json.Marshal(w.value) // two numbers
	u.Payload = &yardv1.Payload{Data: data}
	req := &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{u}, RequestId: ids.NewRequestID(time.Now()).String()}
	v := l.untilClear(func(ctx context.Context) *yardv1.Verdict {
		req.Tries++
		verdicts, err := client.Wire().Update(ctx, req)
		if err != nil {
			return verdictOf(err)
		}
		return verdicts[0]
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear("update", it, v.Code)
	w.answered, w.revision = time.Now(), v.Revision
	w.sure = v.Code == codeOK
	w.refused = !w.sure && v.Code != string(fault.Unknown)
	switch {
	case w.sure && u.IfRevision > 0 && v.Revision != u.IfRevision+1:
		l.offences = append(l.offences, w.value.String()+" of "+j.id+" was made by another revision than it named")
	case v.Code == string(fault.Stale) && (u.IfRevision == 0 || v.Revision == u.IfRevision):
		l.offences = append(l.offences, w.value.String()+" of "+j.id+" is stale, and it has the revision")
	}
	if w.sure {
		it.revision = max(it.revision, v.Revision)
	}
	return fault.Code(v.Code)
}

// unfinished tells what has not ended yet.
func (l *life) unfinished() error {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	if open > 0 {
		return fmt.Errorf("%d jobs of operators are open", open)
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTry)
	defer cancel()
	d, err := l.client.DescribeTasklist(ctx, tasklist)
	if err != nil || d.Ready+d.Running+d.Backoff+d.Waiting+d.Queued > 0 {
		return fmt.Errorf("%+v %w", d, err)
	}
	for _, typ := range []string{plainLife, beatingLife, slowLife} {
		all, err := l.client.Redrive(ctx, yard.RedriveOptions{Filter: yard.DeadLetterFilter{Type: typ}, Preview: true})
		if err != nil || all.Found > 0 {
			return fmt.Errorf("dead letters of %s: %+v %w", typ, all, err)
		}
	}
	return nil
}

// callStrays has tasks run whose submits got no answer, and that wait for long, or hold up their keys.
func (l *life) callStrays() {
	ctx, cancel := context.WithTimeout(context.Background(), askTry)
	defer cancel()
	var strays []string
	for task, err := range l.client.Tasks(ctx, yard.Filter{Tasklist: tasklist, States: []yard.State{yard.StateWaiting, yard.StateBackoff}}) {
		if err != nil {
			return
		}
		l.mu.Lock()
		it := l.byID[task.ID]
		l.mu.Unlock()
		if (it == nil || it.task == nil) && (task.Blocked || time.Until(task.DueAt) > latest) {
			strays = append(strays, task.ID)
		}
	}
	for chunk := range slices.Chunk(strays, 100) {
		_ = l.client.RunNow(ctx, chunk...) // asked again if it was not done
	}
}

// end has all tasks of the round end.
func (l *life) end() {
	l.t.Helper()
	began := time.Now()
	for {
		why := l.unfinished()
		if why == nil {
			return
		}
		if time.Since(began) > endsOfRound {
			l.offend("not all ended: %v", why)
			return
		}
		if time.Since(began) > strayAfter {
			l.callStrays()
		}
		wait(l.t.Context(), 300*time.Millisecond)
	}
}
