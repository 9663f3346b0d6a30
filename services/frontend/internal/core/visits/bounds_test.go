package visits

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Of tasklists that no one polls any more so many are remembered at most.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	b := newBook(t)
	for i := range unusedMax + 100 {
		p := b.add(1, nil, fmt.Sprint("l", i))
		b.round(p)
		b.Remove(p, b.now)
	}
	if len(b.sets) != unusedMax {
		t.Errorf("%d are remembered", len(b.sets))
	}
	b = newBook(t)
	b.Remove(b.add(1, nil, "not visited"), b.now)
	if len(b.sets) != 0 {
		t.Errorf("%d are remembered of which nothing is known", len(b.sets))
	}
}

// R3: polls that each accept other types are called in their order, with one look at them for each type that is wanted: with one for each
// poll this takes minutes, in which no poll of the frontend goes on.
func TestManyDifferentPollsAreCalledInOrder(t *testing.T) {
	testkit.Slow(t, "calls many polls")
	const many = 30_000
	b := newBook(t)
	for i := range many {
		b.round(b.add(1, []string{"x", fmt.Sprint("y", i)}, "a", "b"))
	}
	called := b.wanted("a", Want{Type: "x", Triggers: many - 10})
	if len(called) != many-10 || !slices.IsSorted(called) || called[0] != 1 {
		t.Errorf("%d are called, in order: %v", len(called), slices.IsSorted(called))
	}
	if called = b.wanted("b", Want{Type: "y7", Triggers: 5}, Want{Type: "x", Triggers: 20}); len(called) != 10 {
		t.Errorf("then %v", called)
	}
}

// R3: however many polls of a domain accept different types, they cost so many visits, each in its turn, and those of others are not late (I14).
func TestI14_VisitsOfADomainAreBounded(t *testing.T) {
	b := newBook(t)
	const many = 10 * dueMax
	for i := range many {
		b.round(b.add(1, []string{fmt.Sprint("y", i)}, "a"))
	}
	other := b.Add(many+1, "other", []Entry{{"a", 1}}, nil, 1, b.now)
	b.round(other)
	b.now = b.now.Add(2 * KnownFor)
	visited, others := map[uint64]bool{}, 0
	for range 10 {
		due := b.Due(b.now)
		if len(due) > dueMax+1 {
			t.Fatalf("%d are due", len(due))
		}
		for _, p := range due {
			if b.round(p); p == other {
				others++
			} else {
				visited[p.Number] = true
			}
		}
	}
	if len(visited) != many || others != 1 {
		t.Errorf("%d of %d are visited, the other domain's %d times", len(visited), many, others)
	}
	for range 200 { // more than can be visited in the time: none is left out
		b.now = b.now.Add(25 * time.Millisecond)
		clear(visited)
		for range 9 {
			for _, p := range b.Due(b.now.Add(2 * KnownFor)) {
				b.round(p)
				visited[p.Number] = true
			}
		}
		if len(visited) < 9*dueMax {
			t.Fatalf("%d are visited", len(visited))
		}
	}
}
