package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestTokenRoundTrip(t *testing.T) {
	for _, spans := range []bool{false, true} {
		want := token{partition: 1023, at: time.UnixMilli(1_800_000_000_000), seed: 1<<63 + 5, tasks: 1000, message: newMessageID(), spans: spans}
		printed := want.print(rigTokens, "shop")
		got, err := parseToken(rigTokens, "shop", printed)
		if err != nil || *got != want {
			t.Fatalf("got %+v, %v", got, err)
		}
		for _, s := range []string{"x", printed[1:], printed + "A", "B" + printed[1:], "!" + printed[1:]} {
			if e := wantCode(t, second(parseToken(rigTokens, "shop", s)), fault.InvalidArgument); e.Path != "/retry_token" {
				t.Errorf("%q: path %q", s, e.Path)
			}
		}
	}
}

// Frontends from before take a duplicate of a spanning request's message for its own, so they must not read
// its token.
func TestTheTokenOfASpanningRequestHasAVersionOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrOutcomeUnknown }
		for other, want := range map[string]byte{"main": tokenVersion, "other": tokenVersionSpans} {
			req := tasks(2)
			req.Tasks[1].Tasklist = other
			e := wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
			raw, err := base64.RawURLEncoding.DecodeString(e.Detail[fault.DetailRetryToken])
			if err != nil || raw[0] != want {
				t.Errorf("beside %s: version %d, %v", other, raw[0], err)
			}
		}
	})
}

// A token of a version that this frontend does not know is refused, though a frontend of its cluster printed it: what it
// says may mean something else.
func TestATokenOfAnotherVersionIsRefused(t *testing.T) {
	given := token{partition: 1, at: time.UnixMilli(1_800_000_000_000), seed: 5, tasks: 1, message: newMessageID()}
	raw, err := base64.RawURLEncoding.DecodeString(given.print(rigTokens, "shop"))
	if err != nil {
		t.Fatal(err)
	}
	for version := range 256 {
		raw[0] = byte(version)
		seal := rigTokens.Seal("shop", raw[:tokenBytes])
		_, err := parseToken(rigTokens, "shop", base64.RawURLEncoding.EncodeToString(append(raw[:tokenBytes:tokenBytes], seal[:]...)))
		if version == tokenVersion || version == tokenVersionSpans {
			if err != nil {
				t.Errorf("version %d: %v", version, err)
			}
			continue
		}
		wantCode(t, err, fault.InvalidArgument)
	}
}

