package table

import (
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
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

// now is the present of these tests, Unix ms.
const now = 1_000_000

// rig is a table of which shard 0 (or more) of domain "d" is open, and the shards' calls.
type rig struct {
	*testing.T
	table *Table
	now   int64
	calls uint64
}

func open(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, table: New(), now: now}
	for shard := range 3 {
		r.table.Open("d", shard, "e")
	}
	return r
}

// do carries out a call as shard c.Shard of c.Shards (default 1).
func (r *rig) do(c Call) Outcome {
	if r.calls++; c.Seq == (Seq{}) {
		c.Seq = Seq{1, r.calls}
	}
	c.Domain, c.Epoch, c.Shards = "d", "e", max(c.Shards, 1)
	out := r.table.Do(c, r.now*1000)
	if out.Lost || out.Overtaken {
		r.Helper()
		r.Fatalf("refused: %+v", out)
	}
	return out
}

func (r *rig) put(chunks ...Chunk) {
	r.Helper()
	r.do(Call{Put: chunks})
}

// pop carries out one want.
func (r *rig) pop(w Want, stances ...Stance) Taken {
	r.Helper()
	return r.do(Call{Wants: []Want{w}, Stances: stances}).Taken[0]
}

func chunk(typ string, readyAt int64, tasks ...int) Chunk {
	return Chunk{Tasklist: list, Column: Column{Priority: 3, Type: typ}, ReadyAt: readyAt, Triggers: packed(tasks...)}
}

// want asks for n triggers of types in this order; "a1" needs a slot of stance 1.
func want(n int, types ...string) Want {
	w := Want{Tasklist: list, N: n}
	for _, typ := range types {
		c := Candidate{Column: Column{Priority: 3, Type: typ[:1]}}
		for _, digit := range typ[1:] {
			c.Path = append(c.Path, int(digit-'0'))
		}
		w.Candidates = append(w.Candidates, c)
	}
	return w
}

// pops returns the tasks that a want gives, in order.
func (r *rig) pops(w Want, stances ...Stance) []int {
	r.Helper()
	return tasks(r.pop(w, stances...))
}

func tasks(taken Taken) []int {
	var all []int
	for _, b := range taken.Batches {
		all = append(all, numbers(b.Triggers)...)
	}
	return all
}

func TestAColumnGoesByAgeThenByBytes(t *testing.T) {
	r := open(t)
	r.put(chunk("a", 5, 4, 9), chunk("a", 5, 6), chunk("a", 5, 5), chunk("a", 6, 0), chunk("a", 2, 8), chunk("a", 3, 7))
	var got []int
	for {
		next := r.pops(want(1, "a"))
		if len(next) == 0 {
			break
		}
		got = append(got, next...)
	}
	// What is left of the chunk of 4 and 9 keeps its age and stands behind 5 and 6.
	testkit.MustEqual(t, "took", got, []int{8, 7, 4, 5, 6, 9, 0})
}

func TestTheTableKeepsItsOwnCopy(t *testing.T) {
	r, c := open(t), chunk("a", 1, 1)
	r.put(c)
	copy(c.Triggers, packed(2))
	testkit.MustEqual(t, "took", r.pops(want(1, "a")), []int{1})
}

// I7: a column that never runs empty does not grow by what has gone through it.
func TestI7_WhatIsTakenLeavesNothingBehind(t *testing.T) {
	for _, held := range []int64{10, 200} {
		r := open(t)
		for at := range held {
			r.put(chunk("a", at, 1))
		}
		for at := held; at < 5_000; at++ {
			r.put(chunk("a", at, 1))
			if got := r.pops(want(1, "a")); len(got) != 1 {
				t.Fatalf("took %v", got)
			}
		}
		if room := cap(r.table.domains["d"].lives[0].lists[list][Column{3, "a", ""}].chunks); room > 1_000 {
			t.Fatalf("room for %d chunks is kept for %d", room, held)
		}
		if got := r.pops(want(1000, "a")); len(got) != int(held) {
			t.Fatalf("%d are left, want %d", len(got), held)
		}
		testkit.MustEqual(t, "tasklists are kept, and all are empty", len(r.table.domains["d"].lives[0].lists), 0)
	}
}

// A candidate whose head cannot be older than what is there is not looked at.
func TestCandidatesAreLookedAtOnlyWhereTheyMayBeOlder(t *testing.T) {
	r := open(t)
	r.put(chunk("a", 5, 1), chunk("a", 6, 2), chunk("b", 6, 3), chunk("c", 9, 4))
	w := want(1, "a", "b", "c")
	w.Candidates[1].Head, w.Candidates[2].Head = 6, 9
	less := w // with a lower priority, which is not looked at either
	less.Candidates = append(slices.Clone(w.Candidates), Candidate{Column: Column{4, "a", ""}})
	got := r.pop(less)
	testkit.MustEqual(t, "looked at", got.Heads, []Head{{Column: Column{3, "a", ""}, ReadyAt: 6, Gone: 1}})
	w.N = 3
	got = r.pop(w)
	expect := []Head{{Column: Column{3, "a", ""}, Empty: true, Gone: 1}, {Column: Column{3, "b", ""}, Empty: true, Gone: 1}, {Column: Column{3, "c", ""}, Empty: true, Gone: 1}}
	testkit.MustEqual(t, "looked at", got.Heads, expect)
	if got := r.pop(w); len(got.Batches) != 0 || len(got.Heads) != 3 || !got.Heads[0].Empty {
		t.Fatalf("an empty table gave %+v", got)
	}
}

// Of the candidates of a limit without room only the first that holds anything is looked at: the others are
// taken for what they are said to hold. Those of another limit are looked at.
func TestOneCandidateOfAFullLimitIsLookedAt(t *testing.T) {
	r := open(t)
	r.put(chunk("b", 5, 1), chunk("c", 6, 2), chunk("d", 7, 3))
	w := want(9, "a0", "b0", "c0", "d1", "e0")
	for i := range w.Candidates {
		w.Candidates[i].Head = int64(i)
	}
	got := r.pop(w, Stance{Ref: "type/a", Max: 1, Held: 1}, Stance{Ref: "type/d", Max: 2, Held: 2})
	expect := []Head{
		{Column: Column{3, "a", ""}, Empty: true},
		{Column: Column{3, "b", ""}, ReadyAt: 5},
		{Column: Column{3, "c", ""}, ReadyAt: 2},
		{Column: Column{3, "d", ""}, ReadyAt: 7},
		{Column: Column{3, "e", ""}, ReadyAt: 4},
	}
	testkit.Equal(t, "looked at", got.Heads, expect)
	testkit.Equal(t, "blocked by", got.Blocked, []Blocked{{0, "type/a", Full}, {1, "type/d", Full}})
}
