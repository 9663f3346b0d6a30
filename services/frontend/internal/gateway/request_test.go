package gateway

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
)

// knowing lets the owners know the tasks that count in r's log.
func knowing(log func() *memLog) func(*Deps) {
	return func(d *Deps) {
		d.Owners.HistoryGet = func(_ context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
			id, err := ids.TaskIDFromBytes(req.TaskId)
			if err != nil || log().counting()[p][id] == 0 {
				return &rpcv1.GetTaskResponse{}, err
			}
			return &rpcv1.GetTaskResponse{Task: &yardv1.Task{TaskId: id.String()}}, nil
		}
	}
}

// counting are the tasks in the log that are not void, by partition, with how often each is there.
func (l *memLog) counting() []map[ids.TaskID]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]map[ids.TaskID]int, len(l.partitions))
	for p, msgs := range l.partitions {
		all[p] = map[ids.TaskID]int{}
		for i, m := range submits(msgs) {
			for _, r := range batchOf(m.Data).Tasks {
				id := ids.TaskID(r.Id)
				if r.WithinMs == 0 || l.storedAt[p][i].Sub(id.Time()) <= time.Duration(r.WithinMs)*time.Millisecond {
					all[p][id]++
				}
			}
		}
	}
	return all
}

// withID gives a request an id of now; counted requests say that this is their first try.
func withID(req *yardv1.SubmitRequest, counted bool) *yardv1.SubmitRequest {
	req.RequestId = ids.NewRequestID(time.Now()).String()
	if counted {
		req.Tries = 1
	}
	return req
}

func newKnowingRig(t *testing.T, change ...func(*Deps)) *rig {
	var r *rig
	r = newRig(t, append([]func(*Deps){knowing(func() *memLog { return r.log })}, change...)...)
	return r.running(t)
}

// onKnowing runs a test in a bubble, on a newKnowingRig of its own.
func onKnowing(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newKnowingRig(t)) })
}

// wantOnce checks that so many tasks are stored, each once.
func wantOnce(t *testing.T, l *memLog, want []string) {
	t.Helper()
	found := map[string]int{}
	for _, of := range l.counting() {
		for id, n := range of {
			found[id.String()] += n
		}
	}
	for _, id := range want {
		if found[id] != 1 {
			t.Errorf("task %s is stored %d times", id, found[id])
		}
	}
	testkit.Equal(t, "tasks are stored", len(found), len(want))
}

func equalIDs(t *testing.T, got, want []string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("answered %v, and before %v", got, want)
	}
}

// A repeat is answered as the first time, whatever its age, no matter who counts, and at another frontend.
func TestI1_ARepeatIsAnsweredAsTheFirstTime(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 5 * time.Second, time.Minute, 119 * time.Second, 5 * time.Minute, tries.RepeatMax} {
		for _, counted := range []bool{true, false} {
			inBubble(t, fmt.Sprintf("%v counted=%v", after, counted), func(t *testing.T) {
				a := newKnowingRig(t)
				b := newKnowingRig(t, func(d *Deps) { d.History = a.log })
				b.log = a.log
				req := withID(tasks(3), counted)
				req.Tasks[0].RunAtMs = time.Now().Add(time.Second).UnixMilli() // long past when it is repeated
				first := accepted(t, <-a.submit(t, req))
				time.Sleep(after)
				if counted {
					req.Tries++
				}
				equalIDs(t, accepted(t, <-b.submit(t, req)), first)
				wantOnce(t, a.log, first)
			})
		}
	}
}

// The answer is lost, the log has stored it or not.
func TestI1_ARepeatOfWhatGotNoAnswerStoresOnce(t *testing.T) {
	for _, stored := range []bool{true, false} {
		for _, counted := range []bool{true, false} {
			inBubble(t, fmt.Sprintf("stored=%v counted=%v", stored, counted), func(t *testing.T) {
				r := newKnowingRig(t)
				r.log.fault = func(int, natslog.Msg) (bool, error) { return stored, natslog.ErrOutcomeUnknown }
				req := withID(tasks(3), counted)
				wantCode(t, (<-r.submitBy(t, req, time.Second, 0)).err, fault.Unknown)
				r.log.heals()
				if counted {
					req.Tries++
				}
				wantOnce(t, r.log, accepted(t, <-r.submit(t, req)))
			})
		}
	}
}

