package scenario_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI11_GroupsStartInTurn: a group that waits with two thousand tasks holds up another by a few of them, also when
// that one's tasks come by way of the timer store or after a failure; all of them run.
func TestI11_GroupsStartInTurn(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const flood, few = 2000, 5
		for range flood / 1000 {
			all := many(1000, &yardv1.NewTask{Type: "x", Group: "flood"})
			w.submit(all...)
		}
		w.described(list, func(d yard.TasklistInfo) bool { return d.Ready == flood })
		var small []string
		for i := range few {
			task := &yardv1.NewTask{Type: "x", Group: "small"}
			if i == 0 {
				task.DelayMs = 100
			}
			small = append(small, w.submitOne(task))
		}
		w.reach(small[0], "ready")
		taken, failed, found := 0, false, 0
		for found < few {
			for _, p := range w.some(5, "x") {
				taken++
				if p.Group == "small" && !failed { // it comes again
					failed = true
					equal(t, "fail", w.fail(p, &yardv1.Failure{Message: "once", DelayMs: 1}), "OK")
					continue
				}
				if p.Group == "small" {
					found++
				}
				equal(t, "complete", w.complete(p), "OK")
			}
			if taken > flood/2 {
				t.Fatalf("of %d tasks %d were of the small group", taken, found)
			}
		}
		equal(t, "as submitted", w.get(small[1]).Group, "small")
		for taken < flood+few+1 {
			some := w.some(100, "x")
			taken += len(some)
			for v := range strings.FieldsSeq(w.complete(some...)) {
				equal(t, "complete", v, "OK")
			}
		}
		for _, id := range small {
			equal(t, "in the archive", w.ended(id).Group, "small")
		}
		w.nothing(list)
	})
}

// TestAGroupIsAName: in JSON and protobuf, and what is none is refused.
func TestAGroupIsAName(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		body, err := w.raw("tasks.submit", fmt.Sprintf(`{"tasklist":%q,"tasks":[{"type":"x","group":"cus_8.b-1"}]}`, list))
		testkit.NoError(t, err)
		var resp yardv1.SubmitResponse
		if err := json.Unmarshal([]byte(body), &resp); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		p := w.takeOne()
		equal(t, "group", p.Group, "cus_8.b-1")
		equal(t, "complete", w.complete(p), "OK")
		for _, group := range []string{"a b", "a/b", strings.Repeat("x", 65), "ü"} {
			_, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "x"}, {Type: "x", Group: group}}})
			refusedAt(t, err, fault.InvalidArgument, "/tasks/1/group")
		}
		w.nothing(list)
	})
}

// TestI11_SharesAreAsTheWeights: of tasks that wait, each group gets its weight's share; one of weight 0 runs when
// nothing else is ready; a weight that is deleted is 1 again.
func TestI11_SharesAreAsTheWeights(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for group, weight := range map[string]float64{"large": 4, "idle": 0, "gone": 9} {
			if g, err := w.client.PutGroup(w.soon(), yard.Group{Name: group, Weight: weight, Idle: weight == 0}); err != nil || g.Weight != weight {
				t.Fatal(g, err)
			}
		}
		testkit.NoError(t, testkit.Err(w.client.DeleteGroup(w.soon(), "gone", 0)))
		// Matching hears of weights a moment later than frontends: what is ready before has the weight of before.
		w.eventually(func() error {
			w.submit(&yardv1.NewTask{Type: "probe", Priority: 5, Group: "other"}, &yardv1.NewTask{Type: "probe", Priority: 1, Group: "idle"})
			both := w.take(2, "probe")
			w.complete(both...)
			if both[0].Group == "idle" {
				return errors.New("the idle group comes first")
			}
			return nil
		})
		const each = 300
		for _, group := range []string{"idle", "large", "one", "gone"} {
			all := many(each, &yardv1.NewTask{Type: "x", Group: group})
			w.submit(all...)
		}
		w.described(list, func(d yard.TasklistInfo) bool { return d.Ready >= 4*each })
		got := map[string]int{}
		for n := 0; n < each; {
			some := w.some(10, "x")
			for _, p := range some {
				got[p.Group]++
			}
			n += len(some)
			w.complete(some...)
		}
		// A shard may have heard of some of the tasks before others: the first ones go by that.
		if large := got["large"]; large < each/2 || got["one"] > each/3 || got["gone"] > each/3 || got["idle"] != 0 {
			t.Errorf("of the first %d: %v", each, got)
		}
		for got["idle"] < each {
			some := w.some(100, "x")
			for _, p := range some {
				if got[p.Group]++; p.Group == "idle" && got["one"]+got["gone"]+got["large"] < 3*each-100 {
					t.Fatalf("the idle group has its turn: %v", got)
				}
			}
			w.complete(some...)
		}
	})
}
