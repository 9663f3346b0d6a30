package yard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// stored is the answer of a submit of n tasks.
func stored(n int) *yardv1.SubmitResponse {
	resp := &yardv1.SubmitResponse{}
	for i := range n {
		resp.Results = append(resp.Results, &yardv1.SubmitResult{TaskId: fmt.Sprintf("task-%d", i)})
	}
	return resp
}

// submitting has answers in the place of the fake engine's for all submits.
func submitting(t *testing.T, s *stack, answers ...any) *endpoint[yardv1.SubmitRequest] {
	t.Helper()
	s.engine.locked(func() {
		s.engine.script = func(endpoint string, _ int, _ *nats.Msg) bool { return endpoint == "tasks.submit" }
	})
	return answering[yardv1.SubmitRequest](t, s, topology.API("shop", "tasks.submit"), answers...)
}

// try is what a request of a submit says of itself.
type try struct {
	// as is the number of the earlier request with this id, or its own.
	as    int
	tries int32
}

func triesOf(all []*yardv1.SubmitRequest) (list []try) {
	first := map[string]int{}
	for i, req := range all {
		if _, ok := first[req.RequestId]; !ok {
			first[req.RequestId] = i
		}
		list = append(list, try{first[req.RequestId], req.Tries})
	}
	return list
}

func withNow(e *fault.Error, at time.Time) *fault.Error {
	e.Detail = map[string]string{fault.DetailNowMs: fmt.Sprint(at.UnixMilli())}
	return e
}

