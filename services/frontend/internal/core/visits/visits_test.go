package visits

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func dice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// The first of those that have work is by weight, whichever have work.
func TestOrderIsByWeight(t *testing.T) {
	const polls = 70_000
	weights := []int{1, 2, 4}
	for mask := 1; mask < 8; mask++ {
		t.Run(fmt.Sprintf("%03b", mask), func(t *testing.T) {
			d, got, total := dice(7), make([]int, 3), 0
			for i, w := range weights {
				if mask>>i&1 == 1 {
					total += w
				}
			}
			for range polls {
				order := Order(d, weights)
				if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, []int{0, 1, 2}) {
					t.Fatalf("the order is %v", order)
				}
				got[order[slices.IndexFunc(order, func(i int) bool { return mask>>i&1 == 1 })]]++
			}
			for i, w := range weights {
				want := 0.0
				if mask>>i&1 == 1 {
					want = float64(w) / float64(total)
				}
				if share := float64(got[i]) / polls; math.Abs(share-want) > 0.03*want {
					t.Errorf("weight %d got %.4f of the polls, want %.4f", w, share, want)
				}
			}
		})
	}
}

var start = time.Unix(1_000_000, 0)

// book is a book with a clock.
type book struct {
	t *testing.T
	*Book
	now  time.Time
	last uint64
}

func newBook(t *testing.T) *book { return &book{t: t, Book: New(dice(1)), now: start} }

func (b *book) add(most int, types []string, names ...string) *Poll {
	b.last++
	var all []Entry
	for _, n := range names {
		all = append(all, Entry{n, 1})
	}
	return b.Add(b.last, "d", all, types, most, b.now)
}

// round has a poll visit all that it is to visit, where nothing is, and returns where it was.
func (b *book) round(p *Poll) []string {
	var seen []string
	for {
		to, ok := b.Next(p, b.now)
		if !ok {
			return seen
		}
		seen = append(seen, to.Name)
		b.Nothing(p, b.now)
	}
}

func (b *book) wanted(list string, all ...Want) []uint64 {
	var numbers []uint64
	for _, p := range b.Wanted(Tasklist{"d", list}, all, b.now) {
		if to, ok := b.Next(p, b.now); !ok || to.Name != list {
			b.t.Errorf("poll %d goes to %v", p.Number, to)
		}
		numbers = append(numbers, p.Number)
	}
	return numbers
}

// A poll visits each tasklist once, then it rests until one is wanted that takes the type: who came first goes first, as many as are enough.
func TestPollsGoWhereTheyAreWanted(t *testing.T) {
	b := newBook(t)
	p1, p2, p3 := b.add(2, nil, "a", "b"), b.add(5, []string{"y", "x", "x"}, "b", "c"), b.add(1, nil, "b", "c", "a")
	for _, p := range []*Poll{p3, p2, p1} {
		if seen := b.round(p); len(seen) != len(p.in) {
			t.Fatalf("it visited %v", seen)
		}
	}
	if got := b.wanted("c", Want{Type: "z", Triggers: 1}); !slices.Equal(got, []uint64{3}) {
		t.Errorf("for z went %v", got)
	}
	if got := b.wanted("b", Want{Type: "x", Triggers: 3}); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("for 3 of x went %v", got)
	}
	if got := b.wanted("b", Want{Type: "x", Triggers: 3}); len(got) != 0 {
		t.Errorf("who is on its way goes again: %v", got)
	}
	for _, p := range []*Poll{p1, p2, p3} {
		b.Nothing(p, b.now)
		b.Remove(p, b.now)
	}
	if got := b.wanted("none", Want{Type: "x", Triggers: 3}); len(got) != 0 {
		t.Errorf("to one that no one polls went %v", got)
	}
}

// Of what may not start one poll is enough to find that out.
func TestOnePollIsSentForWhatIsLimited(t *testing.T) {
	b := newBook(t)
	for range 3 {
		b.round(b.add(1, nil, "a", "b"))
	}
	if got := b.wanted("a", Want{Type: "x", Triggers: 100, Limited: true}, Want{Type: "y", Triggers: 1}); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("went %v", got)
	}
}

