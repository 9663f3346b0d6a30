package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// How many producers of each kind there are in the short form, and their shares of the rate, percent.
const (
	anyProducers, orderedProducers, uniqueProducers = 3, 8, 4
	anyShare, orderedShare, uniqueShare             = 45, 25, 15
	// orderKeysEach are the order keys of a producer, which alone submits tasks with them; uniqueKeys are those of all.
	orderKeysEach, uniqueKeys = 30, 100
	batchMost                 = 12
	// hastyTry is for how long a client waits that is to repeat a request which is under way.
	hastyTry = 4 * time.Millisecond
)

// produce starts the producers. Some are on the SDK, others repeat requests by hand.
func (l *life) produce(ctx context.Context, busy *sync.WaitGroup, seed *rand.Rand) {
	l.t.Helper()
	l.produceBatches(ctx, busy, seed)
	each := func(n, share int, next func(producer int, dice *rand.Rand) []*lifeTask) {
		for i := range n {
			dice, by := fork(seed), l.bySDK(l.cluster.Client(domain))
			if i%2 == 1 {
				by = l.byHand(l.cluster.Conn(domain, nats.MaxReconnects(-1)), fork(seed))
			}
			perTask := time.Duration(n) * time.Second * 100 / time.Duration(l.rate*share)
			busy.Go(func() {
				for due := time.Now(); ctx.Err() == nil; {
					batch := next(i, dice)
					l.submit(by, batch)
					due = due.Add(time.Duration(len(batch)) * perTask)
					if late := time.Since(due); late > time.Second {
						due = time.Now().Add(-time.Second) // what a fault held up is not all submitted at once
					}
					wait(ctx, time.Until(due))
				}
			})
		}
	}
	each(l.many(anyProducers), anyShare, func(_ int, dice *rand.Rand) (batch []*lifeTask) {
		for range 1 + dice.IntN(batchMost) {
			batch = append(batch, l.anyLife(dice))
		}
		return batch
	})
	each(l.many(orderedProducers), orderedShare, func(producer int, dice *rand.Rand) (batch []*lifeTask) {
		for range 1 + dice.IntN(batchMost) {
			batch = append(batch, l.orderedLife(dice, l.orderKey(producer, dice.IntN(orderKeysEach))))
		}
		return batch
	})
	each(l.many(uniqueProducers), uniqueShare, func(_ int, dice *rand.Rand) (batch []*lifeTask) {
		for _, k := range dice.Perm(uniqueKeys)[:1+dice.IntN(batchMost)] {
			batch = append(batch, l.uniqueLife(dice, fmt.Sprintf("unique-%d", k)))
		}
		return batch
	})
}

// many is how many there are of some that there are n of in the short form. Each waits for its answers, so a higher rate needs more of them.
func (l *life) many(n int) int { return max(n, n*l.rate/lifeRate) }

// orderKey is the name of a key that no submit without an answer concerns.
func (l *life) orderKey(producer, k int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := fmt.Sprintf("key-%d-%d", producer, k)
	return fmt.Sprintf("%s-%d", name, l.retired[name])
}

// submitter hands tasks in.
type submitter func(ctx context.Context, batch []*lifeTask) ([]yard.Submitted, error)

func (l *life) bySDK(client *yard.Client) submitter {
	return func(ctx context.Context, batch []*lifeTask) ([]yard.Submitted, error) {
		tasks := make([]yard.Task, len(batch))
		for i, o := range batch {
			tasks[i] = o.task()
		}
		return client.SubmitEach(ctx, tasks)
	}
}

// byHand sends a request until there is an answer; now and then it does not wait for it, or repeats what is answered.
func (l *life) byHand(nc *nats.Conn, dice *rand.Rand) submitter {
	return func(ctx context.Context, batch []*lifeTask) ([]yard.Submitted, error) {
		req := &yardv1.SubmitRequest{RequestId: ids.NewRequestID(time.Now()).String()}
		for _, o := range batch {
			req.Tasks = append(req.Tasks, o.wire())
		}
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, o := range batch {
				o.tries = req.Tries
			}
		}()
		hasty, again := dice.IntN(5) == 0, dice.IntN(4) == 0
		first, err := l.untilAnswered(ctx, nc, req, hasty)
		if err != nil || !again {
			return first, err
		}
		if second, err := l.untilAnswered(ctx, nc, req, false); err == nil {
			l.mu.Lock()
			l.repeats++
			l.mu.Unlock()
			for i := range first {
				switch {
				case first[i].Outcome != yard.OutcomeCreated:
					first[i] = second[i] // it is decided again
				case first[i] != second[i]:
					l.offend("task %d of a request was answered with %+v, and its repeat with %+v: unique key %q, on conflict %v", batch[i].n, first[i], second[i], batch[i].unique, batch[i].conflict)
				}
			}
		}
		return first, nil
	}
}