// What each answer does to the next try: the same request again, with one try more, as long as something may be stored;
// a new request wherever it is certain that nothing is.
func TestWhatATryLeavesDecidesTheNext(t *testing.T) {
	unknown := func() any { return fault.New(fault.Unknown, "the log did not say") }
	away := func() any { return fault.New(fault.Unavailable, "no owner") }
	full := func() any { return fault.New(fault.ResourceExhausted, "full") }
	never := func() any {
		return withNow(fault.At(fault.FailedPrecondition, "/request_id", "no try was stored, nor will be"), time.Now())
	}
	old := func() any { return fault.At(fault.FailedPrecondition, "/request_id", "was made long ago") }
	bad := func() any { return fault.At(fault.InvalidArgument, "/tasks/0/type", "is bad") }
	good := func() any { return stored(1) }
	untold := func() any {
		e := fault.New(fault.Unknown, "the task was replaced since")
		e.Detail = map[string]string{fault.DetailFinal: "true"}
		return e
	}
	for name, c := range map[string]struct {
		answers []any
		want    []try
		code    fault.Code
	}{
		"stored at once":                       {[]any{good()}, []try{{0, 1}}, ""},
		"not stored":                           {[]any{away(), full(), good()}, []try{{0, 1}, {1, 1}, {2, 1}}, ""},
		"perhaps stored":                       {[]any{unknown(), unknown(), good()}, []try{{0, 1}, {0, 2}, {0, 3}}, ""},
		"perhaps stored, then away":            {[]any{unknown(), away(), full(), good()}, []try{{0, 1}, {0, 2}, {0, 3}, {0, 4}}, ""},
		"not stored, then perhaps":             {[]any{away(), unknown(), good()}, []try{{0, 1}, {1, 1}, {1, 2}}, ""},
		"never stored":                         {[]any{unknown(), never(), good()}, []try{{0, 1}, {0, 2}, {2, 1}}, ""},
		"never stored, then not":               {[]any{unknown(), never(), away(), good()}, []try{{0, 1}, {0, 2}, {2, 1}, {3, 1}}, ""},
		"never stored, then perhaps":           {[]any{unknown(), never(), unknown(), good()}, []try{{0, 1}, {0, 2}, {2, 1}, {2, 2}}, ""},
		"perhaps stored, and too old to tell":  {[]any{unknown(), old()}, []try{{0, 1}, {0, 2}}, fault.Unknown},
		"never stored, time after time":        {[]any{unknown(), never(), unknown(), never(), unknown(), never(), unknown(), never(), unknown(), never(), good()}, []try{{0, 1}, {0, 2}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {6, 1}, {6, 2}, {8, 1}, {8, 2}, {10, 1}}, ""},
		"never to be known":                    {[]any{untold()}, []try{{0, 1}}, fault.Unknown},
		"perhaps stored, never to be known":    {[]any{unknown(), untold()}, []try{{0, 1}, {0, 2}}, fault.Unknown},
		"refused":                              {[]any{bad()}, []try{{0, 1}}, fault.InvalidArgument},
		"not stored, then refused":             {[]any{away(), bad()}, []try{{0, 1}, {1, 1}}, fault.InvalidArgument},
		"perhaps stored, then refused":         {[]any{unknown(), bad()}, []try{{0, 1}, {0, 2}}, fault.Unknown},
		"never stored, then refused":           {[]any{unknown(), never(), bad()}, []try{{0, 1}, {0, 2}, {2, 1}}, fault.InvalidArgument},
		"an engine that does not know the way": {[]any{fault.New(fault.Internal, "a defect")}, []try{{0, 1}}, fault.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			onStack(t, func(t *testing.T, s *stack) {
				e := submitting(t, s, c.answers...)
				id, err := s.client.Submit(soon(t), one)
				if fault.CodeOf(err) != c.code || (id == "task-0") != (c.code == "") {
					t.Errorf("got %q, %v", id, err)
				}
				if c.code == fault.InvalidArgument && fault.From(err).Path != "/tasks/0/type" {
					t.Errorf("it is refused at %q", fault.From(err).Path)
				}
				if got := triesOf(e.requests()); fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("the tries were %v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestWhatIsFinalIsNotRepeated: an update, or a command about an order key, of which a repeat will not tell more.
func TestWhatIsFinalIsNotRepeated(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		code := string(fault.Unknown)
		updates := answering[yardv1.UpdateRequest](t, s, topology.API("shop", "tasks.update"),
			&yardv1.OutcomeResponse{Verdicts: []*yardv1.Verdict{{Code: code}}}, &yardv1.OutcomeResponse{Verdicts: []*yardv1.Verdict{{Code: code, Final: true}}})
		if _, err := s.client.Update(soon(t), yard.Update{TaskID: "x", Priority: 1}); fault.CodeOf(err) != fault.Unknown || len(updates.requests()) != 2 {
			t.Errorf("%v after %d requests", err, len(updates.requests()))
		}
		if all := updates.requests(); all[0].Tries != 1 || all[1].Tries != 2 || all[0].RequestId != all[1].RequestId {
			t.Errorf("sent %v", all)
		}
		refused := fault.New(fault.Unknown, "too many updates since")
		refused.Detail = map[string]string{fault.DetailFinal: "true"}
		skips := answering[yardv1.SkipKeyRequest](t, s, topology.API("shop", "keys.skip"), refused)
		if _, err := s.client.SkipKey(soon(t), "key", yard.KeyOptions{TaskID: "x"}); fault.CodeOf(err) != fault.Unknown || len(skips.requests()) != 1 {
			t.Errorf("%v after %d requests", err, len(skips.requests()))
		}
	})
}

// The same holds for many in one request.
func TestManyAreRepeatedAsOne(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, fault.New(fault.Unknown, "the log did not say"), stored(3))
		got, err := s.client.SubmitMany(soon(t), numbered("x", 3))
		if err != nil || len(got) != 3 || got[2] != "task-2" {
			t.Fatal(got, err)
		}
		if tries := triesOf(e.requests()); fmt.Sprint(tries) != "[{0 1} {0 2}]" || len(e.requests()[1].Tasks) != 3 {
			t.Errorf("the tries were %v", tries)
		}
	})
}

// A first try waits 5 s for its answer. A repeat waits longer than the engine may need to be certain (8 s).
func TestAFirstTryIsShorterThanARepeat(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, nil, nil, stored(1))
		checktest.NoError(t, checktest.Err(s.client.Submit(soon(t), one)))
		if len(e.times()) != 3 {
			t.Fatalf("%d tries", len(e.times()))
		}
		first, second := e.times()[1].Sub(e.times()[0]), e.times()[2].Sub(e.times()[1])
		if first < 5*time.Second || first > 5500*time.Millisecond || second < 10*time.Second || second > 14*time.Second {
			t.Errorf("the tries lasted %v and %v", first, second)
		}
		if got := triesOf(e.requests()); fmt.Sprint(got) != "[{0 1} {0 2} {0 3}]" {
			t.Errorf("the tries were %v", got)
		}
	})
}