// What no poll rested for is remembered for those that come to rest.
func TestWhatIsWantedIsRemembered(t *testing.T) {
	b := newBook(t)
	p := b.add(2, []string{"x"}, "a", "b")
	for range 2 {
		if _, ok := b.Next(p, b.now); !ok {
			t.Fatal("it rests")
		}
	}
	b.wanted("a", Want{Type: "y", Triggers: 1}, Want{Type: "x", Triggers: 3})
	if seen := b.round(p); !slices.Equal(seen, []string{"a"}) {
		t.Errorf("it visited %v", seen)
	}
	b.wanted("b", Want{Type: "z", Triggers: 1})
	b.wanted("b", Want{Type: "y", Triggers: 1}) // in its place
	if seen := b.round(b.add(1, []string{"z"}, "b", "c")); len(seen) != 2 {
		t.Errorf("where it is wanted no more it visited %v", seen)
	}
	q := b.add(1, []string{"y"}, "b", "c")
	b.now = b.now.Add(WantedFor)
	if seen := b.round(q); len(seen) != 2 {
		t.Errorf("after the time it visited %v", seen)
	}
}

// A tasklist that is known to have nothing is visited last, by later polls too, until it wants some, the time is over, or its owner is new.
func TestWhatHasNothingIsVisitedLast(t *testing.T) {
	b := newBook(t)
	first := b.add(1, nil, "a")
	b.round(first)
	last := func() int {
		n := 0
		for range 50 {
			p := b.add(1, nil, "a", "b")
			if len(p.todo) == 2 && p.todo[0] == 1 {
				n++
			}
			b.Remove(p, b.now)
		}
		return n
	}
	if n := last(); n != 50 {
		t.Errorf("%d of 50 polls visited it last", n)
	}
	b.Remove(first, b.now) // the worker comes again soon
	b.Due(b.now)
	b.Renew(func(of Tasklist) bool { return of.Name != "a" })
	if n := last(); n != 50 {
		t.Errorf("without a poll %d of 50 visited it last", n)
	}
	b.wanted("a", Want{Type: "x", Triggers: 1})
	if n := last(); n > 45 {
		t.Errorf("%d of 50 visited it last that wants polls", n)
	}
	b.now = b.now.Add(2 * WantedFor)
	first = b.add(1, nil, "a")
	b.round(first)
	b.Renew(func(of Tasklist) bool { return of.Name == "a" })
	if n := last(); n > 45 {
		t.Errorf("%d of 50 visited it last whose owner is new", n)
	}
	b.round(b.add(1, nil, "a"))
	b.now = b.now.Add(2 * KnownFor)
	if n := last(); n > 45 {
		t.Errorf("%d of 50 visited it last after the time", n)
	}
}

// One poll of those that accept the same types visits each tasklist again within 2 s, and no more often than each second.
func TestOnePollVisitsAgain(t *testing.T) {
	b := newBook(t)
	var all []*Poll
	for range 10 {
		all = append(all, b.add(1, nil, "a", "b", "c"))
	}
	all = append(all, b.add(1, []string{"x"}, "a"))
	for _, p := range all {
		b.round(p)
	}
	n := map[string]int{}
	for range 100 {
		b.now = b.now.Add(100 * time.Millisecond)
		for _, p := range b.Due(b.now) {
			for _, name := range b.round(p) {
				n[name]++
			}
		}
	}
	for name, most := range map[string]int{"a": 20, "b": 10, "c": 10} {
		if n[name] < most/2-1 || n[name] > most {
			t.Errorf("%s was visited %d times in 10 s", name, n[name])
		}
	}
	// A visit under way is not doubled.
	b.now = b.now.Add(2 * KnownFor)
	if first, again := len(b.Due(b.now)), len(b.Due(b.now)); first == 0 || again != 0 {
		t.Errorf("%d visit again, then %d", first, again)
	}
}

// A poll goes by the weights of its entries.
func TestAPollGoesByItsWeights(t *testing.T) {
	const polls = 20_000
	b, heavy := newBook(t), 0
	for i := range uint64(polls) {
		p := b.Add(i, "d", []Entry{{"light", 1}, {"heavy", 4}}, nil, 1, b.now)
		if to, _ := b.Next(p, b.now); to.Name == "heavy" {
			heavy++
		}
		b.Remove(p, b.now)
	}
	if share := float64(heavy) / polls; math.Abs(share-0.8) > 0.02 {
		t.Errorf("%.3f of the polls go to the one of weight 4 of 5 first", share)
	}
}

