package table

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestIndexOrdersByPriorityThenAge(t *testing.T) {
	var x Index
	x.Put(Column{3, "a", ""}, 1, 1)
	x.Put(Column{1, "b", ""}, 9, 1)
	x.Put(Column{1, "c", ""}, 5, 1)
	x.Put(Column{1, "b", ""}, 4, 1) // an older chunk came late
	got := fmt.Sprint(x.Candidates(2, func(Column) bool { return false }))
	testkit.MustEqual(t, "result", got, "[{{1 b } 4 [] 0} {{1 c } 5 [] 0}]")
	if x.Any(func(Column) bool { return true }) {
		t.Fatal("skipped columns count")
	}
	for _, c := range []Column{{3, "a", ""}, {1, "b", ""}, {1, "c", ""}} {
		x.Seen(Head{Column: c, Empty: true})
	}
	if !x.Empty() || x.Triggers() != 0 {
		t.Fatalf("%d triggers are left", x.Triggers())
	}
}

func TestTheIndexFollowsWhatPopsTell(t *testing.T) {
	all := func(Column) bool { return false }
	var x Index
	x.Put(Column{3, "a", ""}, 5, 10)
	x.Put(Column{3, "a", ""}, 7, 2)
	x.Put(Column{3, "b", ""}, 6, 1)
	heads := func() string { return fmt.Sprint(x.Triggers(), x.Candidates(9, all)) }
	for _, step := range []struct {
		seen Head
		want string
	}{
		{Head{Column: Column{3, "a", ""}, ReadyAt: 5, Gone: 4}, "9 [{{3 a } 5 [] 0} {{3 b } 6 [] 0}]"},
		{Head{Column: Column{3, "a", ""}, ReadyAt: 7, Gone: 7}, "2 [{{3 b } 6 [] 0} {{3 a } 7 [] 0}]"},
		// More than is known has gone: another owner's.
		{Head{Column: Column{3, "a", ""}, ReadyAt: 8, Gone: 5}, "1 [{{3 b } 6 [] 0} {{3 a } 8 [] 0}]"},
		{Head{Column: Column{1, "c", ""}, ReadyAt: 9}, "1 [{{1 c } 9 [] 0} {{3 b } 6 [] 0} {{3 a } 8 [] 0}]"},
		{Head{Column: Column{3, "d", ""}, Empty: true}, "1 [{{1 c } 9 [] 0} {{3 b } 6 [] 0} {{3 a } 8 [] 0}]"},
		{Head{Column: Column{3, "b", ""}, Empty: true}, "0 [{{1 c } 9 [] 0} {{3 a } 8 [] 0}]"},
	} {
		x.Seen(step.seen)
		testkit.MustEqual(t, fmt.Sprintf("after %+v", step.seen), heads(), step.want)
	}
	if !x.Any(func(at Column) bool { return at.Type == "a" }) || x.Any(func(Column) bool { return true }) || x.Empty() {
		t.Fatal("what is left is wrong")
	}
	testkit.MustEqual(t, "without c", fmt.Sprint(x.Candidates(1, func(at Column) bool { return at.Type == "c" })), "[{{3 a } 8 [] 0}]")
}