// A first try that another frontend holds may be stored while a repeat is answered. It counts only if the repeat could
// find it.
func TestI1_AFirstTryThatComesLateIsVoid(t *testing.T) {
	for _, late := range []time.Duration{0, 2 * time.Second, tries.AliveFor, tries.AliveFor + time.Millisecond, 30 * time.Second} {
		inBubble(t, late.String(), func(t *testing.T) {
			r := newKnowingRig(t)
			began := time.Now()
			var held *natslog.Msg
			r.log.fault = func(p int, m natslog.Msg) (bool, error) {
				if held == nil {
					held = &m
					time.AfterFunc(late, func() {
						r.log.mu.Lock()
						defer r.log.mu.Unlock()
						r.log.store(p, m)
					})
				}
				return false, natslog.ErrOutcomeUnknown
			}
			req := withID(tasks(2), true)
			wantCode(t, (<-r.submitBy(t, req, time.Second, 0)).err, fault.Unknown)
			r.log.heals()
			req.Tries++
			// By a frontend whose clock is ahead of the log's: there the first try seems to be void.
			time.Sleep(time.Until(began.Add(tries.AliveFor - tries.ClocksApart + 2*time.Millisecond)))
			ids := accepted(t, <-r.submitBy(t, req, DeadlineMax, tries.ClocksApart-time.Millisecond))
			time.Sleep(time.Until(began.Add(time.Minute)))
			wantOnce(t, r.log, ids)
		})
	}
}

// What the log has acknowledged too late is not stored, and its client hears so.
func TestI1_WhatTheLogTookTooLateIsRefused(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		ready := time.Now().Add(tries.AliveFor + time.Millisecond)
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if time.Now().Before(ready) {
				return false, natslog.ErrOutcomeUnknown
			}
			return true, nil
		}
		unnamed := r.submit(t, tasks(1))
		// By a frontend whose clock is behind the log's.
		wantCode(t, (<-r.submitBy(t, withID(tasks(1), true), DeadlineMax, time.Millisecond-tries.ClocksApart)).err, fault.Unavailable)
		wantOnce(t, r.log, accepted(t, <-unnamed)) // which no one can repeat
	})
}

// One that was stored in time and is acknowledged late is stored.
func TestI1_ALateAcknowledgementIsLookedInto(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		ready := time.Now().Add(tries.AliveFor + time.Second)
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if time.Now().Before(ready) {
				return true, natslog.ErrOutcomeUnknown
			}
			return true, nil
		}
		ids := accepted(t, <-r.submit(t, withID(tasks(1), true)))
		wantOnce(t, r.log, ids)
	})
}

// A try that goes alone and is stored too late is void, however well it is acknowledged.
func TestI1_ALoneTryThatTheLogTookTooLateIsNotStored(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if len(r.log.tries) == 1 {
				time.Sleep(tries.TryAliveFor + time.Second)
			}
			return true, nil
		}
		wantCode(t, (<-r.submitBy(t, withID(tasks(1), false), DeadlineMax, 0)).err, fault.Unknown)
		wantOnce(t, r.log, nil)
	})
}

func TestAMalformedRequestIDIsRefused(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		for path, req := range map[string]*yardv1.SubmitRequest{
			"/request_id": {RequestId: "x", Tries: 1},
			"/tries":      {Tries: 1},
		} {
			req.Tasklist, req.Tasks = "main", tasks(1).Tasks
			wantAt(t, (<-r.submit(t, req)).err, fault.InvalidArgument, path)
		}
		req := withID(tasks(1), false)
		req.Tries = -1
		wantAt(t, (<-r.submit(t, req)).err, fault.InvalidArgument, "/tries")
		testkit.Equal(t, "messages", r.log.messages(), 0)
	})
}

// The same id in another domain, or with another number of tasks, is another request.
func TestARequestIDIsOfItsDomain(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		req := withID(tasks(1), false)
		first := accepted(t, <-r.submit(t, req))
		other := accepted(t, <-r.submitAs(t, "other", req))
		req.Tasks = append(req.Tasks, req.Tasks[0])
		more := accepted(t, <-r.submit(t, req))
		wantOnce(t, r.log, append(append(first, other...), more...))
	})
}

// A full log refuses at once, as it does without an id.
func TestAFullLogRefusesATryThatGoesAlone(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			return false, fmt.Errorf("%w: %w", natslog.ErrNotStored, natslog.ErrFull)
		}
		began := time.Now()
		wantCode(t, (<-r.submit(t, withID(tasks(1), false))).err, fault.ResourceExhausted)
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("after %v", d)
		}
	})
}