// A token that nobody was given, or another domain, is refused: it names the ids of the
// tasks, which may be those of another domain's.
func TestAMadeUpTokenIsRefused(t *testing.T) {
	given := token{partition: 1, at: time.UnixMilli(1_800_000_000_000), seed: 5, tasks: 1, message: newMessageID()}
	printed := given.print(rigTokens, "shop")
	wantCode(t, second(parseToken(rigTokens, "other", printed)), fault.InvalidArgument)
	wantCode(t, second(parseToken(ids.NewTokens([ids.TokenSecretBytes]byte{2}), "shop", printed)), fault.InvalidArgument)
	raw, err := base64.RawURLEncoding.DecodeString(printed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(raw) {
		made := bytes.Clone(raw)
		made[i/8] ^= 1 << (i % 8)
		wantCode(t, second(parseToken(rigTokens, "shop", base64.RawURLEncoding.EncodeToString(made))), fault.InvalidArgument)
	}
}

// The log recognises a message for DedupeWindow, and the archive may have forgotten a task by then: a
// repeat that came in time and then waited for an owner must not be appended after that, or a task
// that has finished would run again.
func TestARepeatEndsBeforeTheLogForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away, late atomic.Bool
		r := newRig(t, func(d *Deps) {
			get := d.Owners.HistoryGet
			d.Owners.HistoryGet = func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if away.Load() {
					return nil, fault.New(fault.Unavailable, "nobody is there")
				}
				return get(ctx, p, req)
			}
		}).running(t)
		began := time.Now()
		r.log.fault = func(int, natslog.Msg) (bool, error) { return true, natslog.ErrOutcomeUnknown }
		req := tasks(1)
		e := wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
		r.log.mu.Lock()
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if time.Since(began) >= topology.DedupeWindow {
				late.Store(true)
			}
			return true, nil
		}
		r.log.mu.Unlock()
		away.Store(true)
		time.Sleep(time.Until(began.Add(repeatMax - time.Second)))
		req.RetryToken = e.Detail[fault.DetailRetryToken]
		answer, got := r.answers(t)
		c := r.call()
		c.Deadline = c.Now.Add(DeadlineMax)
		r.Submit(c, req, answer)
		time.Sleep(time.Until(began.Add(topology.DedupeWindow + time.Second)))
		away.Store(false)
		if o := <-got; late.Load() {
			t.Errorf("it was appended when the log had forgotten the first try, and answered %v, %v", o.resp, o.err)
		} else {
			wantCode(t, o.err, fault.Unknown)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestTokenIsRefusedWhereItDoesNotBelong(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	good := token{partition: 1, at: now, tasks: 3, message: newMessageID()}
	if err := good.check(2, 3, now.Add(repeatMax)); err != nil {
		t.Errorf("a good token: %v", err)
	}
	wantCode(t, good.check(1, 3, now), fault.InvalidArgument)
	wantCode(t, good.check(2, 4, now), fault.InvalidArgument)
	if e := wantCode(t, good.check(2, 3, now.Add(repeatMax+1)), fault.FailedPrecondition); e.Detail["task_id"] == "" {
		t.Error("an expired token does not tell what to look for")
	}
}

// unknownThen submits n tasks whose append gets lost, stored or not, and repeats
// them by token once the log answers again.
func unknownThen(t *testing.T, r *rig, n int, stored bool) (repeat func() []string) {
	t.Helper()
	r.log.fault = func(int, natslog.Msg) (bool, error) { return stored, natslog.ErrOutcomeUnknown }
	req := tasks(n)
	e := wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
	r.log.fault = nil
	req.RetryToken = e.Detail[fault.DetailRetryToken]
	return func() []string { return accepted(t, <-r.submit(t, req)) }
}

func TestRepeatByTokenStoresOnce(t *testing.T) {
	for _, stored := range []bool{true, false} {
		t.Run(fmt.Sprintf("stored=%v", stored), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).running(t)
				repeat := unknownThen(t, r, 3, stored)
				first, again := repeat(), repeat()
				found := r.log.tasks(t)
				if len(found) != 3 {
					t.Errorf("stored %v", found)
				}
				for i := range first {
					if first[i] != again[i] || found[first[i]] != 1 {
						t.Errorf("task %d: %s and %s, stored %d times", i, first[i], again[i], found[first[i]])
					}
				}
			})
		})
	}
}

// What was stored, finished and forgotten by the log is known to the owners.
func TestRepeatByTokenBelievesTheOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		r := newRig(t, func(d *Deps) {
			d.Owners.HistoryGet = func(_ context.Context, _ int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if !back.Load() {
					return nil, fault.New(fault.Unavailable, "nobody")
				}
				id, err := ids.TaskIDFromBytes(req.TaskId)
				return &rpcv1.GetTaskResponse{Task: &yardv1.Task{TaskId: id.String()}}, err
			}
		}).running(t)
		repeat := unknownThen(t, r, 2, false) // as if purged
		time.AfterFunc(3*time.Second, func() { back.Store(true) })
		repeat()
		if n := r.log.messages(); n != 0 {
			t.Errorf("%d messages: what is known was stored again", n)
		}
	})
}

