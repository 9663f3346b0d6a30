package gateway

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
)

// TestAnUpdateSaysSinceWhenCopiesMayBeInTheLog: one whose name no one else knows is alone until it is sent again; one with a request id may be a repeat since the time in
// that.
func TestAnUpdateSaysSinceWhenCopiesMayBeInTheLog(t *testing.T) {
	const apart, ahead = tries.ClocksApart, tries.AheadMax
	alone := DefaultConfig().VerdictTimeout - apart
	for name, c := range map[string]struct {
		age   time.Duration // of the request id; negative = it is ahead, 0 = it has none
		tries int32
		since time.Duration // before it was sent; negative = at any time
		sole  time.Duration // after it was sent; 0 = it does not say
	}{
		"new":                    {0, 0, apart, alone},
		"an id":                  {time.Second, 0, time.Second + ahead + apart, 0},
		"a first try":            {time.Second, 1, time.Second + ahead + apart, alone},
		"an old first try":       {3400 * time.Millisecond, 1, 3400*time.Millisecond + ahead + apart, 100 * time.Millisecond},
		"a second try":           {5 * time.Second, 2, 5*time.Second + ahead + apart, 0},
		"an id, a bit ahead":     {-ahead, 1, apart, alone},
		"an id of unknown times": {-ahead - time.Millisecond, 1, -1, 0},
		"a repeat of one":        {-ahead - time.Millisecond, 2, -1, 0},
	} {
		onRunning(t, func(t *testing.T, r *rig) {
			answer, got := r.answers(t)
			req := &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{{TaskId: completion(1, 1).TaskId, Priority: 1}}}
			if c.age != 0 {
				req.RequestId, req.Tries = ids.NewRequestID(time.Now().Add(-c.age)).String(), c.tries
			}
			began := time.Now()
			r.Update(r.call(), req, answer)
			synctest.Wait()
			first := r.bus.sentEvents()[0].batch.Events[0].Update
			since, sole := int64(0), int64(0)
			switch {
			case c.since < 0:
				since = anyTime
			default:
				since = began.Add(-c.since).UnixMilli()
			}
			if c.sole > 0 {
				sole = began.Add(c.sole).UnixMilli()
			}
			if first.SinceMs != since || first.SoleUntilMs != sole {
				t.Errorf("%s: since %d, alone until %d; not %d, %d", name, first.SinceMs, first.SoleUntilMs, since, sole)
			}
			time.Sleep(DefaultConfig().VerdictTimeout)
			again := r.verdictOn(t, &logv1.EventVerdict{Revision: 2}).Update
			if n := len(r.bus.sentEvents()); n != 2 || again.Request != first.Request || again.SinceMs != since || again.SoleUntilMs != 0 {
				t.Errorf("%s: sent %d times: at last %v", name, n, again)
			}
			verdicts(t, <-got)
		})
	}
}

// TestAnEarlyRepeatOfAnUpdateWaits: the first try may be alone in the log still.
func TestAnEarlyRepeatOfAnUpdateWaits(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		answer, got := r.answers(t)
		r.Update(r.call(), &yardv1.UpdateRequest{
			Tasks: []*yardv1.TaskUpdate{{TaskId: completion(1, 1).TaskId, Priority: 1}}, RequestId: ids.NewRequestID(time.Now()).String(), Tries: 2,
		}, answer)
		synctest.Wait()
		if e := fault.From((<-got).err); e.Code != fault.Unavailable || e.RetryAfter < tries.FirstTryFor-time.Second || e.RetryAfter > tries.FirstTryFor || len(r.bus.sentEvents()) > 0 {
			t.Errorf("%v, after %v", e, e.RetryAfter)
		}
	})
}

