package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

func (r *rig) drainList(t *testing.T, name string) {
	stop(t, r.catalog, catalog.Drains.Tasklists, "shop", name, &yardv1.Pause{By: "ann", Reason: "it moves", SinceMs: 1})
}

// What is drained is refused whole, at the path of who named it, and nothing is stored; all else is accepted.
func TestWhatIsDrainedIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t)
		r.drainList(t, "main")
		stop(t, r.catalog, catalog.Drains.Types, "shop", "pay", &yardv1.Pause{SinceMs: 1})
		stop(t, r.catalog, catalog.Drains.Tasklists, "shop", "other", &yardv1.Pause{SinceMs: 1, UntilMs: 2})
		stop(t, r.catalog, catalog.Drains.Types, "shop", "old", &yardv1.Pause{SinceMs: 1, UntilMs: 2})
		stop(t, r.catalog, catalog.Drains.Groups, "shop", "acme", &yardv1.Pause{SinceMs: 1})
		stop(t, r.catalog, catalog.Drains.Groups, "shop", "over", &yardv1.Pause{SinceMs: 1, UntilMs: 2})
		other := func(types ...string) *yardv1.SubmitRequest {
			req := &yardv1.SubmitRequest{Tasklist: "other"}
			for _, name := range types {
				req.Tasks = append(req.Tasks, &yardv1.NewTask{Type: name})
			}
			return req
		}
		own := other("x", "x")
		own.Tasks[1].Tasklist = "main"
		grouped := other("x", "x", "x")
		grouped.Tasks[1].Group, grouped.Tasks[2].Group = "over", "acme"
		for path, req := range map[string]*yardv1.SubmitRequest{
			"/tasklist": tasks(2), "/tasks/2/group": grouped, "/tasks/1/tasklist": own, "/tasks/2/type": other("x", "x", "pay"),
		} {
			for _, req := range []*yardv1.SubmitRequest{req, withID(req.CloneVT(), true), withID(req.CloneVT(), false)} {
				e := faultOf(t, (<-r.submit(t, req)).err, fault.FailedPrecondition)
				who := "drained"
				if strings.HasSuffix(path, "tasklist") {
					who = "drained by ann: it moves"
				}
				if e.Path != path || !strings.HasSuffix(e.Message, who) {
					t.Errorf("%s: %v", path, e)
				}
			}
		}
		wantOnce(t, r.log, nil)
		wantOnce(t, r.log, accepted(t, <-r.submit(t, other("x", "old"))))
		stop(t, r.catalog, catalog.Drains.Domains, "", "shop", &yardv1.Pause{SinceMs: 1})
		wantAt(t, (<-r.submit(t, other("x"))).err, fault.FailedPrecondition, "") // no field names the domain
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
				r.drainList(t, "main")
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
		r := newKnowingRig(t)
		got, err := asked(r, "shop", true, r.Drain(validate.Tasklist), &yardv1.PauseRequest{Name: "main", Reason: "it moves", By: "ann", ForMs: 5000})
		testkit.NoError(t, err)
		drain := got.(*yardv1.DrainResponse).Drain
		if drain.By != "ann" || drain.UntilMs-drain.SinceMs != 5000 {
			t.Errorf("stored as %v", drain)
		}
		testkit.NoError(t, testkit.Err(asked(r, "shop", true, r.Drain(validate.Type), &yardv1.PauseRequest{Name: "pay"})))
		if got, err := asked(r, "shop", true, r.GetTasklist, &yardv1.GetTasklistRequest{Name: "main"}); err != nil || got.(*yardv1.GetTasklistResponse).Drain.GetBy() != "ann" {
			t.Errorf("%v %v", got, err)
		}
		if got, err := asked(r, "shop", true, r.GetType, &yardv1.GetTypeRequest{Name: "pay"}); err != nil || got.(*yardv1.GetTypeResponse).Drain == nil || got.(*yardv1.GetTypeResponse).Pause != nil {
			t.Errorf("%v %v", got, err)
		}
		wantCode(t, testkit.Err(asked(r, "shop", true, r.Resume(validate.Tasklist), &yardv1.ResumeRequest{Name: "main"})), fault.NotFound)
		if got, err := asked(r, "shop", true, r.Resume(validate.Tasklist), &yardv1.ResumeRequest{Name: "main", Drain: true}); err != nil || got.(*yardv1.PauseResponse).Pause.GetBy() != "ann" {
			t.Errorf("%v %v", got, err)
		}
		_, err = asked(r, "shop", true, r.Resume(validate.Tasklist), &yardv1.ResumeRequest{Name: "main", Drain: true})
		if e := faultOf(t, err, fault.NotFound); e.Path != "/name" || !strings.Contains(e.Message, "yard tasklist drain main") {
			t.Errorf("%v", e)
		}
		accepted(t, <-r.submit(t, tasks(1)))
	})
}