// Without an answer until its time is over a submit is unknown, and says that its context has ended too.
func TestASubmitEndsWithItsContext(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		submitting(t, s, nil)
		for _, limit := range []time.Duration{time.Second, 20 * time.Second} {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			began := time.Now()
			_, err := s.client.Submit(ctx, one)
			cancel()
			if took := time.Since(began); !errors.Is(err, yard.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) || took > limit {
				t.Errorf("%v after %v of %v", err, took, limit)
			}
		}
		began := time.Now()
		if _, err := s.client.SubmitMany(context.Background(), numbered("x", 2)); !errors.Is(err, yard.ErrUnknown) || time.Since(began) > 10*time.Second {
			t.Errorf("by default it ends after %v: %v", time.Since(began), err)
		}
	})
}

// The engine says how long to wait; a submit whose time would be over by then says at once what is known.
func TestASubmitWaitsAsTheEngineAsks(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, fault.New(fault.ResourceExhausted, "full").After(6*time.Second), stored(1))
		checktest.NoError(t, checktest.Err(s.client.Submit(soon(t), one)))
		if wait := e.times()[1].Sub(e.times()[0]); wait < 6*time.Second || wait > 9100*time.Millisecond {
			t.Errorf("it was repeated after %v", wait)
		}
		s = newStack(t)
		e = submitting(t, s, fault.New(fault.ResourceExhausted, "full").After(time.Hour))
		began := time.Now()
		if _, err := s.client.Submit(soon(t), one); !errors.Is(err, yard.ErrResourceExhausted) || len(e.requests()) != 1 || time.Since(began) > time.Second {
			t.Errorf("%v after %v and %d tries", err, time.Since(began), len(e.requests()))
		}
	})
}

// A refusal of the clock is heeded at once, three times and no more; one that tells no time, or comes when something may
// be stored, is reported.
func TestAClockIsCorrectedAtOnce(t *testing.T) {
	off := func(by time.Duration) *fault.Error {
		return withNow(fault.At(fault.InvalidTime, "/request_id", "its time is off"), time.Now().Add(by))
	}
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, off(-time.Hour), stored(1))
		if _, err := s.client.Submit(soon(t), one); err != nil || len(e.times()) != 2 || e.times()[1] != e.times()[0] {
			t.Fatal(err, e.times())
		}
		for i, want := range []time.Duration{0, time.Hour} {
			if id, err := ids.ParseRequestID(e.requests()[i].RequestId); err != nil || time.Since(id.Time()).Round(time.Minute) != want {
				t.Errorf("request %d is of %v ago: %v", i, time.Since(id.Time()), err)
			}
		}
	})
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, off(time.Minute))
		if _, err := s.client.Submit(soon(t), one); fault.CodeOf(err) != fault.InvalidTime || len(e.requests()) != 4 {
			t.Errorf("%v after %d tries", err, len(e.requests()))
		}
		if got := triesOf(e.requests()); fmt.Sprint(got) != "[{0 1} {1 1} {2 1} {3 1}]" {
			t.Errorf("the tries were %v", got)
		}
	})
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, fault.At(fault.InvalidTime, "/request_id", "its time is off"))
		if _, err := s.client.Submit(soon(t), one); fault.CodeOf(err) != fault.InvalidTime || len(e.requests()) != 1 {
			t.Errorf("without a time: %v after %d tries", err, len(e.requests()))
		}
	})
}

// Every answer may tell that the clock is off, and the next request heeds it.
func TestAnAnswerTellsTheTime(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		first := stored(1)
		first.NowMs = time.Now().Add(-2 * time.Hour).UnixMilli()
		e := submitting(t, s, first, stored(1), stored(1))
		for range 3 {
			checktest.NoError(t, checktest.Err(s.client.Submit(soon(t), one)))
		}
		for i, want := range []time.Duration{0, 2 * time.Hour, 2 * time.Hour} { // no time is no news
			if id, err := ids.ParseRequestID(e.requests()[i].RequestId); err != nil || time.Since(id.Time()).Round(time.Minute) != want {
				t.Errorf("request %d is of %v ago: %v", i, time.Since(id.Time()), err)
			}
		}
	})
}

