package dispatch

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// S15: a walk visits what is there all the time, in steps, whatever leaves and comes between them.
func TestS15AWalkAmongThoseThatLeave(t *testing.T) {
	const n = 2*walkStep + 100
	for name, leaves := range map[string]func(i int) int{
		"none":      func(int) int { return -1 },
		"the first": func(i int) int { return i },
		"the last":  func(i int) int { return n - 1 - i },
		"all over":  func(i int) int { return i * 7919 % n },
	} {
		x, all, visited := New(Config{Shards: 1}), []*Entry(nil), map[*Entry]bool{}
		for k := range uint64(n) {
			all = append(all, ready(x, fmt.Sprint("list-", k%3), k))
		}
		steps, gone := 0, 0
		for walk := (Walk{Domain: "shop"}); ; steps++ {
			before := 0
			if x.Walk(&walk, func(e *Entry) { visited[e] = true; before++ }) {
				break
			}
			if before > walkStep {
				t.Fatalf("%s: a step visits %d tasks", name, before)
			}
			for range n / 4 {
				if k := leaves(gone); k >= 0 {
					x.Leave(all[k])
					all[k] = nil
				}
				gone++
			}
			ready(x, "list-0", uint64(n+steps))
		}
		if steps > 2 || name == "none" && steps != 2 {
			t.Errorf("%s: %d steps more than one", name, steps)
		}
		for k, e := range all {
			if e != nil && !visited[e] {
				t.Fatalf("%s: task %d is not visited", name, k)
			}
		}
	}
	if x := New(Config{Shards: 1}); !x.Walk(&Walk{Domain: "shop"}, func(*Entry) { t.Error("something is visited") }) {
		t.Error("a walk of nothing goes on")
	}
}

// A walk visits some tasks twice: they are found once.
func TestKeepFirstKeepsEachOnce(t *testing.T) {
	var all []int
	for _, n := range []int{5, 3, 5, 9, 3, 7, 1, 7} {
		all = KeepFirst(all, n, 4, cmp.Compare[int])
	}
	testkit.Equal(t, "the first four", fmt.Sprint(all), "[1 3 5 7]")
}
