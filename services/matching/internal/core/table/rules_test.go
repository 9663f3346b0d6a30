package table

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

var list = Tasklist{Domain: "d", Name: "l"}

// packed are triggers of tasks by number; a higher number has higher bytes.
func packed(numbers ...int) []byte {
	var all []byte
	for _, n := range numbers {
		all = ids.AppendTrigger(all, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(n))})
	}
	return all
}

// member is the booking of a task by number.
func member(n int) string { return string(packed(n)[:ids.BookingBytes]) }

// numbers are the tasks of packed triggers.
func numbers(triggers []byte) []int {
	var all []int
	for tr := range slices.Chunk(triggers, ids.TriggerBytes) {
		for n := 0; ; n++ {
			if string(packed(n)) == string(tr) {
				all = append(all, n)
				break
			}
		}
	}
	return all
}

// open returns a table of shard 0 and domain "d" that is whole.
func open(t *testing.T) *Table {
	t.Helper()
	table := New()
	table.Open("d", 0, "e")
	if !table.Restore("d", 0, "e", nil, true) {
		t.Fatal("not restored")
	}
	return table
}

func chunk(typ string, readyAt int64, tasks ...int) Chunk {
	return Chunk{Tasklist: list, Column: Column{Priority: 3, Type: typ}, ReadyAt: readyAt, Triggers: packed(tasks...)}
}

// want asks for n triggers of types in this order, with limits ("a" or "a:2").
func want(n int, types ...string) Want {
	w := Want{Tasklist: list, N: n, Now: 100, Until: 200}
	for _, typ := range types {
		c := Candidate{Column: Column{Priority: 3, Type: typ[:1]}}
		if len(typ) > 1 {
			if _, err := fmt.Sscanf(typ[1:], ":%d", &c.Limit); err != nil {
				panic(err)
			}
		}
		w.Candidates = append(w.Candidates, c)
	}
	return w
}

// pops returns the tasks that a pop gives, in order.
func pops(t *testing.T, table *Table, w Want) []int {
	t.Helper()
	got, ok := table.Pop(0, w)
	if !ok {
		t.Fatal("refused")
	}
	var all []int
	for _, b := range got.Batches {
		all = append(all, numbers(b.Triggers)...)
	}
	return all
}

func TestAColumnGoesByAgeThenByBytes(t *testing.T) {
	table := open(t)
	table.Put(0, []Chunk{
		chunk("a", 5, 4, 9), chunk("a", 5, 6), chunk("a", 5, 5), chunk("a", 6, 0), chunk("a", 2, 8), chunk("a", 3, 7),
	})
	var got []int
	for {
		next := pops(t, table, want(1, "a"))
		if len(next) == 0 {
			break
		}
		got = append(got, next...)
	}
	// What is left of the chunk of 4 and 9 keeps its age and stands behind 5 and 6.
	if expect := []int{8, 7, 4, 5, 6, 9, 0}; !slices.Equal(got, expect) {
		t.Fatalf("took %v, want %v", got, expect)
	}
}

func TestAChunkStoredTwiceIsOne(t *testing.T) {
	table := open(t)
	for range 2 {
		table.Put(0, []Chunk{chunk("a", 5, 1, 2), chunk("a", 6, 1, 2), chunk("a", 5, 3), chunk("a", 4, 9)})
	}
	if got, expect := pops(t, table, want(100, "a")), []int{9, 1, 2, 3, 1, 2}; !slices.Equal(got, expect) {
		t.Fatalf("took %v, want %v", got, expect)
	}
}

func TestTheTableKeepsItsOwnCopy(t *testing.T) {
	table, c := open(t), chunk("a", 1, 1)
	table.Put(0, []Chunk{c})
	copy(c.Triggers, packed(2))
	if got := pops(t, table, want(1, "a")); !slices.Equal(got, []int{1}) {
		t.Fatalf("took %v", got)
	}
}