// A log that is full by now says nothing of the try before, which may be on its way.
func TestI1_AFullLogDoesNotSettleAnEarlierTry(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		tried := false
		r.log.fault = func(int, natslog.Msg) (bool, error) {
			if !tried {
				tried = true
				return false, natslog.ErrOutcomeUnknown
			}
			return false, fmt.Errorf("%w: %w", natslog.ErrNotStored, natslog.ErrFull)
		}
		wantCode(t, (<-r.submit(t, withID(tasks(1), false))).err, fault.Unknown)
	})
}

// What is not found while an owner is away may be with that owner.
func TestI1_WhatIsNotLookedForEverywhereIsNotStored(t *testing.T) {
	for away := range rigPartitions {
		for _, age := range []time.Duration{0, tries.AliveFor + 2*tries.ClocksApart} {
			synctest.Test(t, func(t *testing.T) {
				r := newKnowingRig(t, func(d *Deps) {
					get := d.Owners.HistoryGet
					d.Owners.HistoryGet = func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error) {
						if p == away {
							return nil, fault.New(fault.Unavailable, "away")
						}
						return get(ctx, p, req)
					}
				})
				req := withID(tasks(1), true)
				req.Tries = 2
				time.Sleep(age)
				wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
				time.Sleep(time.Minute)
				wantOnce(t, r.log, nil)
			})
		}
	}
}

// A first try that no partition takes is given up before it would be void.
func TestAFirstTryIsGivenUpInTime(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.log.fault = func(int, natslog.Msg) (bool, error) { return false, natslog.ErrNotStored }
		began := time.Now()
		wantCode(t, (<-r.submit(t, withID(tasks(1), true))).err, fault.Unavailable)
		if d := time.Since(began); d > tries.AliveFor-tries.ClocksApart {
			t.Errorf("after %v", d)
		}
	})
}

// Once a try that goes alone has been stored, carried out and forgotten, and the server has started again, the log does
// not know its id any more. So each such try counts only for a while after it has looked.
func TestI1_ATryThatGoesAloneCountsForAWhile(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		for _, age := range []time.Duration{0, 10 * time.Second, tries.AppendUntil} {
			req := withID(tasks(1), false)
			time.Sleep(age)
			accepted(t, <-r.submit(t, req))
			last := r.log.tries[len(r.log.tries)-1]
			testkit.Equal(t, fmt.Sprintf("at %v it may be taken until ms", age), batchOf(last.Data).Tasks[0].WithinMs, (age + tries.TryAliveFor).Milliseconds())
		}
	})
}

// The bounds of decision 0023.
func TestTheBoundsOfRequestsFit(t *testing.T) {
	for name, fits := range map[string]bool{
		"what is fresh is sent":                           tries.FreshFor < tries.SendUntil,
		"what is sent is mostly taken in time":            tries.SendUntil+tries.ClocksApart <= tries.AliveFor,
		"the log knows an id while a message may come":    tries.LastAlive+2*tries.ClocksApart < topology.DedupeWindow,
		"a first try is void before a repeat is stored":   tries.AliveFor+tries.ClocksApart < tries.AppendUntil,
		"a try that is sent may be taken":                 tries.AppendUntil < tries.LastAlive,
		"an append ends before its message may not come":  DefaultConfig().AppendTimeout+tries.ClocksApart < tries.TryAliveFor,
		"the default deadline is in bounds":               DefaultConfig().RequestTimeout <= DeadlineMax,
		"a repeat is decided by the default deadline":     tries.AliveFor+tries.ClocksApart < DefaultConfig().RequestTimeout,
		"without an id a message is known while repeated": DeadlineMax < topology.SubmitLatest,
		"finished tasks are kept while a repeat looks":    tries.RepeatMax < topology.RetentionMin,
	} {
		if !fits {
			t.Error("not so: " + name)
		}
	}
}

// forgets makes the log purge what it holds.
func (l *memLog) forgets() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgotten = true
}

// What was stored by a try of unknown outcome, carried out and forgotten before it is repeated, is not stored again.
func TestI1_WhatTheLogHasForgottenIsNotStoredAgain(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		r.log.fault = func(int, natslog.Msg) (bool, error) { return true, natslog.ErrOutcomeUnknown }
		req := withID(tasks(1), true)
		wantCode(t, (<-r.submit(t, req)).err, fault.Unknown)
		r.log.forgets()
		r.log.heals()
		req.Tries++
		wantOnce(t, r.log, accepted(t, <-r.submit(t, req)))
	})
}