// An answer that is not of as many tasks as were sent is no answer to believe in.
func TestAnAnswerHasAResultForEachTask(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		submitting(t, s, stored(2))
		checktest.Code(t, "one task", checktest.Err(s.client.Submit(soon(t), one)), fault.Internal)
		if got, err := s.client.SubmitMany(soon(t), numbered("x", 3)); fault.CodeOf(err) != fault.Internal || len(got) != 0 {
			t.Errorf("three tasks: %v %v", got, err)
		}
	})
}

// A task too large to gain by company goes alone, and holds up no one.
func TestALargeTaskGoesAlone(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, nil, stored(1))
		large := yard.Task{Type: "x", Tasklist: "mail", Payload: strings.Repeat("x", 40<<10)}
		var all sync.WaitGroup
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
			defer cancel()
			if _, err := s.client.Submit(ctx, large); !errors.Is(err, yard.ErrUnknown) {
				t.Errorf("the large one: %v", err)
			}
		})
		time.Sleep(time.Millisecond)
		synctest.Wait()
		began := time.Now()
		if _, err := s.client.Submit(soon(t), one); err != nil || time.Since(began) > 15*time.Millisecond {
			t.Errorf("the small one waited %v: %v", time.Since(began), err)
		}
		all.Wait()
		if len(e.requests()[0].Tasks) != 1 || len(e.requests()[0].Tasks[0].Payload.Data) < 40<<10 {
			t.Errorf("the first request has %d tasks", len(e.requests()[0].Tasks))
		}
	})
}

// The next group leaves 20 ms after one that has no answer yet, not sooner, and takes all that waits along.
func TestAGroupWaitsForTheOneBefore(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, nil, stored(5))
		var all sync.WaitGroup
		submit := func() {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
				defer cancel()
				_, _ = s.client.Submit(ctx, one) // the first one has no answer
			})
		}
		submit()
		time.Sleep(5 * time.Millisecond)
		for range 5 {
			submit()
		}
		all.Wait()
		if len(e.requests()) != 2 || len(e.requests()[0].Tasks) != 1 || len(e.requests()[1].Tasks) != 5 {
			t.Fatalf("%d requests", len(e.requests()))
		}
		checktest.Equal(t, "the second group left after", e.times()[1].Sub(e.times()[0]), 20*time.Millisecond)
	})
}

// Who gives up before the task is sent learns that it is not stored, and it is not sent later.
func TestATaskThatWasNotSentIsNotStored(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, nil, stored(1))
		var all sync.WaitGroup
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, _ = s.client.Submit(ctx, one)
		})
		time.Sleep(time.Millisecond)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		if _, err := s.client.Submit(ctx, one); !errors.Is(err, yard.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		all.Wait()
		if len(e.requests()) != 1 {
			t.Errorf("%d requests were sent", len(e.requests()))
		}
	})
}

// Where a caller gives up between two tries, what the last one said is what is known.
func TestACallerThatGivesUpIsToldTheLastRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		answer *fault.Error
		code   fault.Code
	}{
		"nothing is stored": {fault.New(fault.ResourceExhausted, "full").After(10 * time.Second), fault.ResourceExhausted},
		"perhaps it is":     {fault.New(fault.Unknown, "who knows").After(10 * time.Second), fault.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			onStack(t, func(t *testing.T, s *stack) {
				submitting(t, s, c.answer)
				ctx, cancel := context.WithCancel(soon(t))
				time.AfterFunc(2*time.Second, cancel)
				if _, err := s.client.Submit(ctx, one); fault.CodeOf(err) != c.code || !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				time.Sleep(within) // its request goes on until the deadline that it had
			})
		})
	}
}

// A connection that is closed for good ends the repeats.
func TestAClosedClientRepeatsNothing(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		e := submitting(t, s, fault.New(fault.Unavailable, "no owner").After(time.Second))
		got := make(chan error, 1)
		go func() {
			_, err := s.client.SubmitMany(soon(t), numbered("x", 2))
			got <- err
		}()
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		s.client.Close()
		if err := <-got; !errors.Is(err, yard.ErrUnavailable) || time.Since(began) > 2*time.Second || len(e.requests()) != 1 {
			t.Errorf("%v after %v and %d tries", err, time.Since(began), len(e.requests()))
		}
	})
}