// A drain and a pause of a group show beside its settings, and without any, until they are resumed; what is over shows nowhere.
func TestStoppedGroupsShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t)
		testkit.NoError(t, testkit.Err(asked(r, "shop", true, r.PutGroup, &yardv1.PutGroupRequest{Group: &yardv1.Group{Name: "acme", Weight: new(2.0)}})))
		got, err := asked(r, "shop", true, r.Pause(validate.Group), &yardv1.PauseRequest{Name: "acme", Reason: "down", By: "ann", ForMs: 5000})
		if p := got.(*yardv1.PauseResponse).Pause; err != nil || p.By != "ann" || p.UntilMs-p.SinceMs != 5000 {
			t.Fatalf("%v %v", got, err)
		}
		got, err = asked(r, "shop", true, r.Drain(validate.Group), &yardv1.PauseRequest{Name: "b.c", By: "bob"})
		if err != nil || got.(*yardv1.DrainResponse).Drain.By != "bob" {
			t.Fatalf("%v %v", got, err)
		}
		shows := func(name string, paused, drained, settings bool) {
			t.Helper()
			got, err := asked(r, "shop", true, r.GetGroup, &yardv1.GetGroupRequest{Name: name})
			g, _ := got.(*yardv1.GetGroupResponse)
			if err != nil || g.Group.Name != name || (g.Pause != nil) != paused || (g.Drain != nil) != drained || (g.Group.Revision != 0) != settings {
				t.Errorf("%v %v", got, err)
			}
		}
		shows("acme", true, false, true)
		shows("b.c", false, true, false)
		listed := func(want ...string) {
			t.Helper()
			var all []string
			for cursor, more := "", true; more; more = cursor != "" {
				l := answerOf[*yardv1.ListGroupsResponse](t, r, "shop", true, r.ListGroups, &yardv1.ListGroupsRequest{Limit: 1, Cursor: cursor})
				for _, g := range l.Groups {
					all = append(all, g.Name)
				}
				for _, s := range l.Stopped {
					all = append(all, fmt.Sprint(s.Name, " ", s.Pause.GetBy(), s.Drain.GetBy()))
				}
				cursor = l.NextCursor
			}
			testkit.Equal(t, "listed are", all, want)
		}
		listed("acme", "acme ann", "b.c", "b.c bob")
		got, err = asked(r, "shop", true, r.DescribeTasklist, &yardv1.DescribeTasklistRequest{Tasklist: "main"})
		if d, _ := got.(*yardv1.DescribeTasklistResponse); err != nil || !slices.Equal(d.PausedGroups, []string{"acme"}) || !slices.Equal(d.DrainedGroups, []string{"b.c"}) {
			t.Errorf("%v %v", got, err)
		}
		_, err = asked(r, "shop", true, r.Resume(validate.Group), &yardv1.ResumeRequest{Name: "b.c"})
		if e := faultOf(t, err, fault.NotFound); e.Path != "/name" || !strings.Contains(e.Message, "yard group pause b.c") {
			t.Errorf("%v", e)
		}
		if got, err := asked(r, "shop", true, r.Resume(validate.Group), &yardv1.ResumeRequest{Name: "b.c", Drain: true}); err != nil || got.(*yardv1.PauseResponse).Pause.By != "bob" {
			t.Errorf("%v %v", got, err)
		}
		time.Sleep(5 * time.Second)
		listed("acme")
		wantCode(t, testkit.Err(asked(r, "shop", true, r.GetGroup, &yardv1.GetGroupRequest{Name: "b.c"})), fault.NotFound)
	})
}

// Tasklists, types and groups that are paused count together; those that are over make room.
func TestPausesOfGroupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t)
		for i := range validate.PausesMax {
			stop(t, r.catalog, catalog.Pauses.Groups, "shop", fmt.Sprint("g", i), &yardv1.Pause{SinceMs: 1})
		}
		for _, ask := range []func() error{
			func() error {
				_, err := asked(r, "shop", true, r.Pause(validate.Group), &yardv1.PauseRequest{Name: "acme"})
				return err
			},
			func() error {
				_, err := asked(r, "shop", true, r.Pause(validate.Tasklist), &yardv1.PauseRequest{Name: "main"})
				return err
			},
		} {
			if e := faultOf(t, ask(), fault.FailedPrecondition); e.Path != "/name" || !strings.Contains(e.Message, "1000 tasklists, types and groups") {
				t.Errorf("%v", e)
			}
		}
		testkit.Check(t, testkit.Err(asked(r, "shop", true, r.Drain(validate.Group), &yardv1.PauseRequest{Name: "acme"})))
		stop(t, r.catalog, catalog.Pauses.Groups, "shop", "g7", &yardv1.Pause{SinceMs: 1, UntilMs: 2})
		testkit.Check(t, testkit.Err(asked(r, "shop", true, r.Pause(validate.Group), &yardv1.PauseRequest{Name: "acme"})))
		if catalog.Pauses.Groups.Of(r.catalog.Catalog, "shop", "g7") != nil {
			t.Error("what is over is still stored")
		}
	})
}

// TestARedriveIntoADrainedTasklistIsRefused, and no dead letter comes back. Without a tasklist each comes back into its own.
func TestARedriveIntoADrainedTasklistIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLetters(t, 2)
		r.drainList(t, "old")
		stop(t, r.catalog, catalog.Drains.Tasklists, "shop", "new", &yardv1.Pause{SinceMs: 1, UntilMs: 2})
		redrive := func(to string) error {
			_, err := ask[*yardv1.RedriveRequest, *yardv1.RedriveResponse](t, r, r.Redrive, &yardv1.RedriveRequest{Filter: &yardv1.DeadLetterFilter{}, Tasklist: to})
			return err
		}
		err := redrive("old")
		if e := fault.From(err); e == nil || e.Code != fault.FailedPrecondition || e.Path != "/tasklist" || !strings.Contains(e.Error(), "drained by ann: it moves") || len(r.redrives()) != 0 {
			t.Errorf("refused with %v, %d events were sent", err, len(r.redrives()))
		}
		for _, to := range []string{"new", ""} {
			testkit.NoError(t, redrive(to))
		}
		testkit.Equal(t, "events", len(r.redrives()), 4)
	})
}