// I7: a column that never runs empty does not grow by what has gone through it.
func TestI7_WhatIsTakenLeavesNothingBehind(t *testing.T) {
	for _, held := range []int64{10, 200} {
		table := open(t)
		for at := range held {
			table.Put(0, []Chunk{chunk("a", at, 1)})
		}
		for at := held; at < 5_000; at++ {
			table.Put(0, []Chunk{chunk("a", at, 1)})
			if got := pops(t, table, want(1, "a")); len(got) != 1 {
				t.Fatalf("took %v", got)
			}
		}
		if room := cap(table.epoch("d", 0).lists[list][Column{3, "a"}].chunks); room > 1_000 {
			t.Fatalf("room for %d chunks is kept for %d", room, held)
		}
		if got := pops(t, table, want(1000, "a")); len(got) != int(held) {
			t.Fatalf("%d are left, want %d", len(got), held)
		}
		if n := len(table.epoch("d", 0).lists); n != 0 {
			t.Fatalf("%d tasklists are kept, and all are empty", n)
		}
	}
}

func TestTheOldestHeadComesFirstAndPriorityBeforeAge(t *testing.T) {
	table := open(t)
	urgent := chunk("c", 9, 7)
	urgent.Priority = 1
	table.Put(0, []Chunk{chunk("a", 2, 1), chunk("b", 1, 2), chunk("a", 3, 3), chunk("b", 3, 4), urgent})
	w := want(10, "a", "b")
	w.Candidates = slices.Insert(w.Candidates, 0, Candidate{Column: urgent.Column})
	// Of equal heads the first candidate's goes first.
	if got, expect := pops(t, table, w), []int{7, 2, 1, 3, 4}; !slices.Equal(got, expect) {
		t.Fatalf("took %v, want %v", got, expect)
	}
}

// A candidate whose head cannot be older than what is there is not looked at.
func TestCandidatesAreLookedAtOnlyWhereTheyMayBeOlder(t *testing.T) {
	table := open(t)
	table.Put(0, []Chunk{chunk("a", 5, 1), chunk("a", 6, 2), chunk("b", 6, 3), chunk("c", 9, 4)})
	w := want(1, "a", "b", "c")
	w.Candidates[1].Head, w.Candidates[2].Head = 6, 9
	less := w // with a lower priority, which is not looked at either
	less.Candidates = append(slices.Clone(w.Candidates), Candidate{Column: Column{4, "a"}})
	got, _ := table.Pop(0, less)
	if expect := []Head{{Column: Column{3, "a"}, ReadyAt: 6, Gone: 1}}; !slices.Equal(got.Heads, expect) {
		t.Fatalf("looked at %+v, want %+v", got.Heads, expect)
	}
	w.N = 3
	got, _ = table.Pop(0, w)
	expect := []Head{{Column: Column{3, "a"}, Empty: true, Gone: 1}, {Column: Column{3, "b"}, Empty: true, Gone: 1}, {Column: Column{3, "c"}, Empty: true, Gone: 1}}
	if !slices.Equal(got.Heads, expect) {
		t.Fatalf("looked at %+v, want %+v", got.Heads, expect)
	}
	if got, _ := table.Pop(0, w); len(got.Batches) != 0 || len(got.Heads) != 3 || !got.Heads[0].Empty {
		t.Fatalf("an empty table gave %+v", got)
	}
}