// An index of many columns says the same as a plain list, sorted again each time.
func TestIndexOfManyColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		plain := map[Column]*indexed{}
		columns := rapid.SampledFrom([]int{20, 30, 40, 2 * blockMax}).Draw(t, "columns")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		emptied := 1 + random.IntN(9) // of ten looks at a column, how many find it empty
		for range 3 * columns {
			at := Column{1 + random.IntN(5), strconv.Itoa(random.IntN(columns)), ""}
			c, readyAt, n := plain[at], random.Int64N(1000), 1+random.IntN(9)
			if c == nil {
				c = &indexed{Column: at, head: readyAt}
			}
			switch head := (Head{Column: at, ReadyAt: readyAt, Gone: n, Empty: random.IntN(10) < emptied}); {
			case random.IntN(2) == 0:
				x.Put(at, readyAt, n)
				c.triggers, c.head = c.triggers+n, min(c.head, readyAt)
				plain[at] = c
			case head.Empty:
				x.Seen(head)
				delete(plain, at)
			default:
				x.Seen(head)
				c.triggers, c.head = max(0, c.triggers-n), readyAt
				plain[at] = c
			}
		}
		var want []Candidate
		triggers := 0
		for _, c := range plain {
			want = append(want, Candidate{Column: c.Column, Head: c.head})
			triggers += c.triggers
		}
		slices.SortFunc(want, func(a, b Candidate) int {
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Head, b.Head), strings.Compare(a.Type, b.Type))
		})
		got := x.CandidatesOf(nil, 10*columns, func(Column) bool { return false })
		if fmt.Sprint(got) != fmt.Sprint(want) || x.Triggers() != triggers || x.Empty() != (len(plain) == 0) {
			t.Fatalf("%d columns, %d triggers; want %d, %d", len(got), x.Triggers(), len(plain), triggers)
		}
		for _, n := range []int{1, columns / 6, columns} { // by the types, and by the columns
			candidatesOf(t, &x, want, random, n)
		}
		for _, block := range x.blocks {
			if len(block) == 0 || len(block) > blockMax {
				t.Fatalf("a block of %d", len(block))
			}
		}
		for c := range plain {
			x.Seen(Head{Column: c, Empty: true})
		}
		if !x.Empty() || x.Triggers() != 0 || len(x.heads) != 0 {
			t.Fatal("it is not empty")
		}
	})
}

// Columns that come in order leave full blocks behind, others halves: none is empty or too long.
func TestABlockThatIsFullIsSplit(t *testing.T) {
	const columns = 3 * blockMax
	for name, c := range map[string]struct {
		head func(n int64) int64
		most int // blocks
	}{
		"in order":   {func(n int64) int64 { return n }, 3},
		"backwards":  {func(n int64) int64 { return -n }, 6},
		"in between": {func(n int64) int64 { return n * (1 - n%2*2) }, 6},
	} {
		var x Index
		for n := range int64(columns) {
			x.Put(Column{1, strconv.FormatInt(n, 10), ""}, c.head(n), 1)
		}
		if len(x.blocks) > c.most {
			t.Errorf("%s: %d blocks, want at most %d", name, len(x.blocks), c.most)
		}
		for _, block := range x.blocks {
			if len(block) == 0 || len(block) > blockMax {
				t.Errorf("%s: a block of %d", name, len(block))
			}
		}
	}
}

// Looking for a type costs a look for each priority, so it is worth it only if there are more columns.
func TestFewTypesAreLookedForByName(t *testing.T) {
	var x Index
	for n := range 11 {
		if x.few([]string{"a", "b"}) {
			t.Fatalf("2 types are few where there are %d columns", n)
		}
		x.Put(Column{1, strconv.Itoa(n), ""}, 1, 1)
	}
	if !x.few([]string{"a", "b"}) {
		t.Fatal("2 types are not few where there are 11 columns")
	}
}

// candidatesOf compares the candidates of up to n types with those among all.
func candidatesOf(t *rapid.T, x *Index, all []Candidate, random *rand.Rand, n int) {
	types := make([]string, n)
	for i := range types {
		types[i] = strconv.Itoa(random.IntN(max(n, 20)))
	}
	slices.Sort(types)
	types = slices.Compact(types)
	limit := 1 + random.IntN(10)
	var want []Candidate
	for _, c := range all {
		if _, named := slices.BinarySearch(types, c.Type); named && c.Type != "1" && len(want) < limit {
			want = append(want, c)
		}
	}
	if got := x.CandidatesOf(types, limit, func(at Column) bool { return at.Type == "1" }); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("of %d types: %v, want %v", n, got, want)
	}
}