// While the owners cannot be asked, a repeat stays unknown, with the same token.
func TestRepeatByTokenStaysUnknownWithoutOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) {
			d.Owners.TimerGet = func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				return nil, fault.New(fault.Unavailable, "nobody")
			}
		}).running(t)
		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrOutcomeUnknown }
		req := tasks(1)
		e := wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
		r.log.fault = nil
		req.RetryToken = e.Detail[fault.DetailRetryToken]
		e = wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
		if e.Detail[fault.DetailRetryToken] != req.RetryToken || r.log.messages() != 0 {
			t.Errorf("token %q, %d messages", e.Detail[fault.DetailRetryToken], r.log.messages())
		}
	})
}

// Two requests share a message that is not stored. The repeat of the first takes
// the message's id; the frontend that still repeats the message for the second
// must not take that for its own success. (Found by the test below.)
func TestARepeatDoesNotAnswerForThoseItWasMergedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(d *Deps) { d.Partitioning.History = 1 }).running(t)
		r.log.gate = make(chan struct{})
		plug := r.submit(t, tasks(1))
		synctest.Wait() // its flush is under way, so that what comes next is merged
		var healed atomic.Bool
		r.log.fault = func(_ int, m natslog.Msg) (bool, error) {
			if plug := len(decode(t, m.Data).Tasks) == 1; !plug && !healed.Load() {
				return false, natslog.ErrOutcomeUnknown
			}
			return true, nil
		}
		first, second := tasks(2), tasks(3)
		answer, got := r.answers(t)
		hasty := r.call()
		hasty.Deadline = hasty.Received.Add(time.Second)
		r.Submit(hasty, first, answer)
		patient := r.submit(t, second)
		close(r.log.gate)
		accepted(t, <-plug)
		first.RetryToken = wantCode(t, (<-got).err, fault.Unknown).Detail[fault.DetailRetryToken]
		healed.Store(true)
		want := append(accepted(t, <-r.submit(t, first)), accepted(t, <-patient)...)
		found := r.log.tasks(t)
		for _, id := range want {
			if found[id] != 1 {
				t.Errorf("task %s is stored %d times", id, found[id])
			}
		}
		if len(found) != 1+len(want) {
			t.Errorf("%d tasks are stored", len(found))
		}
	})
}

