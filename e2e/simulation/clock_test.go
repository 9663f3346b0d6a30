package simulation

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// event is something that happens at an instant.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}

func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a *agenda) Push(x any) { *a = append(*a, x.(event)) }

func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*a = old[:len(old)-1]
	return e
}

// clock is virtual time, and the order of what happens in it.
type clock struct {
	now    time.Duration
	agenda agenda
	order  uint64
}

func (c *clock) after(d time.Duration, do func()) {
	c.order++
	heap.Push(&c.agenda, event{c.now + d, c.order, do})
}

// next lets the next thing happen; false if there is nothing.
func (c *clock) next() bool {
	if len(c.agenda) == 0 {
		return false
	}
	e := heap.Pop(&c.agenda).(event)
	c.now = max(c.now, e.at)
	e.do()
	return true
}

// dice are the choices of a run.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 71))} }

// chance is true in so many of a thousand cases.
func (d dice) chance(permille int) bool { return permille > 0 && d.IntN(1000) < permille }

func (d dice) upTo(most time.Duration) time.Duration { return time.Duration(d.Int64N(int64(most) + 1)) }

func (d dice) between(least, most time.Duration) time.Duration { return least + d.upTo(most-least) }
