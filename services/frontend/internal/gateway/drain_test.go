package gateway

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

func (r *rig) drainList(name string) {
	r.catalog.mu.Lock()
	defer r.catalog.mu.Unlock()
	r.catalog.pauses[topology.TasklistDrainKey("shop", name)] = &yardv1.Pause{By: "ann", Reason: "it moves", SinceMs: 1}
}

// What is drained is refused whole, at the path of who named it, and nothing is stored; all else is accepted.
func TestWhatIsDrainedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t)
		r.drainList("main")
		r.catalog.pauses[topology.TypeDrainKey("shop", "pay")] = &yardv1.Pause{SinceMs: 1}
		r.catalog.pauses[topology.TasklistDrainKey("shop", "other")] = &yardv1.Pause{SinceMs: 1, UntilMs: 2}
		r.catalog.pauses[topology.TypeDrainKey("shop", "old")] = &yardv1.Pause{SinceMs: 1, UntilMs: 2}
		other := func(types ...string) *yardv1.SubmitRequest {
			req := &yardv1.SubmitRequest{Tasklist: "other"}
			for _, name := range types {
				req.Tasks = append(req.Tasks, &yardv1.NewTask{Type: name})
			}
			return req
		}
		own := other("x", "x")
		own.Tasks[1].Tasklist = "main"
		for path, req := range map[string]*yardv1.SubmitRequest{
			"/tasklist": tasks(2), "/tasks/1/tasklist": own, "/tasks/2/type": other("x", "x", "pay"),
		} {
			for _, req := range []*yardv1.SubmitRequest{req, withID(req.CloneVT(), true), withID(req.CloneVT(), false)} {
				e := wantCode(t, (<-r.submit(t, req)).err, fault.FailedPrecondition)
				who := "drained"
				if path != "/tasks/2/type" {
					who = "drained by ann: it moves"
				}
				if e.Path != path || !strings.HasSuffix(e.Message, who) {
					t.Errorf("%s: %v", path, e)
				}
			}
		}
		wantOnce(t, r.log, nil)
		wantOnce(t, r.log, accepted(t, <-r.submit(t, other("x", "old"))))
	})
}

// A repeat of what was stored before a drain is answered as the first time, counted or not; what was not stored is refused.
func TestI1_ARepeatDuringADrainIsAnsweredAsTheFirstTime(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 5 * time.Second, time.Minute, 5 * time.Minute} {
		for _, counted := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := newKnowingRig(t)
				req, never := withID(tasks(3), counted), withID(tasks(2), counted)
				first := accepted(t, <-r.submit(t, req))
				time.Sleep(after)
				r.drainList("main")
				if counted {
					req.Tries, never.Tries = 2, 2
				}
				equalIDs(t, accepted(t, <-r.submit(t, req)), first)
				wantCode(t, (<-r.submit(t, never)).err, fault.FailedPrecondition)
				wantOnce(t, r.log, first)
			})
		}
	}
}

// A drain shows wherever its tasklist or type does, until it is resumed; a pause of the same is another matter.
func TestDrainsShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t, func(d *Deps) { d.LogVersion = func() uint32 { return logversion.Levels } })
		got, err := asked(r, "shop", true, r.DrainTasklist, &yardv1.DrainTasklistRequest{Name: "main", Reason: "it moves", By: "ann", ForMs: 5000})
		if err != nil {
			t.Fatal(err)
		}
		drain := got.(*yardv1.DrainTasklistResponse).Drain
		if drain.By != "ann" || drain.UntilMs-drain.SinceMs != 5000 {
			t.Errorf("stored as %v", drain)
		}
		if _, err := asked(r, "shop", true, r.DrainType, &yardv1.DrainTypeRequest{Name: "pay"}); err != nil {
			t.Fatal(err)
		}
		if got, err := asked(r, "shop", true, r.GetTasklist, &yardv1.GetTasklistRequest{Name: "main"}); err != nil || got.(*yardv1.GetTasklistResponse).Drain.GetBy() != "ann" {
			t.Errorf("%v %v", got, err)
		}
		if got, err := asked(r, "shop", true, r.GetType, &yardv1.GetTypeRequest{Name: "pay"}); err != nil || got.(*yardv1.GetTypeResponse).Drain == nil || got.(*yardv1.GetTypeResponse).Pause != nil {
			t.Errorf("%v %v", got, err)
		}
		_, err = asked(r, "shop", true, r.ResumeTasklist, &yardv1.ResumeTasklistRequest{Name: "main"})
		wantCode(t, err, fault.NotFound)
		if got, err := asked(r, "shop", true, r.ResumeTasklist, &yardv1.ResumeTasklistRequest{Name: "main", Drain: true}); err != nil || got.(*yardv1.ResumeTasklistResponse).Pause.GetBy() != "ann" {
			t.Errorf("%v %v", got, err)
		}
		_, err = asked(r, "shop", true, r.ResumeTasklist, &yardv1.ResumeTasklistRequest{Name: "main", Drain: true})
		if e := wantCode(t, err, fault.NotFound); e.Path != "/name" || !strings.Contains(e.Message, "yard tasklist drain main") {
			t.Errorf("%v", e)
		}
		accepted(t, <-r.submit(t, tasks(1)))
	})
}

func TestI13DrainsWaitForTheClustersVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t, func(d *Deps) { d.LogVersion = func() uint32 { return logversion.Levels - 1 } })
		_, err := asked(r, "shop", true, r.DrainTasklist, &yardv1.DrainTasklistRequest{Name: "main"})
		wantCode(t, err, fault.FailedPrecondition)
		_, err = asked(r, "shop", true, r.DrainType, &yardv1.DrainTypeRequest{Name: "pay"})
		wantCode(t, err, fault.FailedPrecondition)
		if len(r.catalog.pauses) != 0 {
			t.Error("stored all the same")
		}
	})
}
