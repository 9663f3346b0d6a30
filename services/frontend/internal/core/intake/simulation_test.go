package intake

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
	"github.com/yardmaster-io/yardmaster/shared/heap"
)

var seeds = flag.Int("seeds", 3000, "seeds of the simulation")

// event is what happens at an instant.
type event struct {
	at    time.Duration
	n     int
	do    func()
	place int
}

// message is one that the log has: the tasks of the request, which are void if it came too late.
type message struct {
	id   string
	void bool
}

// world is a log, two frontends and a client that sends one request to either of them, again and again. Answers are lost or late, copies of
// messages arrive at any time, and clocks differ.
type world struct {
	*rand.Rand
	t      *testing.T
	begun  time.Time
	now    time.Duration
	events heap.Heap[*event]
	n      int

	made   time.Time // by the client's clock
	log    [2][]message
	key    int    // the last word on the key; 0 = none
	keyOf  []bool // whether the task of each word is void
	skew   [2]time.Duration
	closed bool
	drains bool
	ends   []ending
	trace  []string
}

type ending struct {
	End
	try *try
}

// try is one sending of the request, at one frontend.
type try struct {
	Share
	w        *world
	frontend int
	over     int
	resend   func() // sends the last message again
	at       int
}

func (w *world) after(d time.Duration, do func()) {
	w.n++
	w.events.Push(&event{at: w.now + d, n: w.n, do: do})
}

func (w *world) clock(frontend int) time.Time { return w.begun.Add(w.now + w.skew[frontend]) }

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8v ", w.now.Truncate(time.Millisecond))+fmt.Sprintf(format, args...))
}

// latency is short, or long now and then.
func (w *world) latency() time.Duration {
	switch w.IntN(10) {
	case 0:
		return time.Duration(w.Int64N(int64(20 * time.Second)))
	case 1:
		return time.Duration(w.Int64N(int64(2 * time.Second)))
	}
	return time.Duration(w.Int64N(int64(20 * time.Millisecond)))
}

// stored is how many copies of the tasks the log has that are not void.
func (w *world) stored() (n int) {
	for _, p := range w.log {
		for _, m := range p {
			if !m.void {
				n++
			}
		}
	}
	return n
}

// arrives is a message that reaches the log.
func (w *world) arrives(p int, id string, within time.Duration, keyed bool, over int) Outcome {
	for _, m := range w.log[p] {
		if id != "" && m.id == id {
			return Duplicate
		}
	}
	if w.closed || keyed && over != w.key {
		return Superseded
	}
	void := within > 0 && w.begun.Add(w.now).After(w.made.Add(within))
	w.log[p] = append(w.log[p], message{id, void})
	if keyed {
		w.keyOf = append(w.keyOf, void)
		w.key = len(w.keyOf)
	}
	w.note("stored in %d as %q, void %v", p, id, void)
	return Acknowledged
}

// appends sends a message whose answer comes within the timeout, or is not heard.
func (y *try) appends(p int, id string, within time.Duration) {
	w := y.w
	keyed, over := y.Guard == Keyed, y.over
	y.resend = func() {
		answered := false
		answer := func(o Outcome) {
			if !answered {
				answered = true
				y.Appended(o, w.clock(y.frontend))
				y.step()
			}
		}
		send := func(delay time.Duration) {
			w.after(delay, func() {
				o := w.arrives(p, id, within, keyed, over)
				if w.IntN(4) > 0 {
					w.after(w.latency()/10, func() { answer(o) })
				}
			})
		}
		switch w.IntN(8) {
		case 0:
			w.after(w.latency()/10, func() { answer(NotSent) })
			return
		case 1:
			w.after(w.latency()/10, func() { answer(NoRoom) })
			return
		case 2: // lost, or for very long on its way
			if w.IntN(3) > 0 {
				send(time.Duration(w.Int64N(int64(time.Minute)) << w.IntN(3)))
			}
		default:
			send(w.latency())
		}
		w.after(2*time.Second, func() { answer(NoAnswer) })
	}
	y.resend()
}

// step carries a step out.
func (y *try) step() {
	w := y.w
	now := w.clock(y.frontend)
	if !now.Before(y.Deadline) {
		y.end(y.Expired().End)
		return
	}
	s := y.Next(now)
	w.note("frontend %d, try %d: does %d for %v within %v", y.frontend, y.Tries, s.Do, s.For, s.Within)
	next := func(report func()) func() { return func() { report(); y.step() } }
	known := w.IntN(5) > 0
	switch s.Do {
	case Search:
		found := w.stored() > 0
		w.after(w.latency(), next(func() { y.Searched(found || w.stored() > 0, known) }))
	case Count:
		full := w.IntN(20) == 0
		w.after(0, next(func() { y.CountedAs(full) }))
	case Check:
		w.after(w.latency(), next(func() { y.check(known) }))
	case Place:
		y.at = w.IntN(2)
		w.after(0, next(func() { y.Placed(known, false) }))
	case Append:
		switch y.Guard {
		case First:
			y.appends(y.at, fmt.Sprint("first ", w.n), s.Within)
		case Named:
			y.appends(0, "named", s.Within)
		case Keyed:
			y.appends(1, "", s.Within)
		}
	case Resend:
		y.resend()
	case Verify:
		w.after(w.latency(), next(func() { y.Verified(w.stored() > 0, known) }))
	case ReadClose:
		w.after(w.latency(), next(func() { y.CloseRead(w.closed && known) }))
	case Wait:
		d := s.For
		if s.Grows {
			d = max(d, time.Duration(100+w.IntN(900))*time.Millisecond)
		}
		w.after(d, y.step)
	case Finish:
		y.end(s.End)
	}
}

