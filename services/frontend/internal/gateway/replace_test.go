package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// verdictOn answers the latest batch of events that history was sent, and returns its only event.
func (r *rig) verdictOn(t *testing.T, v *logv1.EventVerdict) *logv1.Event {
	t.Helper()
	synctest.Wait()
	sent := r.bus.sentEvents()
	if len(sent) == 0 {
		t.Fatal("history was asked for nothing")
	}
	last := sent[len(sent)-1]
	testkit.MustEqual(t, "events were sent", len(last.batch.Events), 1)
	r.TakeVerdicts(testkit.Encoded(t, &logv1.VerdictBatch{RequestId: last.id, Verdicts: []*logv1.EventVerdict{v}}))
	return last.batch.Events[0]
}

func replacing(key string) *yardv1.SubmitRequest {
	req := keyed(key)
	req.Tasks[0].OnConflict = yardv1.OnConflict_ON_CONFLICT_REPLACE
	return req
}

// A task that has the key becomes the submitted one if history says so; otherwise it is the result as it is. A free key needs no one's word.
func TestATaskThatHasTheKeyIsReplaced(t *testing.T) {
	for code, want := range map[string]string{"": "replaced", string(fault.FailedPrecondition): "existing", string(fault.NotFound): "existing"} {
		onKnowing(t, func(t *testing.T, r *rig) {
			_, first := outcomesOf(t, <-r.submit(t, withID(replacing("one"), true)))
			if n := len(r.bus.sentEvents()); len(first) != 1 || n != 0 {
				t.Fatalf("created %v with %d events", first, n)
			}
			req := replacing("one")
			req.Tasks[0].Payload, req.Tasks[0].UniqueForMs = &yardv1.Payload{Data: []byte(`"new"`)}, 7
			got := r.submit(t, withID(req, true))
			u := r.verdictOn(t, &logv1.EventVerdict{Code: code}).Update
			if !u.Replace || !u.HasPayload || string(u.Payload) != `"new"` || u.UniqueForMs != 7 || u.Type == "" || u.Priority == 0 || u.Policy.GetMaxAttempts() == 0 || !u.RunNow {
				t.Errorf("history was asked for %v", u)
			}
			if all, _ := outcomesOf(t, <-got); all[0] != want+" "+first[0] {
				t.Errorf("%q: %v", code, all)
			}
			wantOnce(t, r.log, first)
		})
	}
}

// What history has not said is not answered, and asked for again by the same name, by a repeat too: also of a task that has ended since.
func TestI1_AReplacementIsMadeOnce(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		_, first := outcomesOf(t, <-r.submit(t, withID(keyed("one"), true)))
		req := withID(replacing("one"), true)
		got := r.submit(t, req)
		name := r.verdictOn(t, &logv1.EventVerdict{Code: string(fault.Unknown)}).Update.Request
		time.Sleep(time.Second)
		if again := r.verdictOn(t, &logv1.EventVerdict{Code: string(fault.Unavailable)}).Update.Request; again != name || name == 0 {
			t.Errorf("asked for again as %d, before as %d", again, name)
		}
		if o := <-got; fault.From(o.err).Code != fault.Unknown {
			t.Errorf("answered %v, %v", o.resp, o.err)
		}
		r.log.ends(t, "shop", "one", time.Now())
		req.Tries++
		got = r.submit(t, req)
		testkit.Equal(t, "a repeat asks as before as", r.verdictOn(t, &logv1.EventVerdict{}).Update.Request, name)
		if all, _ := outcomesOf(t, <-got); all[0] != "replaced "+first[0] {
			t.Errorf("%v", all)
		}
		wantOnce(t, r.log, first)
		// Another request is another task.
		if _, created := outcomesOf(t, <-r.submit(t, withID(replacing("one"), true))); len(created) != 1 {
			t.Errorf("created %v", created)
		}
	})
}

// A task that was replaced, and of which history could not say so before it ended, is asked again by the same try: the key is free, and what was submitted has run.
func TestI1_AReplacementIsMadeOnceThoughItsTaskEnds(t *testing.T) {
	onKnowing(t, func(t *testing.T, r *rig) {
		_, first := outcomesOf(t, <-r.submit(t, withID(keyed("one"), true)))
		got := r.submit(t, withID(replacing("one"), true))
		name := r.verdictOn(t, &logv1.EventVerdict{Code: string(fault.Unknown)}).Update.Request
		r.log.ends(t, "shop", "one", time.Now())
		time.Sleep(time.Second)
		testkit.Equal(t, "asked for again as before as", r.verdictOn(t, &logv1.EventVerdict{}).Update.Request, name)
		if all, _ := outcomesOf(t, <-got); all[0] != "replaced "+first[0] {
			t.Errorf("%v", all)
		}
		wantOnce(t, r.log, first)
	})
}
