package locate

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// nothing is a partition that has no task and has read nothing, and decides nothing.
type nothing struct{ t *testing.T }

func (nothing) Memory(ids.TaskID) (*taskstate.Task, bool)  { return nil, false }
func (nothing) Unread(ids.Position, string, string) bool   { return false }
func (nothing) Passed(ids.Lane, uint64, string) bool       { return false }
func (n nothing) Conclude(r *Request, v taskstate.Verdict) { n.t.Errorf("%s gets %+v", r.Ev.ID, v) }
func (n nothing) Decide(r *Request)                        { n.t.Errorf("%s is decided", r.Ev.ID) }
func (n nothing) Bring(r *Request)                         { n.t.Errorf("%s is brought back", r.Ev.ID) }

func (n nothing) DropDeadLetter(l DeadLetter) { n.t.Errorf("the letter %+v is deleted", l) }

// TestATaskThatDoesNotComeIsLookedForLessOften. It is looked for as long as a command waits.
func TestATaskThatDoesNotComeIsLookedForLessOften(t *testing.T) {
	l, p := New(), passed{nothing{t}}
	l.Resume(p)
	r := &Request{Ev: &taskstate.Event{Kind: taskstate.Cancel, ID: ids.TaskID{1}, Domain: "shop"}, Seq: 44}
	l.Wait(r)
	l.Search(r)
	looks, last, longest := 0, 0, 0
	for n := range 1000 {
		for _, s := range l.HandOut(nil) {
			looks, longest, last = looks+1, max(longest, n-last), n
			l.Found(&Found{Search: s, Coming: true}, p, p)
		}
		l.Expire(p, p)
	}
	if looks > 50 || longest > looksRest || len(l.Commands()) != 1 {
		t.Errorf("%d looks, up to %d calls apart, %d commands wait", looks, longest, len(l.Commands()))
	}
}

// passed is a partition whose lanes are read.
type passed struct{ nothing }

func (passed) Passed(ids.Lane, uint64, string) bool { return true }

// TestI14_FatDeadTasksLeaveRoomForOthers: a cancel that waits for the lanes keeps nothing of the payload.
func TestI14_FatDeadTasksLeaveRoomForOthers(t *testing.T) {
	l, p := New(), nothing{t}
	l.Resume(p)
	for n := range 80 {
		r := &Request{Ev: &taskstate.Event{Kind: taskstate.Cancel, ID: ids.TaskID{byte(n + 1)}, Domain: "shop"}, Seq: 44, Place: n}
		l.Wait(r)
		l.Search(r)
	}
	var fats []weak.Pointer[taskstate.Task]
	for _, s := range l.HandOut(nil) {
		fat := &taskstate.Task{ID: s.ID, Domain: "shop", State: taskstate.Dead, Payload: taskstate.Blob{Data: make([]byte, 512<<10)}}
		l.Found(&Found{Search: s, Archived: fat, Unsure: true, Ends: [ids.Lanes]uint64{3: 50}}, p, p)
		fats = append(fats, weak.Make(fat))
	}
	runtime.GC()
	testkit.Equal(t, "tasks in memory", len(slices.DeleteFunc(fats, func(p weak.Pointer[taskstate.Task]) bool { return p.Value() == nil })), 0)
	for _, w := range l.byID { // nor is it in what they do keep
		testkit.Equal(t, "payload", len(w.waiting[0].dead.Payload.Data), 0)
	}
	testkit.Equal(t, "commands wait", fmt.Sprint(len(l.Commands()), l.Weight("")), "80 80")
}

// A new owner has a command of a task that waits in the timer store: the task is fired for it, and what is shown is what becomes of it then.
func TestACommandOfAParkedTaskIsForeseen(t *testing.T) {
	for _, kind := range []taskstate.Kind{taskstate.Skipped, taskstate.Changed, taskstate.Cancel} {
		l, id := New(), ids.TaskID{1}
		ev := &taskstate.Event{Kind: kind, ID: id, Domain: "shop", OrderKey: "k", Seq: 50, At: 1000, Update: &taskstate.Update{Request: 3, DueAt: 10_000_000}}
		l.Wait(&Request{Ev: ev, Seq: 50, At: 1000, Replayed: true})
		task := func() *taskstate.Task {
			return &taskstate.Task{
				ID: id, Domain: "shop", State: taskstate.Waiting, Parkings: 1, Position: ids.NewPosition(1, 7), DueAt: 9_000_000,
				Policy: &taskstate.Policy{MaxAttempts: 3}, Extra: &taskstate.Extra{Order: &taskstate.Order{Key: "k", Turn: true}},
			}
		}
		shown, came := task(), task()
		testkit.Equal(t, "it is known", l.Ahead(id).Foresee(shown, true), true)
		came.Before, came.Position = came.Position, ids.NewPosition(uint64(ids.LaneLater), 9)
		taskstate.Apply(came, ev, 1000)
		testkit.Equal(t, fmt.Sprint("state after ", kind), shown.State, came.State)
		testkit.Equal(t, "its steps", len(shown.Steps), len(came.Steps))
		for n := range aheadMax + 1 {
			l.Wait(&Request{Ev: ev, Seq: 60, Place: n, At: 1000, Replayed: true})
		}
		testkit.Equal(t, "it is known behind very many", l.Ahead(id).Foresee(task(), true), false)
	}
}
