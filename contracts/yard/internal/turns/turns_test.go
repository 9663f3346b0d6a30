package turns

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// model is a worker with tasklists: polls are answered at once if there is work, and tasks take a while.
type model struct {
	t     *testing.T
	turns *Turns
	dice  *rand.Rand
	now   time.Duration
	free  int
	// backlog is how many tasks each tasklist has, ran how many of it began, held the slot-time of its polls that got nothing.
	backlog, ran []int
	held         []time.Duration
	// polls counts when polls begin and end, waits are those without an answer.
	polls []int
	waits []func()
	// takes is how long a task takes, answers how long a poll with work.
	takes, answers func() time.Duration
	events         events
}

// events is a heap of what happens when.
type events []event

type event struct {
	at time.Duration
	do func()
}

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newModel(t *testing.T, slots int, weights ...int) *model {
	return &model{
		t: t, turns: New(slots, 1000, weights), dice: rand.New(rand.NewPCG(1, uint64(slots))), free: slots,
		backlog: make([]int, len(weights)), ran: make([]int, len(weights)), held: make([]time.Duration, len(weights)), polls: make([]int, len(weights)), waits: make([]func(), len(weights)),
		takes: func() time.Duration { return time.Second }, answers: func() time.Duration { return 2 * ms },
	}
}

func (m *model) instant() time.Time { return time.Unix(0, int64(m.now)) }

func (m *model) after(d time.Duration, do func()) { heap.Push(&m.events, event{m.now + d, do}) }

// run has d go by.
func (m *model) run(d time.Duration) {
	end := m.now + d
	for {
		m.deal()
		if wake := m.turns.Wake(m.instant()); !wake.IsZero() && (len(m.events) == 0 || time.Duration(wake.UnixNano()) < m.events[0].at) {
			m.after(wake.Sub(m.instant()), func() {})
		}
		if len(m.events) == 0 || m.events[0].at > end {
			m.now = end
			return
		}
		e := heap.Pop(&m.events).(event)
		m.now = e.at
		e.do()
	}
}

func (m *model) deal() {
	for {
		turn, ok := m.turns.Next(m.instant(), m.free)
		if !ok {
			break
		}
		if turn.Tasks < 1 || turn.Tasks > m.free {
			m.t.Fatalf("%+v of %d free slots", turn, m.free)
		}
		m.free -= turn.Tasks
		m.poll(turn)
	}
	if i, ok := m.turns.Withdraw(m.instant()); ok {
		number := m.polls[i]
		m.after(ms, func() {
			if m.polls[i] == number { // it was not answered meanwhile
				m.end(i, m.turns.lists[i].poll, 0)
			}
		})
	}
}

// poll looks for work until its time is over.
func (m *model) poll(turn Turn) {
	i, began := turn.List, m.now
	m.polls[i]++
	number := m.polls[i]
	most := 5 * time.Second
	if turn.Short {
		most = Length
	}
	var look func()
	look = func() {
		if m.polls[i] != number {
			return
		}
		m.waits[i] = nil
		got := min(turn.Tasks, m.backlog[i])
		if got == 0 && m.now < began+most {
			m.waits[i] = look
			m.after(began+most-m.now, look)
			return
		}
		if got == 0 {
			m.held[i] += (m.now - began) * time.Duration(turn.Tasks)
		}
		m.end(i, turn, got)
	}
	m.after(m.answers(), look)
}

func (m *model) end(i int, turn Turn, got int) {
	m.turns.Done(i, got)
	m.polls[i]++
	m.waits[i] = nil
	m.backlog[i] -= got
	m.ran[i] += got
	m.free += turn.Tasks - got
	for range got {
		m.after(m.takes(), func() { m.free++ })
	}
	m.turns.Want(i)
}

// push gives a tasklist work.
func (m *model) push(i, n int) {
	if m.backlog[i] += n; m.waits[i] != nil {
		m.after(ms, m.waits[i])
	}
}

func (m *model) begin() *model {
	for i := range m.turns.lists {
		m.turns.Want(i)
	}
	return m
}

// Of the tasklists that have work each gets tasks in the ratio of its weight, whether slots or polls are what is short.
func TestTasksAreInTheRatioOfTheWeights(t *testing.T) {
	for name, c := range map[string]struct {
		slots   int
		weights []int
		work    []int
		takes   time.Duration
		lasts   time.Duration
	}{
		"few slots":            {3, []int{1, 2, 4}, []int{0, 1, 2}, 50 * ms, time.Minute},
		"one slot":             {1, []int{1, 2, 4}, []int{0, 1, 2}, 20 * ms, time.Minute},
		"many slots":           {100, []int{1, 2, 4}, []int{0, 1, 2}, time.Second, 20 * time.Second},
		"tasks that take none": {10, []int{1, 3}, []int{0, 1}, 0, 5 * time.Second},
		"more slots than that": {3000, []int{1, 3}, []int{0, 1}, ms, time.Second / 4},
		"one without work":     {10, []int{1, 2, 4}, []int{0, 1}, 100 * ms, 20 * time.Second},
		"far apart":            {20, []int{1, 1000}, []int{0, 1}, 10 * ms, 10 * time.Second},
		"many tasklists":       {10, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}, []int{0, 11}, 50 * ms, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, c.slots, c.weights...)
			m.takes = func() time.Duration { return time.Duration(m.dice.Int64N(int64(2*c.takes) + 1)) }
			m.answers = func() time.Duration { return ms + time.Duration(m.dice.Int64N(int64(4*ms))) }
			sum := 0
			for _, i := range c.work {
				m.backlog[i] = 1 << 30
				sum += c.weights[i]
			}
			m.begin().run(time.Second) // all are known to have work
			clear(m.ran)
			m.run(c.lasts)
			all := 0
			for _, n := range m.ran {
				all += n
			}
			for _, i := range c.work {
				want := float64(c.weights[i]) / float64(sum)
				if got := float64(m.ran[i]) / float64(all); all < 500 || math.Abs(got-want) > 0.03 {
					t.Errorf("%d of %d tasks are of tasklist %d: %.3f, want %.3f", m.ran[i], all, i, got, want)
				}
			}
		})
	}
}