func TestI8_AFullLimitSetsItsTypeAside(t *testing.T) {
	table := open(t)
	table.Put(0, []Chunk{chunk("a", 1, 1, 2, 3), chunk("b", 2, 4)})
	got, _ := table.Pop(0, want(10, "a:2", "b"))
	if len(got.Batches) != 2 || !got.Batches[0].Booked || got.Batches[1].Booked || !slices.Equal(got.Full, []string{"a"}) {
		t.Fatalf("got %+v", got)
	}
	if taken := numbers(got.Batches[0].Triggers); !slices.Equal(taken, []int{1, 2}) {
		t.Fatalf("took %v", taken)
	}
	if n := table.Slots("d", []string{"a", "b", "c"}, 199); !slices.Equal(n, []int{2, 0, 0}) {
		t.Fatalf("%v are booked", n)
	}
	if got := pops(t, table, want(10, "a:2", "b")); len(got) != 0 {
		t.Fatalf("took %v beyond the limit", got)
	}
	// A free slot is used, and the limit is then full for the caller to know.
	if got, _ := table.Pop(0, want(10, "a:3")); len(got.Batches) != 1 || !slices.Equal(got.Full, []string{"a"}) {
		t.Fatalf("got %+v", got)
	}
	table.Put(0, []Chunk{chunk("a", 1, 5)})
	if got, _ := table.Pop(0, want(10, "a:9")); len(got.Batches) != 1 || got.Full != nil {
		t.Fatalf("got %+v", got)
	}
}

func TestABookingEndsWhenItExpires(t *testing.T) {
	table := open(t)
	table.Put(0, []Chunk{chunk("a", 1, 1, 2, 3)})
	w := want(1, "a:1")
	if got := pops(t, table, w); !slices.Equal(got, []int{1}) {
		t.Fatalf("took %v", got)
	}
	if w.Now = 199; len(pops(t, table, w)) != 0 {
		t.Fatal("a booking expired early")
	}
	if n := table.Slots("d", []string{"a"}, 199); n[0] != 1 {
		t.Fatalf("%v are booked", n)
	}
	w.Now, w.Until = 200, 300
	if got := pops(t, table, w); !slices.Equal(got, []int{2}) {
		t.Fatalf("took %v when the booking had expired", got)
	}
	if n := table.Slots("d", []string{"a"}, 300); n[0] != 0 {
		t.Fatalf("%v are booked", n)
	}
	if n := table.Slots("gone", []string{"a"}, 0); !slices.Equal(n, []int{0}) {
		t.Fatalf("%v in a domain that is not known", n)
	}
}

// Purging what has expired keeps the rest, and still finds it when its time comes.
func TestBookingsExpireOneByOne(t *testing.T) {
	table := open(t)
	table.Restore("d", 0, "e", []Booking{{"a", member(1), 10}, {"a", member(2), 20}, {"a", member(3), 30}}, false)
	for now, left := range map[int64]int{9: 3, 10: 2, 19: 2, 20: 1, 29: 1, 30: 0} {
		fresh := open(t)
		fresh.Restore("d", 0, "e", table.Bookings("d", []string{"a"}, 0), false)
		for at := range now { // step by step, and at once below
			fresh.Slots("d", []string{"a"}, at)
		}
		if n := fresh.Slots("d", []string{"a"}, now)[0]; n != left {
			t.Errorf("%d at %d, want %d", n, now, left)
		}
	}
	if got := table.Bookings("d", []string{"a", "b"}, 20); !slices.Equal(got, []Booking{{"a", member(3), 30}}) {
		t.Errorf("beyond 20: %v", got)
	}
	if got := table.Bookings("gone", []string{"a"}, 0); got != nil {
		t.Errorf("of a domain that is not known: %v", got)
	}
}

func TestADoubleOfABookedTriggerIsDropped(t *testing.T) {
	table := open(t)
	table.Restore("d", 0, "e", []Booking{{"a", member(2), 500}}, false)
	table.Put(0, []Chunk{chunk("a", 1, 2), chunk("a", 2, 1, 2, 3)})
	got, _ := table.Pop(0, want(10, "a:9"))
	if len(got.Batches) != 1 || !slices.Equal(numbers(got.Batches[0].Triggers), []int{1, 3}) {
		t.Fatalf("got %+v", got.Batches)
	}
	if got.Heads[0].Gone != 4 {
		t.Fatalf("%d are gone, want the doubles too", got.Heads[0].Gone)
	}
	// Doubles use neither slots nor the want.
	table.Put(0, []Chunk{chunk("a", 1, 1, 3, 2, 5), chunk("a", 2, 6)})
	if got := pops(t, table, want(2, "a:5")); !slices.Equal(got, []int{5, 6}) {
		t.Fatalf("took %v", got)
	}
}

