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
)

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
		got := x.Candidates(nil, 0, 10*columns, func(Column) bool { return false })
		if fmt.Sprint(got) != fmt.Sprint(want) || x.Triggers() != triggers || x.Empty() != (len(plain) == 0) {
			t.Fatalf("%d columns, %d triggers; want %d, %d", len(got), x.Triggers(), len(plain), triggers)
		}
		some, ofSome := []string{"1", "10", "11"}, 0
		for _, c := range plain {
			if slices.Contains(some, c.Type) {
				ofSome += c.triggers
			}
		}
		other := slices.ContainsFunc(want, func(c Candidate) bool { return c.Type != "1" })
		for _, typ := range some {
			ofSome -= x.TriggersOfType(typ)
		}
		if ofSome != 0 || x.Any(func(at Column) bool { return at.Type == "1" }) != other {
			t.Fatalf("%d triggers of %v are not counted", ofSome, some)
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
	if got := x.Candidates(types, 0, limit, func(at Column) bool { return at.Type == "1" }); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("of %d types: %v, want %v", n, got, want)
	}
}
