package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
)

// booking is the booking of the attempt that runs gives a shard.
func booking() string { return ids.Booking(ids.NewTaskID(time.UnixMilli(1), 0, 99), 1) }

// released is the word that an attempt is over.
func (o *solo) released(typ, ref string) Inputs {
	o.delivery++
	return Inputs{Hints: []Hints{{Delivery: o.delivery, Releases: []Release{{
		Domain: "d", Type: typ, Path: []table.Ref{table.TypeRef(ref)}, Bookings: []byte(booking()),
	}}}}}
}

// A slot that is free is reported after tellAfter where no one waits for it.
func TestAFreeSlotIsTold(t *testing.T) {
	o := runs(t)
	for _, c := range []struct {
		in    Inputs
		after time.Duration
		calls int
	}{{o.released("a", "a"), 0, 0}, {Inputs{}, limit.ReportAfter - 1, 0}, {Inputs{}, 1, 1}} {
		if o.step(c.after, c.in); len(o.fx.Calls) != c.calls {
			t.Fatalf("after %v: %d calls", c.after, len(o.fx.Calls))
		}
	}
	if st := o.fx.Calls[0].Stances[0]; st.Held != 0 || st.TTL != 0 {
		t.Errorf("it tells %+v", st)
	}
	if o.step(0, o.called()); len(o.fx.Freed) != 0 {
		t.Errorf("no one waits, and hears of %+v", o.fx.Freed)
	}
}

// A slot that is used again at once is not reported as free.
func TestASlotThatIsUsedAgainIsNotTold(t *testing.T) {
	o := runs(t)
	o.step(0, o.hint("a", 0, 1))
	o.step(0, o.called())
	o.step(0, join(o.released("a", "a"), o.poll(1, time.Hour)))
	w, put := o.wants(), o.group("a", 3, 0, 1)
	if len(w) != 1 || o.fx.Calls[0].Stances[0].Held != 0 {
		t.Fatalf("it calls %+v", o.fx.Calls)
	}
	in := o.called()
	in.Outcomes[0].Outcome.Taken[0] = table.Taken{
		Batches: []table.Batch{{Chunk: table.Chunk{Tasklist: put.Tasklist, Column: put.Column, ReadyAt: put.ReadyAt, Triggers: put.Packed}, Booked: true}},
		Heads:   []table.Head{{Column: put.Column, Empty: true, Gone: 1}},
	}
	o.step(0, in)
	if c := o.s.Census(); c.Slots != 1 || c.Reported != 1 {
		t.Fatalf("%+v", c)
	}
	if o.step(limit.ReportAfter, Inputs{}); len(o.fx.Calls) != 0 {
		t.Fatalf("it tells %+v", o.fx.Calls[0].Stances)
	}
}

// The slots in use may be used until the last deadline of their attempts, also when one of these is over.
func TestSlotsAreUsedUntilTheLastDeadline(t *testing.T) {
	o := alone(t, 1)
	o.catalog.limits["d/a"] = 5
	o.step(0, Inputs{Limits: []string{"d"}})
	path := []table.Ref{table.TypeRef("a")}
	o.reply(
		limit.Running{Domain: "d", Type: "a", Path: path, Member: booking(), DeadlineMS: o.now.MS + 1000},
		limit.Running{Domain: "d", Type: "a", Path: path, Member: ids.Booking(ids.NewTaskID(time.UnixMilli(1), 0, 98), 1), DeadlineMS: o.now.MS + 9000},
	)
	for _, st := range []table.Stance{
		{Ref: path[0], Max: 5, Held: 2, TTL: 9 * time.Second},
		{Ref: path[0], Max: 5, Held: 1, TTL: 9*time.Second - limit.ReportAfter},
	} {
		if len(o.fx.Calls) != 1 || o.fx.Calls[0].Stances[0] != st {
			t.Fatalf("it tells %+v, want %+v", o.fx.Calls, st)
		}
		o.step(0, join(o.called(), o.released("a", "a")))
		o.step(limit.ReportAfter, Inputs{})
	}
}

// A release frees what its path names, though it is another type's.
func TestAReleaseFreesItsPath(t *testing.T) {
	o := runs(t)
	if o.step(0, o.released("other", "b")); o.s.Census().Slots != 1 {
		t.Fatal("another limit's slot is free")
	}
	if o.step(0, o.released("other", "a")); o.s.Census().Slots != 0 {
		t.Fatal("the slot is in use")
	}
}

// A grab under way counts for a limit that is new; nothing was booked for it.
func TestAGrabUnderWayIsUnbooked(t *testing.T) {
	o := alone(t, 1)
	o.step(0, o.poll(1, time.Hour))
	o.step(0, o.hint("a", 0, 1))
	o.catalog.limits["d/a"] = 5
	o.step(0, Inputs{Limits: []string{"d"}})
	if c := o.s.Census(); c.Slots != 1 || c.Unbooked != 1 {
		t.Fatalf("%+v", c)
	}
}

// A limit that is full of other shards' attempts is not audited: this shard has none to be looked after.
func TestALimitThatOthersFillIsNotAudited(t *testing.T) {
	o := alone(t, 1)
	o.catalog.limits["d/a"] = 1
	o.step(0, Inputs{Limits: []string{"d"}})
	o.reply()
	in := o.called()
	in.Outcomes[0].Outcome.Limits[0].Used = 1
	o.step(0, in)
	for at := time.Duration(0); at <= limit.AuditEvery; at += sweepEvery {
		if o.step(sweepEvery, Inputs{}); len(o.fx.Asks) != 0 {
			t.Fatalf("after %v it asks for %+v", at, o.fx.Asks)
		}
	}
}

// A limit without a slot is tried each lineEvery; each RetryEvery where entries are missing, for which other shards
// are asked each restoreEvery.
func TestWhenALimitIsTriedAgain(t *testing.T) {
	for why, every := range map[table.BlockedWhy]time.Duration{table.Full: limit.LineEvery, table.InLine: limit.LineEvery, table.Restoring: tablecall.RetryEvery} {
		o := runs(t)
		o.step(0, o.hint("a", 0, 1))
		o.step(0, o.called())
		o.step(0, o.poll(1, time.Hour))
		blocked := func() {
			in := o.called()
			in.Outcomes[0].Outcome.Limits[0].Restoring = why == table.Restoring
			in.Outcomes[0].Outcome.Taken[0].Blocked = []table.Blocked{{By: table.TypeRef("a"), Why: why}}
			in.Outcomes[0].Outcome.Taken[0].Heads = []table.Head{{Column: table.Column{Priority: 3, Type: "a"}, ReadyAt: 1000}}
			o.step(0, in)
		}
		blocked()
		restores := len(o.fx.Restore)
		if want := why == table.Restoring; (restores == 1) != want {
			t.Fatalf("%d: others are asked %d times", why, restores)
		}
		for at := sweepEvery; at <= 2*limit.RestoreEvery; at += sweepEvery {
			o.step(sweepEvery, Inputs{})
			if again := len(o.fx.Calls) == 1; again != (at%every == 0) {
				t.Fatalf("%d: after %v it is tried again: %v", why, at, again)
			} else if again {
				blocked()
				if asked := len(o.fx.Restore) == 1; asked != (why == table.Restoring && at%limit.RestoreEvery == 0) {
					t.Fatalf("%d: after %v others are asked: %v", why, at, asked)
				}
			}
		}
	}
}