// Tasklists without work use an eighth of the slots at most, however many they are and however few slots there are; alone a tasklist gets the rest.
func TestTasklistsWithoutWorkUseAFewSlots(t *testing.T) {
	for _, c := range []struct{ slots, lists int }{{1, 2}, {1, 20}, {4, 8}, {10, 3}, {10, 50}, {100, 100}, {800, 100}} {
		const lasts = 20 * time.Second
		m := newModel(t, c.slots, slices.Repeat([]int{1}, c.lists)...)
		m.takes = func() time.Duration { return 100 * ms }
		m.begin().run(time.Minute) // all wait
		m.push(0, 1<<30)
		m.run(10 * time.Second)
		clear(m.held)
		clear(m.ran)
		m.run(lasts)
		var held time.Duration
		for _, d := range m.held {
			held += d
		}
		all := lasts * time.Duration(c.slots)
		if share := float64(held) / float64(all); share > 0.13 {
			t.Errorf("%+v: tasklists without work used %.3f of the slots", c, share)
		}
		if share := float64(m.ran[0]) * 0.1 / all.Seconds(); share < 0.8 {
			t.Errorf("%+v: the tasklist with work used %.3f of the slots", c, share)
		}
	}
}

// A task of a tasklist without work begins soon: at once if slots are free, else in its turn. What it did not use before it does not get afterwards.
func TestATasklistWithoutWorkGetsItsTurn(t *testing.T) {
	for _, c := range []struct {
		slots, lists int
		flood        bool
		within       time.Duration
	}{
		{10, 5, false, 20 * ms}, {1, 5, false, 600 * ms}, {100, 5, true, 20 * ms}, {10, 3, true, 300 * ms}, {1, 3, true, 3 * time.Second},
	} {
		m := newModel(t, c.slots, slices.Repeat([]int{1}, c.lists)...)
		m.takes = func() time.Duration { return 20 * ms }
		if c.flood {
			m.backlog[0] = 1 << 30
		}
		m.begin().run(time.Minute)
		last := c.lists - 1
		for range 20 {
			m.push(last, 1)
			m.run(c.within)
			if m.backlog[last] > 0 {
				t.Fatalf("%+v: a task did not begin", c)
			}
			m.run(3 * time.Second)
		}
		if !c.flood {
			continue
		}
		m.push(last, 1<<30)
		m.run(10 * time.Second)
		clear(m.ran)
		m.run(10 * time.Second)
		if share := float64(m.ran[0]) / float64(m.ran[0]+m.ran[last]); math.Abs(share-0.5) > 0.1 {
			t.Errorf("%+v: afterwards the other one gets %.2f of the tasks", c, share)
		}
	}
}

// What a poll asks for follows what the last one got.
func TestPollsAskForWhatTheLastOneGot(t *testing.T) {
	turns := New(1000, 100, []int{1, 1})
	for _, c := range []struct{ asks, got int }{{1, 0}, {1, 1}, {2, 2}, {4, 4}, {8, 8}, {16, 16}, {32, 32}, {64, 64}, {100, 100}, {100, 30}, {30, 0}, {1, 1}} {
		turns.Want(0)
		turn, ok := turns.Next(time.Unix(1, 0), 1000)
		if !ok || turn.Tasks != c.asks {
			t.Fatalf("asks for %+v, want %d", turn, c.asks)
		}
		turns.Done(0, c.got)
	}
}

// A tasklist that wants many slots, but found nothing, gives them to another one after Length.
func TestAPollThatHoldsManySlotsIsWithdrawn(t *testing.T) {
	m := newModel(t, 20, 1, 1)
	m.backlog[0] = 7 // the poll behind them asks for more than one
	m.takes = func() time.Duration { return 10 * time.Second }
	m.begin().run(50 * ms)
	if n := m.turns.lists[0].poll.Tasks; n < 4 {
		t.Fatalf("the poll holds %d slots", n)
	}
	m.push(1, 1<<30)
	m.run(Length + 100*ms)
	if m.ran[1] != 12 { // the other tasklist has seven, and a poll
		t.Errorf("%d tasks run", m.ran[1])
	}
}