func TestSettleTellsWhatIsMissingAndWhatIsFreed(t *testing.T) {
	table := open(t)
	table.Restore("d", 0, "e", []Booking{{"a", member(1), 100}, {"a", member(2), 100}, {"a", member(3), 100}}, false)
	out := table.Settle(Settlement{Domain: "d", Type: "a", Limit: 2, Extend: []Extension{{member(1), 300}, {member(9), 300}, {member(2), 50}}})
	if !slices.Equal(out.Missing, []int{1}) || out.Freed {
		t.Fatalf("%+v", out)
	}
	if n := table.Slots("d", []string{"a"}, 99)[0]; n != 3 {
		t.Fatalf("%d are booked: an expiry was moved to an earlier time", n)
	}
	for _, step := range []struct {
		release []byte
		limit   int
		freed   bool
	}{
		{[]byte(member(9)), 3, false},             // none of them
		{[]byte(member(1)), 2, false},             // three of two before, two now: still full
		{[]byte(member(2)), 0, false},             // no limit
		{[]byte(member(3) + member(1)), 1, true},  // one of one before
		{[]byte(member(3))[:2], 1, false},         // not a whole booking
		{[]byte(member(1) + member(2)), 1, false}, // nobody waited for it
	} {
		if out := table.Settle(Settlement{Domain: "d", Type: "a", Limit: step.limit, Release: step.release}); out.Freed != step.freed {
			t.Fatalf("release of %x, limit %d: %+v", step.release, step.limit, out)
		}
	}
	if n := table.Slots("d", []string{"a"}, 0)[0]; n != 0 {
		t.Fatalf("%d are booked", n)
	}
}

func TestAnEpochThatIsNotWholeBooksNothing(t *testing.T) {
	table := New()
	if lost := table.Put(0, []Chunk{chunk("a", 1, 1), chunk("a", 2, 2)}); !slices.Equal(lost, []string{"d"}) {
		t.Fatalf("lost %q", lost)
	}
	if _, ok := table.Pop(0, want(1, "a")); ok {
		t.Fatal("popped without an epoch")
	}
	if opened := table.Open("d", 0, "e"); opened.Epoch != "e" || opened.Whole || opened.Columns != nil {
		t.Fatalf("opened %+v", opened)
	}
	if lost := table.Put(0, []Chunk{chunk("a", 1, 1)}); lost != nil {
		t.Fatalf("lost %q", lost)
	}
	if lost := table.Put(1, []Chunk{chunk("a", 1, 1)}); !slices.Equal(lost, []string{"d"}) {
		t.Fatalf("another shard lost %q", lost)
	}
	if _, ok := table.Pop(0, want(1, "a", "b:1")); ok {
		t.Fatal("popped of a limited type")
	}
	if table.Restore("d", 0, "other", nil, true) || table.Restore("d", 1, "e", nil, true) || table.Restore("gone", 0, "e", nil, true) {
		t.Fatal("restored an epoch that is not")
	}
	if got := pops(t, table, want(1, "a")); !slices.Equal(got, []int{1}) {
		t.Fatalf("took %v", got)
	}
	table.Restore("d", 0, "e", nil, true)
	table.Restore("d", 0, "e", nil, false)
	if opened := table.Open("d", 0, "f"); opened.Epoch != "e" || !opened.Whole {
		t.Fatalf("opened %+v", opened)
	}
	table.Forget()
	if _, ok := table.Pop(0, want(1, "a")); ok {
		t.Fatal("popped from what was forgotten")
	}
}