// untilAnswered sends one request. An error with another code than UNKNOWN says that nothing is stored.
func (l *life) untilAnswered(ctx context.Context, nc *nats.Conn, req *yardv1.SubmitRequest, hasty bool) ([]yard.Submitted, error) {
	body := func() []byte {
		req.Tries++
		b, err := codec.Marshal(codec.JSON, req)
		if err != nil {
			panic(err)
		}
		return b
	}
	unsure := false
	for {
		within := handTry
		if hasty {
			within, hasty = hastyTry, false
		}
		try, cancel := context.WithTimeout(ctx, within)
		msg, err := nc.RequestWithContext(try, topology.API(domain, "tasks.submit"), body())
		cancel()
		if ctx.Err() != nil {
			return nil, fault.New(fault.Unknown, "no answer in time")
		}
		switch {
		case errors.Is(err, nats.ErrNoResponders):
		case err != nil:
			unsure = true
		default:
			refused := fault.Decode(msg.Header.Get(fault.HeaderCode), msg.Header.Get(fault.HeaderDescription), msg.Data)
			if refused == nil {
				var answer yardv1.SubmitResponse
				if err := codec.Unmarshal(codec.JSON, msg.Data, &answer); err != nil {
					return nil, err
				}
				all := make([]yard.Submitted, len(answer.Results))
				for i, r := range answer.Results {
					all[i] = yard.Submitted{ID: r.TaskId, Outcome: outcomeNames[r.Outcome]}
				}
				return all, nil
			}
			if unsure = unsure || refused.Code == fault.Unknown; !refused.Code.Retryable() && refused.Code != fault.Unknown {
				if unsure {
					return nil, fault.New(fault.Unknown, "%v", refused)
				}
				return nil, refused
			}
		}
		wait(ctx, handWait)
	}
}

var outcomeNames = map[yardv1.SubmitOutcome]yard.SubmitOutcome{
	yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED: yard.OutcomeCreated, yardv1.SubmitOutcome_SUBMIT_OUTCOME_EXISTING: yard.OutcomeExisting,
	yardv1.SubmitOutcome_SUBMIT_OUTCOME_REJECTED: yard.OutcomeRejected, yardv1.SubmitOutcome_SUBMIT_OUTCOME_REPLACED: yard.OutcomeReplaced,
}

// submit hands a batch in, and notes what became of it.
func (l *life) submit(by submitter, batch []*lifeTask) {
	asked := time.Now()
	l.mu.Lock()
	for _, o := range batch {
		l.made++
		o.n, o.asked, o.fate = l.made, asked, unsure
		l.tasks[o.n] = o
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), submitTimeout)
	defer cancel()
	results, err := by(ctx, batch)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range batch {
		o.answered = time.Now()
		switch code := fault.CodeOf(err); {
		case i < len(results):
			o.fate = accepted
			l.answered(o, results[i])
		case code == fault.Unknown:
			o.fate = unsure
		default:
			o.fate = refused
			if !code.Retryable() && !(o.late && code == fault.FailedPrecondition) {
				l.offences = append(l.offences, fmt.Sprintf("task %d was refused: %v", o.n, err))
			}
		}
		if o.fate != accepted && o.order != "" {
			l.retire(o.order)
		}
	}
}

// retire ends the use of an order key: what is submitted next might be stored before what got no answer.
func (l *life) retire(key string) {
	var producer, k, generation int
	if _, err := fmt.Sscanf(key, "key-%d-%d-%d", &producer, &k, &generation); err != nil {
		panic(err)
	}
	if name := fmt.Sprintf("key-%d-%d", producer, k); l.retired[name] == generation {
		l.retired[name]++
	}
}

// item is what is known of an id.
func (l *life) item(id string) *lifeItem {
	it := l.byID[id]
	if it == nil {
		it = &lifeItem{id: id}
		l.byID[id] = it
	}
	return it
}

// answered notes what an accepted task became: a task, or the input of another one, or nothing.
func (l *life) answered(o *lifeTask, s yard.Submitted) {
	o.id, o.outcome = s.ID, s.Outcome
	it := l.item(s.ID)
	switch s.Outcome {
	case yard.OutcomeCreated:
		if it.task != nil && it.task != o {
			l.offences = append(l.offences, fmt.Sprintf("tasks %d and %d were both answered with %s", it.task.n, o.n, s.ID))
		}
		it.task = o
		it.writes = append(it.writes, &lifeWrite{value: o.input(), asked: o.asked, answered: o.answered, sure: true})
		l.plan(o)
	case yard.OutcomeReplaced:
		it.writes = append(it.writes, &lifeWrite{value: o.input(), asked: o.asked, answered: o.answered, sure: true})
	case yard.OutcomeRejected:
		if o.conflict != yardv1.OnConflict_ON_CONFLICT_REJECT {
			l.offences = append(l.offences, fmt.Sprintf("task %d was rejected, on conflict %v", o.n, o.conflict))
		}
	case yard.OutcomeExisting:
		if o.conflict == yardv1.OnConflict_ON_CONFLICT_REJECT {
			l.offences = append(l.offences, fmt.Sprintf("task %d is said to exist, on conflict %v", o.n, o.conflict))
		}
	default:
		l.offences = append(l.offences, fmt.Sprintf("task %d was answered with %+v", o.n, s))
	}
}