// TestAReplacementSaysSinceWhenCopiesMayBeInTheLog: the first one of a first try is alone; what is asked for again is not, nor what a repeat asks for.
func TestAReplacementSaysSinceWhenCopiesMayBeInTheLog(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		_, first := outcomesOf(t, <-r.submit(t, withID(keyed("one"), true)))
		req := withID(replacing("one"), true)
		since := time.Now().Truncate(time.Millisecond).Add(-tries.AheadMax - tries.ClocksApart).UnixMilli()
		got := r.submit(t, req)
		want := func(what string, u *logv1.Update, alone bool) {
			t.Helper()
			if u.SinceMs != since || u.SoleUntilMs > 0 != alone || u.SoleUntilMs > time.Now().Add(r.config.VerdictTimeout-tries.ClocksApart).UnixMilli() {
				t.Errorf("%s: since %d, not %d; alone until %d", what, u.SinceMs, since, u.SoleUntilMs)
			}
		}
		want("first", r.verdictOn(t, &logv1.EventVerdict{Code: string(fault.Unknown)}).Update, true)
		time.Sleep(time.Second)
		want("asked again", r.verdictOn(t, &logv1.EventVerdict{Code: string(fault.Unavailable)}).Update, false)
		wantCode(t, (<-got).err, fault.Unknown)
		req.Tries++
		got = r.submit(t, req)
		want("a repeat", r.verdictOn(t, &logv1.EventVerdict{}).Update, false)
		if all, _ := outcomesOf(t, <-got); all[0] != "replaced "+first[0] {
			t.Errorf("%v", all)
		}
	})
}

// TestAReplacementThatMayBeACopyIsNotKnown: the client hears so at once, and that a repeat will not tell; the other tasks of the request are stored.
func TestAReplacementThatMayBeACopyIsNotKnown(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		_, first := outcomesOf(t, <-r.submit(t, withID(keyed("one"), true)))
		req := keyed("one", "two")
		req.Tasks[0].OnConflict = yardv1.OnConflict_ON_CONFLICT_REPLACE
		began := time.Now()
		got := r.submit(t, withID(req, true))
		r.verdictOn(t, &logv1.EventVerdict{Code: string(fault.Unknown), Final: true})
		o := <-got
		if e := fault.From(o.err); e.Code != fault.Unknown || e.Detail[fault.DetailFinal] == "" || time.Since(began) > time.Second {
			t.Errorf("after %v: %v, %v", time.Since(began), o.resp, o.err)
		}
		all, _ := outcomesOf(t, <-r.submit(t, withID(keyed("one", "two"), true)))
		if all[0] != "existing "+first[0] || all[1][:len("existing")] != "existing" {
			t.Errorf("%v", all)
		}
	})
}

// TestWhatIsAnsweredIsNotSentAgain: a command that was refused since its task is dead would be applied to the task that was redriven meanwhile.
func TestWhatIsAnsweredIsNotSentAgain(t *testing.T) {
	onRunning(t, func(t *testing.T, r *rig) {
		answer, got := r.answers(t)
		req := &yardv1.CancelRequest{}
		for n := range uint64(3) {
			req.TaskIds = append(req.TaskIds, completion(1, n+1).TaskId)
		}
		r.Cancel(r.call(), req, answer)
		synctest.Wait()
		first := r.bus.sentEvents()[0]
		says := func(e sentEvents, at int, code fault.Code) {
			r.TakeVerdicts(testkit.Encoded(t, &logv1.VerdictBatch{RequestId: e.id, First: uint32(at), Verdicts: []*logv1.EventVerdict{{Code: string(code)}}}))
			synctest.Wait()
		}
		says(first, 1, fault.FailedPrecondition)
		var second sentEvents
		for waited := time.Duration(0); second.batch == nil && waited < 5*time.Second; waited += DefaultConfig().VerdictTimeout {
			time.Sleep(DefaultConfig().VerdictTimeout)
			if sent := r.bus.sentEvents(); len(sent) > 1 {
				second = sent[1]
			}
		}
		testkit.MustEqual(t, "events that were sent again", len(second.batch.GetEvents()), 2)
		for i, at := range []int{0, 2} {
			if id := second.batch.Events[i].TaskId; string(id) != string(first.batch.Events[at].TaskId) || second.batch.RequestId != second.id {
				t.Errorf("event %d of %v", i, second.batch)
			}
		}
		says(first, 2, fault.NotFound) // the answer on what was sent first is late: the other has an answer of its own
		says(second, 1, fault.Unavailable)
		says(second, 0, "")
		var codes []string
		for _, v := range verdicts(t, <-got) {
			codes = append(codes, v.Code)
		}
		testkit.Equal(t, "verdicts", fmt.Sprint(codes), "[OK FAILED_PRECONDITION UNAVAILABLE]")
	})
}
