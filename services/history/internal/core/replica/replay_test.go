package replica

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI3_ReplayReachesTheSameState: an owner that begins with a snapshot and the turns behind it, each with what it had admitted, has the tasks, the
// queues, the read levels and the fences that the owner before had as of the last turn. Only what the other stores have is missing. Then it may
// go on as the owner: in the end each task is archived once, and no stay of it was stored twice.
func TestI3_ReplayReachesTheSameState(t *testing.T) {
	for seed := range uint64(testkit.Rounds(t, 1000, 60)) {
		h := newOwnership(t, seed)
		for range 400 {
			h.act()
		}
		h.finish()
		if t.Failed() {
			return
		}
	}
}

// image is what two owners have to agree about.
type image struct {
	tasks map[Stay]string
	rest  string
}

func imageOf(r *Replica) image {
	all := image{make(map[Stay]string), fmt.Sprint("read ", r.ReadLevels(), " queues ", r.Cursors(), " fences ", r.Fences(), " turn ", r.eventAt)}
	for _, e := range r.tasks {
		if e.left {
			continue
		}
		task := cloneTask(&e.Task)
		if o := task.Order(); o != nil {
			task.Extra.Order = &taskstate.Order{Key: o.Key, Index: o.Index} // whether it is its turn is what its owner knows
		}
		granted := ""
		if g := e.GrantedBy(); g != nil {
			granted = fmt.Sprint(g.Shard, "/", g.Epoch, "/", g.Request)
		}
		all.tasks[Stay{e.ID, e.Parkings}] = fmt.Sprintf("%s arrived=%d index=%d shared=%v granted=%s", dump(&task), e.arrivedAt, e.Index, e.shared, granted)
	}
	return all
}

// goOn makes the next owner.
func (h *ownership) goOn() {
	h.Helper()
	fx := new(Effects)
	h.r, h.skipped = h.takeOver(h.cfg, h.now, fx), make(map[Queue]uint64)
	if snap := h.snapshots[h.saved.Snapshot.Seq]; snap.Seq > 0 && fmt.Sprint(imageOf(New(h.cfg, &Start{Snapshot: snap.copied()}))) != h.images[snap.Seq] {
		h.fail("the snapshot has changed that had %s", h.images[snap.Seq])
	}
	h.compare(imageOf(h.r))
	h.r.Step(Recovered{}, h.now, fx)
	if steps := h.r.BeginTurn(); len(steps) > 0 {
		h.fail("the next turn would have %v again", steps)
	}
	h.r.Step(TurnRefused{}, h.now, fx)
	h.flush(fx)
}

// compare tells what is wrong with the state of the next owner.
func (h *ownership) compare(got image) {
	h.Helper()
	if h.asOf.tasks != nil && got.rest != h.asOf.rest {
		h.fail("it has %s, it was %s", got.rest, h.asOf.rest)
	}
	for stay, text := range got.tasks {
		if text != h.asOf.tasks[stay] {
			h.fail("it has %s\nit was %s", text, h.asOf.tasks[stay])
		}
	}
	for stay, text := range h.asOf.tasks {
		if got.tasks[stay] == "" && h.timer[stay] == nil && h.archive[stay] == nil {
			h.fail("it lacks %s", text)
		}
	}
}

// crash ends the owner. The turn that was under way may be stored all the same, and so may the jobs.
func (h *ownership) crash() {
	if h.rng.IntN(2) == 0 {
		h.stored(true)
	}
	for kind := range JobAppend {
		if h.rng.IntN(2) == 0 {
			h.write(kind)
		}
	}
	h.under, h.own, h.jobs, h.written, h.looks, h.making, h.save = nil, nil, [2][]*Entry{}, [2]bool{}, nil, nil, nil
	h.goOn()
}

// finish lets all go its way, until each task is archived.
func (h *ownership) finish() {
	h.finishing = true
	for range 400 {
		h.stored(true)
		for lane := range ids.Lane(2) {
			h.admit(Queue{Lane: 3 + lane})
		}
		for _, at := range h.r.Readings() {
			h.admit(at.Queue)
		}
		h.begin()
		h.tick()
		for kind := range JobAppend {
			h.write(kind)
			h.report(kind)
		}
		h.fire()
		h.look()
		if len(h.archive) == len(h.submitted) {
			return
		}
	}
	h.fail("%d of %d tasks are archived", len(h.archive), len(h.submitted))
}