func TestALostEpochIsKnownByItsError(t *testing.T) {
	err := error(&LostError{Domains: []string{"a", "b"}})
	if !errors.Is(err, ErrEpochLost) || err.Error() != "the table has lost its memory: a, b" {
		t.Fatal(err)
	}
}

func TestOpenTellsTheColumnsInOrder(t *testing.T) {
	table := open(t)
	var stored []Chunk
	for _, k := range []Known{
		{Tasklist{"d", "m", 0}, Column{1, "a"}, 1, 1},
		{Tasklist{"d", "l", 1}, Column{1, "a"}, 2, 1},
		{Tasklist{"d", "l", 0}, Column{2, "a"}, 3, 1},
		{Tasklist{"d", "l", 0}, Column{1, "b"}, 4, 1},
		{Tasklist{"d", "l", 0}, Column{1, "a"}, 5, 1},
	} {
		stored = append(stored, Chunk{Tasklist: k.Tasklist, Column: k.Column, ReadyAt: k.ReadyAt, Triggers: packed(1)})
	}
	second := stored[4]
	second.ReadyAt, second.Triggers = 9, packed(2, 3)
	table.Put(0, append(stored, second))
	var ages []int64
	columns := table.Open("d", 0, "").Columns
	for _, k := range columns {
		ages = append(ages, k.ReadyAt)
	}
	if !slices.Equal(ages, []int64{5, 4, 3, 2, 1}) || columns[0].Triggers != 3 {
		t.Fatalf("opened %+v", columns)
	}
	pops(t, table, Want{Tasklist: list, N: 9, Candidates: []Candidate{{Column: Column{1, "a"}}, {Column: Column{1, "b"}}, {Column: Column{2, "a"}}}})
	if columns := table.Open("d", 0, "").Columns; len(columns) != 2 {
		t.Fatalf("after all of one tasklist: %+v", columns)
	}
}

func TestTheIndexFollowsWhatPopsTell(t *testing.T) {
	all := func(string) bool { return false }
	var x Index
	x.Put(Column{3, "a"}, 5, 10)
	x.Put(Column{3, "a"}, 7, 2)
	x.Put(Column{3, "b"}, 6, 1)
	heads := func() string { return fmt.Sprint(x.Triggers(), x.Candidates(nil, 9, all)) }
	for _, step := range []struct {
		seen Head
		want string
	}{
		{Head{Column: Column{3, "a"}, ReadyAt: 5, Gone: 4}, "9 [{{3 a} 5 0} {{3 b} 6 0}]"},
		{Head{Column: Column{3, "a"}, ReadyAt: 7, Gone: 7}, "2 [{{3 b} 6 0} {{3 a} 7 0}]"},
		// More than is known has gone: another owner's.
		{Head{Column: Column{3, "a"}, ReadyAt: 8, Gone: 5}, "1 [{{3 b} 6 0} {{3 a} 8 0}]"},
		{Head{Column: Column{1, "c"}, ReadyAt: 9}, "1 [{{1 c} 9 0} {{3 b} 6 0} {{3 a} 8 0}]"},
		{Head{Column: Column{3, "d"}, Empty: true}, "1 [{{1 c} 9 0} {{3 b} 6 0} {{3 a} 8 0}]"},
		{Head{Column: Column{3, "b"}, Empty: true}, "0 [{{1 c} 9 0} {{3 a} 8 0}]"},
	} {
		x.Seen(step.seen)
		if got := heads(); got != step.want {
			t.Fatalf("after %+v: %s, want %s", step.seen, got, step.want)
		}
	}
	if !x.Any(func(typ string) bool { return typ == "a" }) || x.Any(func(typ string) bool { return true }) || x.Empty() {
		t.Fatal("what is left is wrong")
	}
	if got := fmt.Sprint(x.Candidates(nil, 1, func(typ string) bool { return typ == "c" })); got != "[{{3 a} 8 0}]" {
		t.Fatalf("without c: %s", got)
	}
}
