package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// plainGroup is what a list knows of a column that has a group.
type plainGroup struct {
	Column
	key, age int64
	n        int
	aside    bool
}

// An index of groups says the same as a plain list: who is ready comes by rank, one type after another by the age of its first; who is
// aside does not come, and comes back at the rank that is said, at the earliest.
func TestTheIndexOfGroupsFollowsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		plain := map[Column]*plainGroup{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			at := Column{rapid.IntRange(1, 2).Draw(t, "priority"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "type"), rapid.SampledFrom([]string{"g", "h", "i", "j", NoGroup}).Draw(t, "group")}
			c := plain[at]
			rank, age := rapid.Int64Range(1, 50).Draw(t, "rank"), rapid.Int64Range(1, 50).Draw(t, "age")
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what < 2:
				x.PutGroup(at, age, rank, 5, 3)
				if c == nil {
					plain[at] = &plainGroup{Column: at, key: rank, age: age, n: 3}
					continue
				}
				shift := x.Shift(at)
				c.key, c.age, c.n = min(c.key, rank+shift), min(c.age, age), c.n+3
			case what == 2:
				if got, want := x.Aside(at), c != nil && !c.aside; got != want {
					t.Fatalf("set aside: %v, want %v", got, want)
				} else if want {
					c.aside = true
				}
			case what == 3:
				x.Back(at, rank)
				if c != nil && c.aside {
					c.aside, c.key = false, max(c.key, rank)
				}
			case what == 4 && c != nil:
				shift := x.Shift(at)
				x.Seen(Head{Column: at, ReadyAt: age, Rank: rank, Gone: 1})
				c.key, c.age, c.n = rank+shift, age, max(0, c.n-1)
			case c != nil:
				x.Seen(Head{Column: at, Empty: true})
				delete(plain, at)
			}
		}
		compareGroups(t, &x, plain)
	})
}

// compareGroups compares candidates and counts.
func compareGroups(t *rapid.T, x *Index, plain map[Column]*plainGroup) {
	var ready []*plainGroup
	triggers, types := 0, map[string]bool{}
	heads := map[Column]*plainGroup{}
	first := func(a, b *plainGroup) int {
		return cmp.Or(cmp.Compare(a.key, b.key), strings.Compare(a.Group, b.Group))
	}
	for at, c := range plain {
		triggers += c.n
		types[at.Type] = true
		if c.aside {
			continue
		}
		ready = append(ready, c)
		if head := heads[at.Any()]; head == nil || first(c, head) < 0 {
			heads[at.Any()] = c
		}
	}
	slices.SortFunc(ready, func(a, b *plainGroup) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(heads[a.Any()].age, heads[b.Any()].age), strings.Compare(a.Type, b.Type), first(a, b))
	})
	limit := rapid.IntRange(0, 12).Draw(t, "limit")
	var want []string
	for _, c := range ready[:min(limit, len(ready))] {
		want = append(want, fmt.Sprint(c.Column, heads[c.Any()].age))
	}
	var got []string
	for _, c := range x.Candidates(nil, 0, limit, func(Column) bool { return false }) {
		got = append(got, fmt.Sprint(c.Column, c.Head))
	}
	testkit.MustEqual(t, "candidates", got, want)
	if x.Triggers() != triggers || x.Empty() != (len(plain) == 0) || len(x.Types(9)) != len(types) || x.Holds([]string{"a"}) != types["a"] || x.Groups() != (len(plain) > 0) {
		t.Fatalf("%d triggers of the types %v, want %d of %v", x.Triggers(), x.Types(9), triggers, types)
	}
	testkit.MustEqual(t, "triggers of each type", x.TriggersOfType("a")+x.TriggersOfType("b"), triggers)
}

// What a look sets aside makes room for those behind it; where all of a type are passed, tasks without a group are not.
func TestALookMaySetAside(t *testing.T) {
	var x Index
	for i := range 10 {
		x.PutGroup(Column{3, "a", fmt.Sprint("g", i)}, 1, int64(i), 1, 1)
	}
	x.Put(Column{3, "b", ""}, 9, 1)
	got := x.Candidates(nil, 0, 3, func(at Column) bool {
		return at.Group != AnyGroup && at.Group != "" && at.Group < "g8" && x.Aside(at)
	})
	if want := "[{{3 a g8} 1 [] 1073741824} {{3 a g9} 1 [] 1073741824} {{3 b } 9 [] 0}]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	x.PutGroup(Column{3, "a", NoGroup}, 1, 50, 1, 1)
	got = x.Candidates(nil, 0, 3, func(at Column) bool { return at.Group == AnyGroup })
	if want := "[{{3 a /} 1 [] 1073741824} {{3 b } 9 [] 0}]"; fmt.Sprint(got) != want {
		t.Errorf("without groups: %v, want %s", got, want)
	}
}

// Of what is wanted each gets what comes first by rank, and some at least.
func TestGroupsShareByRank(t *testing.T) {
	var x Index
	x.PutGroup(Column{3, "a", "light"}, 1, 0, 100, 500)
	x.PutGroup(Column{3, "a", "heavy"}, 1, 0, 25, 500)
	x.PutGroup(Column{3, "a", "late"}, 1, 9000, 100, 500)
	w := Want{N: 100, Candidates: x.Candidates(nil, 0, 9, func(Column) bool { return false })}
	x.Share(&w)
	most := map[string]int{}
	for _, c := range w.Candidates {
		most[c.Group] = c.Most
	}
	if most["light"] < 18 || most["light"] > 22 || most["heavy"] < 78 || most["heavy"] > 82 || most["late"] != inOrderMin {
		t.Errorf("of 100 they get %v", most)
	}
	w = Want{N: 2000, Candidates: x.Candidates(nil, 0, 9, func(Column) bool { return false })}
	x.Share(&w)
	for _, c := range w.Candidates {
		if c.Most < 500 {
			t.Errorf("there is enough for all, and of %s at most %d are taken", c.Group, c.Most)
		}
	}
}

// All columns are known, in their order, aside or not.
func TestAllColumnsAreFound(t *testing.T) {
	var x Index
	want := []Column{{1, "a", ""}, {1, "a", NoGroup}, {1, "a", "g"}, {1, "b", "g"}, {1, "b", "h"}, {2, "a", "g"}}
	for i := range want {
		if at := want[len(want)-1-i]; at.Group == "" {
			x.Put(at, 1, 1)
		} else {
			x.PutGroup(at, 1, 1, 1, 1)
		}
	}
	x.Aside(Column{1, "a", "g"})
	testkit.MustEqual(t, "columns", slices.Collect(x.All()), want)
}
