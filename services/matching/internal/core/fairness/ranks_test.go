package fairness

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var shared = table.Column{Priority: 3, Type: "a"}

// one is a chunk of n triggers that became ready at an instant.
func one(n int, readyAt int64) *table.Chunk {
	return &table.Chunk{Column: shared, ReadyAt: readyAt, Cost: 1, Triggers: make([]byte, n*ids.TriggerBytes)}
}

// at are the places of some ranks.
func at(ranks []Rank) (all []int64) {
	for _, r := range ranks {
		all = append(all, r.At)
	}
	return all
}

// A column without groups has no ranks until a task with a group comes. Then a group with many tasks holds another one up by one of them.
func TestI11_AGroupFollowsItsOwnTasks(t *testing.T) {
	var r Ranks
	testkit.Equal(t, "without groups", r.Assign(one(2, 5), nil, 0, nil), nil)
	testkit.Equal(t, "a group with three tasks", at(r.Assign(one(3, 1000), []string{"a", "a", "a"}, 0, nil)), []int64{1000, 1000 + rankStep, 1000 + 2*rankStep})
	testkit.Equal(t, "another group", at(r.Assign(one(1, 2000), []string{"b"}, 1000, nil)), []int64{1000})
	testkit.Equal(t, "tasks without a group", at(r.Assign(one(1, 2000), nil, 1000, nil)), []int64{1000})
	weights := Weights{"half": 0.5, "idle": 0}
	testkit.Equal(t, "a group of half the weight", at(r.Assign(one(2, 2000), []string{"half", "half"}, 1000, weights)), []int64{1000, 1000 + 2*rankStep})
	if !weights.Idle("idle") || weights.Idle("half") || weights.Idle("other") {
		t.Error("only a group of weight 0 is idle")
	}
}

// The virtual time follows what was taken, and goes back to what was put aside when it comes back.
func TestI11_TheVirtualTimeIsThatOfWhatIsTaken(t *testing.T) {
	var r Ranks
	r.Assign(one(3, 1000), []string{"a", "a", "a"}, 0, nil)
	taken := one(3, 1000)
	taken.Rank, taken.Step = 1000, rankStep
	r.Taken(taken, 0)
	testkit.Equal(t, "after three", r.Now(shared), 1000+2*rankStep)
	r.Aside(shared, 1000+rankStep)
	testkit.Equal(t, "who comes while some is aside", at(r.Assign(one(1, 9), []string{"b"}, 1000, nil)), []int64{1000 + rankStep})
	r.Back(shared)
	testkit.Equal(t, "when it is back", r.Now(shared), 1000+rankStep)
	r.End(shared, func(table.Column) bool { return true })
	testkit.Equal(t, "while something waits", r.Now(shared), 1000+rankStep)
	r.Sweep(func(table.Column) bool { return false })
	testkit.Equal(t, "when nothing waits", r.Now(shared), 0)
	if r.Assign(one(1, 9), nil, 0, nil) == nil {
		t.Error("it is forgotten that the column has groups")
	}
}

// What a new owner finds in the tables goes on where it was.
func TestI11_WhatIsFoundGoesOn(t *testing.T) {
	var r Ranks
	mine := shared
	mine.Group = "a"
	r.Found(&table.Known{Column: mine, Rank: 5000, Triggers: 2}, rankStep)
	c := one(1, 9)
	c.Group = "a"
	testkit.Equal(t, "behind what waits of its group", at(r.Assign(c, nil, 0, nil)), []int64{5000 + 2*rankStep})
	c.Group = "b"
	testkit.Equal(t, "beside another group", at(r.Assign(c, nil, 0, nil)), []int64{5000})
}

// A group that is behind the others is forgotten while these go on.
func TestGroupsThatHaveHadTheirTurnAreForgotten(t *testing.T) {
	var all line
	all.begin(1000)
	for i := range 100_000 {
		all.now = all.assign(fmt.Sprint("g", i), 1, 1) + rankStep
		if len(all.next) > 2*groupsKeptMin {
			t.Fatalf("%d groups are known after %d", len(all.next), i)
		}
	}
	var first line
	if first.begin(5); first.assign("a", 1, 1) != 5 || first.assign("a", 1, 1) != 5+rankStep || first.assign("b", 1, 1) != 5 {
		t.Error("the first ranks are not those of now")
	}
	var endless line
	endless.begin(IdleFrom - 3)
	for range 10 {
		if rank := endless.assign("a", weightMin, 1); rank >= IdleFrom {
			t.Fatalf("rank %d is among those of groups of weight 0", rank)
		}
	}
}

// run is n ranks of one step.
func run(first, step int64, n int) (all []int64) {
	for i := range n {
		all = append(all, first+int64(i)*step)
	}
	return all
}

// Within a chunk all steps count as equal, so one ends where the next rank is far, or the steps change.
func TestChunksEndWhereTurnsAreFar(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks []int64
		want  []int
	}{
		{"one", []int64{5}, []int{1}},
		{"equal", []int64{5, 5, 5}, []int{3}},
		{"one before a flood", []int64{5, 1e9, 1e9 + rankStep, 1e9 + 2*rankStep}, []int{1, 3}},
		{"one behind", []int64{5, 5, 6, 1e9}, []int{3, 1}},
		{"a small weight", []int64{0, 1e6, 2e6, 3e6}, []int{4}},
		{"two weights", []int64{0, 0, 1e4, 2e4, 4e4, 5e4}, []int{6}},
		{"small steps, then large ones", append(run(0, 2500, 40), run(1e5, rankStep, 40)...), []int{48, 32}},
		{"many at once, then steps", append(run(0, 0, 40), run(0, rankStep, 40)...), []int{41, 39}},
	} {
		all := make([]filed, len(c.ranks))
		for i, rank := range c.ranks {
			all[i].At = rank
		}
		var got []int
		for from := 0; from < len(all); {
			to, step := chunkEnd(all, from)
			for i := from; i < to; i++ { // no more than rankOff places from where it is
				if off := all[i].At - all[from].At - int64(i-from)*step; max(off, -off) > rankOff*step {
					t.Errorf("%s: the %dth is %d off, of steps of %d", c.name, i, off, step)
				}
			}
			got = append(got, to-from)
			from = to
		}
		testkit.Equal(t, fmt.Sprintf("%s: chunks of", c.name), got, c.want)
	}
	if to, _ := chunkEnd(make([]filed, 1000), 0); to != table.ChunkTriggersMax {
		t.Error("a chunk is too long")
	}
}