// Of polls of any types who came first goes first.
func TestWhoCameFirstGoesFirst(t *testing.T) {
	b := newBook(t)
	var all []*Poll
	for i := range 12 {
		all = append(all, b.add(1, []string{"x", fmt.Sprint(i)}, "a", "b"))
	}
	slices.Reverse(all)
	for _, p := range all {
		b.round(p)
	}
	if got := b.wanted("a", Want{Type: "x", Triggers: 12}); !slices.IsSorted(got) || len(got) != 12 {
		t.Errorf("went %v", got)
	}
}

// A visit that found nothing is of no weight where the tasklist has said since that it wants such polls. Else it is known to have nothing, and
// is not visited for a while.
func TestWhatAVisitFoundMayBeOutOfDate(t *testing.T) {
	for name, c := range map[string]struct {
		wants []Want
		took  int // another poll goes for so many of them
		later time.Duration
		idle  int
	}{
		"nothing":           {nil, 0, 0, 1},
		"its type":          {[]Want{{Type: "y", Triggers: 1}, {Type: "x", Triggers: 1}}, 0, 0, 0},
		"another type":      {[]Want{{Type: "y", Triggers: 1}}, 0, 0, 1},
		"long ago":          {[]Want{{Type: "x", Triggers: 1}}, 0, WantedFor, 1},
		"others go, to all": {[]Want{{Type: "x", Triggers: 2}}, 2, 0, 1},
		"others go, to one": {[]Want{{Type: "x", Triggers: 2}}, 1, 0, 0},
	} {
		b := newBook(t)
		p := b.add(1, []string{"x"}, "a")
		b.Next(p, b.now)
		b.now = b.now.Add(time.Millisecond)
		b.wanted("a", c.wants...)
		if c.took > 0 {
			b.Next(b.add(c.took, []string{"x"}, "a"), b.now)
			all := b.lists[Tasklist{"d", "a"}].wants
			all[0].take(&Poll{max: c.took})
		}
		b.now = b.now.Add(c.later)
		b.Nothing(p, b.now)
		if got := p.in[0].idle(b.now); got != c.idle {
			t.Errorf("%s: idle %d, want %d", name, got, c.idle)
		}
	}
	b := newBook(t)
	p := b.add(1, nil, "a")
	b.round(p)
	if b.now = b.now.Add(KnownFor - 1); len(b.Due(b.now)) != 0 {
		t.Error("it is visited again too soon")
	}
	b.Renew(func(Tasklist) bool { return true })
	b.Nothing(p, b.now) // late, and of a poll that is at rest
	b.Away(p, b.now)
	if p.in[0].idle(b.now) != 0 {
		t.Error("a poll at rest has found nothing")
	}
}

// One that no one serves is visited again soon.
func TestWhatIsAwayIsVisitedSoon(t *testing.T) {
	b := newBook(t)
	p := b.add(1, nil, "a")
	b.Next(p, b.now)
	b.Away(p, b.now)
	if seen := b.round(p); len(seen) != 0 || len(b.Due(b.now)) != 0 {
		t.Errorf("it is visited again at once: %v", seen)
	}
	b.now = b.now.Add(AwayFor)
	if due := b.Due(b.now); len(due) != 1 {
		t.Errorf("%d polls are due", len(due))
	}
}

// What a tasklist wanted polls for is void once one that went there found nothing, or no one. What it says while a poll is there counts.
func TestAPollDoesNotGoRoundForWhatIsGone(t *testing.T) {
	b := newBook(t)
	many := []Want{{Type: "x", Triggers: 1000}}
	back := map[string]func(*Poll, time.Time){"nothing": b.Nothing, "away": b.Away}
	for name, comes := range back {
		p := b.add(1, nil, "a", "b")
		b.round(p)
		if got := b.wanted("a", many...); len(got) != 1 {
			t.Fatalf("%s: %v went", name, got)
		}
		b.now = b.now.Add(time.Millisecond)
		comes(p, b.now)
		if to, ok := b.Next(p, b.now); ok {
			t.Errorf("%s: it goes to %v again", name, to)
		}
		b.Wanted(Tasklist{"d", "a"}, many, b.now)
		b.now = b.now.Add(time.Millisecond)
		b.Next(p, b.now)
		b.Wanted(Tasklist{"d", "a"}, many, b.now.Add(time.Millisecond))
		b.Nothing(p, b.now.Add(2*time.Millisecond))
		if _, ok := b.Next(p, b.now.Add(2*time.Millisecond)); !ok {
			t.Errorf("%s: it rests, though the tasklist said so meanwhile", name)
		}
		b.Remove(p, b.now)
		b.now = b.now.Add(time.Minute)
		b.Due(b.now)
	}
}