// check reads the word on the key, and searches for the task.
func (y *try) check(known bool) {
	w := y.w
	c := Checks{Left: 1, Closed: w.closed, Failed: !known}
	if y.over = w.key; w.key > 0 && !w.keyOf[w.key-1] {
		c.Left = 0
	}
	y.Checked(c)
}

func (y *try) end(e End) {
	y.w.note("frontend %d, try %d: ends %+v", y.frontend, y.Tries, e)
	y.w.ends = append(y.w.ends, ending{e, y})
}

// send has a frontend take a try of the request.
func (w *world) send(keyed, counted bool, number int) {
	y := &try{w: w, frontend: w.IntN(2)}
	now := w.clock(y.frontend)
	age := now.Sub(w.made)
	t := Terms{Made: w.made, HasID: true, Deadline: now.Add(time.Duration(1+w.IntN(25)*(1+3*w.IntN(2))) * time.Second), Refused: w.drains}
	if counted {
		t.Tries = int32(number)
	}
	switch {
	case age < -tries.AheadMax, age > tries.RepeatMax, age > tries.AppendUntil && t.Tries == 1, t.Refused && !t.Repeats():
		return // refused
	case keyed:
		t.Guard = Keyed
	case Alone(true, t.Tries, age):
		t.Guard = Named
	}
	w.note("frontend %d gets try %d of age %v, guard %d", y.frontend, t.Tries, age, t.Guard)
	y.Start(t)
	y.step()
}

// TestI1_ARequestIsStoredOnce whatever is lost or late, and answers are true.
func TestI1_ARequestIsStoredOnce(t *testing.T) {
	kinds := map[Kind]int{}
	for seed := range *seeds {
		w := simulate(t, uint64(seed))
		for _, e := range w.ends {
			kinds[e.Kind]++
		}
		if bad := w.wrong(); bad != "" {
			for _, line := range w.trace {
				t.Log(line)
			}
			t.Fatalf("seed %d: %s", seed, bad)
		}
	}
	if kinds[Stored] < *seeds || kinds[NotStored] < *seeds/10 || kinds[Unknown] < *seeds/20 {
		t.Errorf("too few ends of a kind: %v", kinds)
	}
}

func simulate(t *testing.T, seed uint64) *world {
	w := &world{
		Rand: rand.New(rand.NewPCG(seed, 1)), t: t, begun: time.Unix(1_700_000_000, 0),
		events: heap.Heap[*event]{
			Less:  func(a, b *event) bool { return a.at < b.at || a.at == b.at && a.n < b.n },
			Place: func(e *event) *int { return &e.place },
		},
	}
	apart := int64(tries.ClocksApart)
	for i := range w.skew {
		w.skew[i] = time.Duration(w.Int64N(2*apart) - apart)
	}
	client := time.Duration(w.Int64N(int64(3*time.Second))) - time.Second
	if w.IntN(3) == 0 { // its clock is behind
		client = -time.Duration(w.Int64N(int64(5*time.Second) << (4 * w.IntN(2))))
	}
	w.made = w.begun.Add(client)
	keyed, counted := w.IntN(2) == 0, w.IntN(2) == 0
	at := time.Duration(0)
	for n := range 1 + w.IntN(4) {
		w.after(at, func() { w.send(keyed, counted, n+1) })
		at += time.Duration(w.Int64N(int64(10*time.Second)) << (3 * w.IntN(2)))
		if counted && n == 0 {
			at = max(at, tries.FirstTryFor) // as it promises
		}
	}
	switch w.IntN(4) {
	case 0:
		w.after(time.Duration(w.Int64N(int64(20*time.Second))), func() { w.closed = true })
	case 1:
		w.after(time.Duration(w.Int64N(int64(20*time.Second))), func() { w.drains = true })
	}
	for w.events.Len() > 0 {
		e := w.events.Pop()
		w.now = e.at
		e.do()
	}
	return w
}

// wrong says what is wrong with what the log has and the frontends have said.
func (w *world) wrong() string {
	n := w.stored()
	if n > 1 {
		return fmt.Sprintf("it is stored %d times", n)
	}
	for _, e := range w.ends {
		switch {
		case e.Kind == Stored && n == 0:
			return "an answer says that it is stored"
		case e.ForGood && n > 0:
			return "an answer says that it never will be stored"
		case e.Kind == NotStored && e.Certain && n > 0 && len(w.ends) == 1:
			return "the only answer says that it is not stored"
		}
	}
	return ""
}