// TestI1_NothingIsLostOrDoubled drives two frontends on one log that stores or
// not and acknowledges or not as it likes. Requests are merged, and repeated by
// token at either frontend until accepted. In the end every accepted task is in
// the log exactly once, and nothing else is there twice.
func TestI1_NothingIsLostOrDoubled(t *testing.T) {
	rounds := 40
	random := testkit.Seed(t)
	for range rounds {
		seed := random.Uint64()
		synctest.Test(t, func(t *testing.T) { loseAndRepeat(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func loseAndRepeat(t *testing.T, random *rand.Rand) {
	a := newRig(t).running(t)
	b := newRig(t, func(d *Deps) { d.History = a.log }).running(t)
	frontends := []*rig{a, b}
	a.log.fault = func(int, natslog.Msg) (bool, error) { // a.log.mu is held
		switch random.IntN(8) {
		case 0, 1, 2:
			return true, natslog.ErrOutcomeUnknown
		case 3, 4, 5:
			return false, natslog.ErrOutcomeUnknown
		case 6:
			return false, natslog.ErrNotStored
		}
		return true, nil
	}
	choose := func(n int) int {
		a.log.mu.Lock()
		defer a.log.mu.Unlock()
		return random.IntN(n)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	want := map[string]bool{} // marks of accepted tasks
	for n := range 20 {
		all.Go(func() {
			req := markedTasks(n, choose)
			if !insistent(t, frontends, req, choose) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, task := range req.Tasks {
				want[string(task.Payload.Data)] = true
			}
		})
	}
	all.Wait()
	if len(want) == 0 {
		t.Error("nothing was accepted")
	}
	found := map[string]int{}
	for _, msgs := range a.log.partitions {
		for _, m := range msgs {
			for _, rec := range decode(t, m.Data).Tasks {
				found[string(rec.Payload)]++
			}
		}
	}
	for mark := range want {
		if found[mark] == 0 {
			t.Errorf("task %s was accepted and is lost", mark)
		}
	}
	for mark, n := range found {
		if n > 1 {
			t.Errorf("task %s is stored %d times", mark, n)
		}
	}
}

// markedTasks is a request whose payloads tell each task from all others.
func markedTasks(n int, choose func(int) int) *yardv1.SubmitRequest {
	req := tasks(1 + choose(3))
	if choose(4) == 0 {
		req.Tasks = append(req.Tasks, &yardv1.NewTask{Type: "x", Tasklist: "other"})
	}
	for i, task := range req.Tasks {
		task.Payload = &yardv1.Payload{Data: fmt.Appendf(nil, `"%d-%d"`, n, i)}
	}
	return req
}

// insistent submits req at any frontend, with a deadline that is often too short,
// and repeats it as its answers ask. It tells whether it was accepted.
func insistent(t *testing.T, frontends []*rig, req *yardv1.SubmitRequest, choose func(int) int) bool {
	for range 30 {
		r := frontends[choose(len(frontends))]
		got := make(chan outcome, 1)
		c := r.call()
		c.Deadline = c.Received.Add(time.Duration(1+choose(400)) * time.Millisecond)
		r.Submit(c, req, func(resp codec.Message, err error) { got <- outcome{resp: resp, err: err} })
		o := <-got
		switch fault.CodeOf(o.err) {
		case "":
			return true
		case fault.Unknown:
			req.RetryToken = fault.From(o.err).Detail[fault.DetailRetryToken]
		case fault.Unavailable:
		default:
			t.Errorf("got %v", o.err)
			return false
		}
	}
	return false
}

// The bounds of decision 0005: what a token names was sent before the token ends,
// and is recognised for longer than that.
func TestTheBoundsOfTokensFit(t *testing.T) {
	if DeadlineMax >= repeatMax || repeatMax >= topology.DedupeWindow {
		t.Errorf("deadline %v, token %v, dedupe window %v", DeadlineMax, repeatMax, topology.DedupeWindow)
	}
	if DefaultConfig().RequestTimeout > DeadlineMax {
		t.Error("the default deadline is out of bounds")
	}
}

// forgets makes the log purge what it holds.
func (l *memLog) forgets() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgotten = true
}

// What was stored by a try of unknown outcome, carried out and forgotten before the repeat, is not stored again: the
// outcome stays unknown, and the owners know.
func TestI1_WhatTheLogHasForgottenIsNotStoredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).running(t)
		n := 0
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if n++; n == 1 {
				return true, natslog.ErrOutcomeUnknown
			}
			return true, nil
		}
		got := r.submit(t, tasks(1))
		synctest.Wait()
		r.log.forgets()
		wantCode(t, (<-got).err, fault.Unknown)
		if stored := r.log.messages(); stored != 1 {
			t.Errorf("%d messages", stored)
		}
	})
}

// So it is with a repeat by token, where the task is finished and forgotten between the question to the owners and the append.
func TestI1_ARepeatAsksAgainForWhatTheLogHasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var known atomic.Bool
		r := newRig(t, func(d *Deps) {
			d.Owners.HistoryGet = func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
				if !known.Load() {
					return &rpcv1.GetTaskResponse{}, nil
				}
				return &rpcv1.GetTaskResponse{Task: &yardv1.Task{}}, nil
			}
		}).running(t)
		repeat := unknownThen(t, r, 1, true)
		r.log.forgets()
		r.log.fault = func(int, natslog.Msg) (bool, error) { // the append, after the first question
			known.Store(true)
			return true, nil
		}
		repeat()
		if stored := r.log.messages(); stored != 1 {
			t.Errorf("%d messages", stored)
		}
	})
}