// A seeded run: nothing is left of polls that are answered, each poll is at rest in all its tasklists or in none, and none is returned twice.
func TestBookAtRandom(t *testing.T) {
	for seed := range uint64(50) {
		r, b := dice(seed), newBook(t)
		resting, moving := map[*Poll]bool{}, map[*Poll]bool{}
		woken := func(all []*Poll) {
			for _, p := range all {
				if !resting[p] {
					t.Fatalf("seed %d: poll %d is sent that does not rest", seed, p.Number)
				}
				delete(resting, p)
				moving[p] = true
			}
		}
		for range 600 {
			b.now = b.now.Add(time.Duration(r.IntN(200)) * time.Millisecond)
			switch r.IntN(5) {
			case 0:
				names := []string{"a", "b", "c", "d"}
				r.Shuffle(4, func(i, j int) { names[i], names[j] = names[j], names[i] })
				moving[b.add(1+r.IntN(5), [][]string{nil, {"x"}, {"x", "y"}}[r.IntN(3)], names[:1+r.IntN(4)]...)] = true
			case 1:
				woken(b.Wanted(Tasklist{"d", string(rune('a' + r.IntN(5)))}, []Want{{[]string{"x", "z"}[r.IntN(2)], 1 + r.IntN(9), r.IntN(2) == 0}}, b.now))
			case 2:
				woken(b.Due(b.now))
			default:
				for _, p := range sorted(moving) {
					switch r.IntN(4) {
					case 0:
						b.Remove(p, b.now)
						delete(moving, p)
					case 1:
						b.Away(p, b.now)
						fallthrough
					default:
						b.Nothing(p, b.now)
						if _, ok := b.Next(p, b.now); !ok {
							delete(moving, p)
							resting[p] = true
						}
					}
				}
			}
			b.check(resting, moving)
		}
		for _, p := range append(sorted(moving), sorted(resting)...) {
			b.Remove(p, b.now)
		}
		b.Due(b.now.Add(3 * KnownFor))
		if len(b.lists) > 0 || len(b.sets) > 0 || b.unused != 0 {
			t.Fatalf("seed %d: %d tasklists, %d sets are left, %d unused", seed, len(b.lists), len(b.sets), b.unused)
		}
	}
}

func sorted(all map[*Poll]bool) []*Poll {
	var some []*Poll
	for p := range all {
		some = append(some, p)
	}
	slices.SortFunc(some, func(a, b *Poll) int { return int(a.Number) - int(b.Number) })
	return some
}

// check counts again what a book counts as it goes.
func (b *book) check(resting, moving map[*Poll]bool) {
	b.t.Helper()
	polls, rest := map[*set]int{}, map[*set]int{}
	for p := range moving {
		for _, at := range p.in {
			polls[at.set]++
			if at.rest != nil {
				b.t.Fatalf("poll %d rests and does not", p.Number)
			}
		}
	}
	for p := range resting {
		for _, at := range p.in {
			polls[at.set]++
			rest[at.set]++
		}
	}
	unused := 0
	for i, s := range b.sets {
		if s.kept {
			unused++
		}
		if s.at != i || s.polls != polls[s] || s.resting.Len() != rest[s] || s.kept != (s.polls == 0) || s.list.sets[s.key] != s || b.lists[s.list.name] != s.list {
			b.t.Fatalf("%v has %d polls, %d rest; counted %d, %d", s.list.name, polls[s], rest[s], s.polls, s.resting.Len())
		}
	}
	if unused != b.unused {
		b.t.Fatalf("%d are unused, %d are counted", unused, b.unused)
	}
}
