package replica

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// TestGoneIsBounded: in tasks and in bytes, the oldest first, and nothing depends on it (R22).
func TestGoneIsBounded(t *testing.T) {
	b := newBench(t, Config{})
	b.r.gone.max = 2
	end := func(n int) {
		b.submit(nil, n)
		b.start(n)
		b.finish(taskstate.Succeeded, n)
		b.step(Draining{})
		b.step(Stored{Kind: JobArchive, Seq: uint64(n)})
	}
	for n := 1; n <= 3; n++ {
		end(n)
	}
	if b.r.Get(id(1)) != nil || b.r.Get(id(2)) == nil || b.r.Get(id(3)) == nil {
		t.Error("the oldest goes first")
	}
	b.r.gone.bytesMax = b.r.gone.bytes/2 + 1
	end(4)
	if b.r.Get(id(3)) != nil || b.r.Get(id(4)) == nil {
		t.Errorf("%d bytes are kept of %d", b.r.gone.bytes, b.r.gone.bytesMax)
	}
	b.r.gone.max, b.r.gone.bytesMax = 1, goneBytesMax
	for n := 5; n < 2200; n++ {
		end(n)
	}
	if len(b.r.gone.queue) != 1 || cap(b.r.gone.queue) > 1100 {
		t.Errorf("a queue of %d in %d", len(b.r.gone.queue), cap(b.r.gone.queue))
	}
}

// TestGoneIsSwept: what has left is forgotten after goneForMS at least, and twice that at most.
func TestGoneIsSwept(t *testing.T) {
	b := newBench(t, Config{})
	b.step(Draining{})
	end := func(n int) {
		b.submit(nil, n)
		b.start(n)
		b.finish(taskstate.Succeeded, n)
		b.step(Stored{Kind: JobArchive, Seq: uint64(n)})
	}
	end(1)
	b.step(Tick{})
	end(2)
	b.now.MS += goneForMS - 1
	b.step(Tick{})
	if b.r.Get(id(1)) == nil || b.r.Get(id(2)) == nil {
		t.Error("forgotten early")
	}
	b.now.MS++
	b.step(Tick{})
	if b.r.Get(id(1)) != nil || b.r.Get(id(2)) == nil {
		t.Error("what left before the last sweep is forgotten, and what left since is not")
	}
	b.now.MS += goneForMS
	b.step(Tick{})
	if b.r.Get(id(2)) != nil || b.r.gone.queue != nil || b.r.gone.bytes != 0 {
		t.Errorf("%d bytes are kept, a queue of %d", b.r.gone.bytes, len(b.r.gone.queue))
	}
}

// TestASubmitReadAgainAfterItsTaskIsForgotten: what was swept is known by its stay, and does not run
// again. Seed 497 of the simulation.
func TestASubmitReadAgainAfterItsTaskIsForgotten(t *testing.T) {
	b := newBench(t, Config{})
	b.step(Draining{})
	b.submit(nil, 1)
	b.start(1)
	b.finish(taskstate.Succeeded, 1)
	b.step(Stored{Kind: JobArchive, Seq: 1})
	for range 3 {
		b.step(Tick{})
		b.now.MS += goneForMS
	}
	if b.r.Get(id(1)) != nil {
		t.Fatal("it is not forgotten")
	}
	b.submit(nil, 1)
	if got := b.r.Get(id(1)); got != nil {
		t.Errorf("it is %v again", got.State)
	}
}

// TestPastStaysAreBounded: a stay that came back may be followed by the next; the oldest of many are forgotten.
func TestPastStaysAreBounded(t *testing.T) {
	var x pastStays
	parked := func(n int, parkings uint32) *Entry {
		return &Entry{Task: taskstate.Task{ID: id(n), Parkings: parkings, State: taskstate.Waiting}}
	}
	x.add(parked(1, 2))
	if !x.knows(parked(1, 1)) || x.knows(parked(1, 2)) || x.knows(parked(2, 0)) {
		t.Error("a stay is over once the next has begun")
	}
	for n := range 2 * pastMin {
		x.add(parked(n+2, 1))
		if known := len(x.young) + len(x.old); known > 2*pastMin {
			t.Fatalf("%d are known", known)
		}
	}
	if x.knows(parked(1, 1)) || !x.knows(parked(pastMin+2, 0)) || !x.knows(parked(2*pastMin+1, 0)) {
		t.Error("not the oldest are forgotten")
	}
	x.add(parked(2*pastMin+1, 0))
	if !x.knows(parked(2*pastMin+1, 0)) {
		t.Error("an earlier stay is not the last one")
	}
}
