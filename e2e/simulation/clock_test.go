package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/heap"
)

// event is something that happens at an instant.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// clock is virtual time, and the order of what happens in it.
type clock struct {
	now    time.Duration
	agenda heap.Heap[event]
	order  uint64
}

func (c *clock) after(d time.Duration, do func()) {
	c.order++
	c.agenda.Push(event{c.now + d, c.order, do})
}

// next lets the next thing happen; false if there is nothing.
func (c *clock) next() bool {
	if c.agenda.Len() == 0 {
		return false
	}
	e := c.agenda.Pop()
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
