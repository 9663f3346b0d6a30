package yard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// refuseSubmit refuses the n-th submit, from 0.
func (s *stack) refuseSubmit(n int, e *fault.Error) {
	s.engine.script = func(endpoint string, call int, msg *nats.Msg) bool {
		return endpoint == "tasks.submit" && call == n && s.engine.refuse(msg, e)
	}
}

func waitAnswer(state yardv1.BatchState, tasks int64) *yardv1.WaitBatchResponse {
	return &yardv1.WaitBatchResponse{Batch: &yardv1.Batch{BatchId: "b", State: state, Tasks: tasks}}
}

const open, closed, completed, expired = yardv1.BatchState_BATCH_STATE_OPEN, yardv1.BatchState_BATCH_STATE_CLOSED,
	yardv1.BatchState_BATCH_STATE_COMPLETED, yardv1.BatchState_BATCH_STATE_EXPIRED

// waiter answers batches.wait as the engine does: after the time that is asked for, unless the batch is over before.
type waiter struct {
	s     *stack
	over  time.Time
	waits []time.Duration
}

func waiting(t *testing.T, s *stack, over time.Duration) *waiter {
	t.Helper()
	w := &waiter{s: s, over: time.Now().Add(over)}
	listening(t, s, topology.API("shop", "batches.wait"), func(msg *nats.Msg) any {
		wait := time.Duration(read[yardv1.WaitBatchRequest](s.engine, msg).WaitMs) * time.Millisecond
		w.waits = append(w.waits, wait)
		resp := waitAnswer(closed, 3)
		if left := time.Until(w.over); left <= wait {
			wait, resp = max(left, 0), waitAnswer(completed, 3)
		}
		time.AfterFunc(wait, func() { s.engine.answer(msg.Reply, resp) })
		return nil
	})
	return w
}

func (w *waiter) asked() (waits []time.Duration) {
	w.s.engine.locked(func() { waits = w.waits })
	return waits
}

// A wait goes on while the batch is open or closed, and ends with either of its last states.
func TestAWaitEndsWithTheBatch(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		waits := answering[yardv1.WaitBatchRequest](t, s, topology.API("shop", "batches.wait"),
			waitAnswer(open, 1), waitAnswer(closed, 2), waitAnswer(99, 2), waitAnswer(completed, 3), waitAnswer(expired, 4))
		if info, err := s.client.Batch("b").Wait(soon(t)); err != nil || info.State != yard.BatchCompleted || info.Tasks != 3 || len(waits.requests()) != 4 {
			t.Fatalf("%+v, %v, after %d requests", info, err, len(waits.requests()))
		}
		if info, err := s.client.Batch("b").Wait(soon(t)); err != nil || info.State != yard.BatchExpired || info.Tasks != 4 {
			t.Fatalf("%+v, %v", info, err)
		}
		at := waits.times()
		for i, req := range waits.requests() {
			if req.BatchId != "b" || req.WaitMs != 10_000 {
				t.Errorf("request %d: %v", i, req)
			}
			if i > 0 && i < 4 && at[i].Sub(at[i-1]) < 10*time.Millisecond {
				t.Errorf("request %d came %v after the one before", i, at[i].Sub(at[i-1]))
			}
		}
	})
}

// Without a deadline a wait lasts as long as the batch: the client's timeout is for one request, and not for the wait.
func TestAWaitWithoutADeadlineLastsAsLongAsTheBatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t, yard.WithTimeout(2*time.Second))
		w := waiting(t, s, 45*time.Second)
		began := time.Now()
		info, err := s.client.Batch("b").Wait(context.Background())
		if err != nil || info.State != yard.BatchCompleted {
			t.Fatalf("%+v, %v, after %v", info, err, time.Since(began))
		}
		if took := time.Since(began); took < 45*time.Second || len(w.asked()) != 5 {
			t.Errorf("it took %v and %d requests", took, len(w.asked()))
		}
	})
}

// A deadline that comes before the batch is over is an error, with what is known: never a batch that is not over, and no error.
func TestAWaitThatEndsBeforeItsBatchSaysSo(t *testing.T) {
	for _, deadline := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 105 * time.Millisecond, time.Second, 25 * time.Second} {
		onStack(t, func(t *testing.T, s *stack) {
			w := waiting(t, s, time.Hour)
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			defer cancel()
			began := time.Now()
			info, err := s.client.Batch("b").Wait(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > deadline {
				t.Errorf("%v: %v after %v", deadline, err, time.Since(began))
			}
			if info == nil || info.State != yard.BatchClosed || info.Tasks != 3 {
				t.Errorf("%v: what is known is %+v", deadline, info)
			}
			for _, wait := range w.asked() {
				if wait < time.Millisecond || wait > 10*time.Second || wait > max(deadline-100*time.Millisecond, time.Millisecond) {
					t.Errorf("%v: a request waits %v", deadline, wait)
				}
			}
		})
	}
}

// The caller's end of a wait comes with its cause.
func TestAWaitThatIsGivenUpHasItsCause(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		waits := answering[yardv1.WaitBatchRequest](t, s, topology.API("shop", "batches.wait"), waitAnswer(open, 6))
		ctx, cancel := context.WithCancelCause(context.Background())
		enough := errors.New("enough")
		time.AfterFunc(35*time.Millisecond, func() { cancel(enough) })
		info, err := s.client.Batch("b").Wait(ctx)
		if !errors.Is(err, enough) || info == nil || info.Tasks != 6 {
			t.Errorf("%+v, %v", info, err)
		}
		before := len(waits.requests())
		if info, err = s.client.Batch("b").Wait(ctx); !errors.Is(err, context.Canceled) || info != nil || len(waits.requests()) != before {
			t.Errorf("a wait that has ended: %+v, %v", info, err)
		}
	})
}

// A trouble that passes does not end a wait, however long it lasts; a refusal does, with what was known before.
func TestAWaitOutlastsTrouble(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		unavailable, unknown := fault.New(fault.Unavailable, "no owner"), fault.New(fault.Unknown, "no verdict")
		waits := answering[yardv1.WaitBatchRequest](t, s, topology.API("shop", "batches.wait"), waitAnswer(open, 1),
			unavailable.After(8*time.Second), unknown, unavailable.After(9*time.Second), nil, waitAnswer(closed, 2), fault.New(fault.NotFound, "it is kept no more"))
		began := time.Now()
		info, err := s.client.Batch("b").Wait(context.Background())
		if fault.CodeOf(err) != fault.NotFound || info == nil || info.Tasks != 2 {
			t.Errorf("%+v, %v", info, err)
		}
		if n, took := len(waits.requests()), time.Since(began); n != 7 || took < 17*time.Second {
			t.Errorf("%d requests in %v", n, took)
		}
	})
}

// Where the deadline comes amid trouble, the error tells of that, and what was seen last is returned.
func TestAWaitThatEndsAmidTrouble(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		answering[yardv1.WaitBatchRequest](t, s, topology.API("shop", "batches.wait"), waitAnswer(open, 1), fault.New(fault.Unavailable, "no owner"))
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		info, err := s.client.Batch("b").Wait(ctx)
		if fault.CodeOf(err) != fault.Unavailable || info == nil || info.Tasks != 1 {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// A client that is closed ends its waits.
func TestAClosedClientWaitsNoMore(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		waiting(t, s, time.Hour)
		time.AfterFunc(3*time.Second, s.client.Close)
		if info, err := s.client.Batch("b").Wait(context.Background()); err == nil {
			t.Errorf("%+v", info)
		}
	})
}
