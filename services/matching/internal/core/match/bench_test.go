package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// few is a catalog where so many tasks of type "few" may run at once; 0 = any number.
type few struct {
	unlimited
	n int
}

// Limits implements Catalog.
func (f few) Limits(string) []Limit {
	if f.n == 0 {
		return nil
	}
	return []Limit{{Ref: table.TypeRef("few"), Max: f.n, Types: []string{"few"}}}
}

// bench drives one shard: history grants what it is asked for, tables are plain memory, and
// polls are repeated as they are answered.
type bench struct {
	s      *Shard
	in, to *Inputs
	fx     Effects
	now    Now
	tables *table.Table
	task   []byte
	poll   Poll
	got    int
	acked  int
	all    [4][]Verdict
	// granted is what becomes of a grab, if not nil.
	granted func(g *Grab, inbox string)
}

func newBench(polls, most int, limit few) *bench {
	cfg := Config{
		Shards: 1, Partitions: 2, Epoch: 1, Seed: 1, AnswerBytesMax: 900 << 10,
		PollsMax: 10_000, GrabEventsMax: 1000, GrabsInFlight: 1, PopMax: 1000,
	}
	b := &bench{in: &Inputs{}, to: &Inputs{}, tables: table.New(), task: make([]byte, 400)}
	b.s = New(cfg, limit, b.now)
	b.poll = Poll{Domain: "d", Tasklist: "l", Max: most, Worker: "w", ReplyTo: "r", For: time.Hour}
	for range polls {
		b.to.Polls = append(b.to.Polls, b.poll)
	}
	for range 10 {
		b.turn()
	}
	return b
}

// turn is one step, whose effects are carried out at once.
func (b *bench) turn() {
	b.in, b.to = b.to, b.in
	*b.to = Inputs{
		Polls: b.to.Polls[:0], Verdicts: b.to.Verdicts[:0], Hints: b.to.Hints[:0], Outcomes: b.to.Outcomes[:0],
		Opened: b.to.Opened[:0], Answers: b.to.Answers[:0],
	}
	b.now.Mono += time.Millisecond
	b.now.MS++
	b.in.Proven = b.now.Mono
	b.s.Step(b.in, b.now, &b.fx)
	for i := range b.fx.Answers {
		b.got += len(b.fx.Answers[i].Tasks)
		b.pollAgain(b.fx.Answers[i].ReplyTo)
	}
	for i := range b.fx.Batches {
		batch := &b.fx.Batches[i]
		n := len(batch.Grabs) + len(batch.HandBacks)
		if batch.Fence {
			n = 1
		}
		all := b.all[i%len(b.all)][:0]
		for range n {
			all = append(all, Verdict{Task: b.task, DeadlineMS: b.now.MS + 60_000})
		}
		b.all[i%len(b.all)] = all
		for i := range batch.Grabs {
			if g := &batch.Grabs[i]; b.granted != nil {
				b.granted(g, batch.Polls[g.Poll].ReplyTo)
			}
		}
		b.to.Verdicts = append(b.to.Verdicts, Verdicts{Partition: batch.Partition, Batch: batch.Number, All: all})
	}
	for _, c := range b.fx.Calls {
		b.to.Outcomes = append(b.to.Outcomes, CallOutcome{Domain: c.Domain, Outcome: b.tables.Do(c, b.now.MS*1000)})
	}
	for _, name := range b.fx.Opens {
		b.to.Opened = append(b.to.Opened, OpenOutcome{Domain: name, Opened: b.tables.Open(name, 0, "life")})
	}
	for _, a := range b.fx.Asks {
		b.to.Answers = append(b.to.Answers, AskOutcome{Ask: a})
	}
	b.acked += len(b.fx.Acks)
}

func (b *bench) pollAgain(inbox string) {
	again := b.poll
	if again.ReplyTo = inbox; b.granted != nil {
		again.Tasklist = inbox
	}
	b.to.Polls = append(b.to.Polls, again)
}

// BenchmarkStep is the turn's share of a task: hints of 128 tasks of one type, in two
// partitions, and polls of 50 or 100 that are repeated as they are answered.
func BenchmarkStep(b *testing.B) {
	for _, most := range []int{50, 100} {
		b.Run(fmt.Sprint("polls of ", most), func(b *testing.B) {
			w := newBench(32, most, few{})
			next := uint64(0)
			b.ReportAllocs()
			b.ResetTimer()
			for sent := 0; sent < b.N; {
				for range 4 {
					packed := make([]byte, 0, 128*ids.TriggerBytes)
					for range 128 {
						next++
						packed = ids.AppendTrigger(packed, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), int(next%2), next), Version: 1})
					}
					w.to.Hints = append(w.to.Hints, Hints{Delivery: next, Triggers: []Triggers{{
						Tasklist: table.Tasklist{Domain: "d", Name: "l"}, Column: table.Column{Priority: 3, Type: "t"},
						ReadyAt: int64(next), Packed: packed,
					}}})
					sent += 128
				}
				w.turn()
			}
			for w.got < int(next) {
				w.turn()
			}
			b.StopTimer()
			b.ReportMetric(float64(w.acked)*128/float64(w.got), "acked/task")
		})
	}
}

// BenchmarkUnfitPolls is a trigger for which none of many waiting polls is: it costs as much as with few.
func BenchmarkUnfitPolls(b *testing.B) {
	for _, polls := range []int{10, 7000} {
		b.Run(fmt.Sprint(polls, " polls"), func(b *testing.B) {
			w := newBench(0, 1, few{})
			w.poll.Types = []string{"x"}
			for range polls {
				w.to.Polls = append(w.to.Polls, w.poll)
			}
			w.turn()
			b.ResetTimer()
			for n := range b.N {
				w.to.Hints = append(w.to.Hints, Hints{Delivery: uint64(n + 1), Triggers: []Triggers{{
					Tasklist: table.Tasklist{Domain: "d", Name: "l"}, Column: table.Column{Priority: 3, Type: "t"}, ReadyAt: int64(n),
					Packed: ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, uint64(n+1)), Version: 1}),
				}}})
				w.turn()
			}
		})
	}
}

// BenchmarkCrowdedLimit is a task of a type of which two may run, where tasks and polls wait at many tasklists: it
// costs as much as with few.
func BenchmarkCrowdedLimit(b *testing.B) {
	for _, lists := range []int{10, 5000} {
		b.Run(fmt.Sprint(lists, " tasklists"), func(b *testing.B) {
			w := newBench(0, 1, few{n: 2})
			next := uint64(0)
			ready := func(name string) Hints {
				next++
				return Hints{Delivery: next, Triggers: []Triggers{{
					Tasklist: table.Tasklist{Domain: "d", Name: name}, Column: table.Column{Priority: 3, Type: "few"}, ReadyAt: int64(next),
					Packed: ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, next), Version: 1}),
				}}}
			}
			w.granted = func(g *Grab, inbox string) { // it ends at once, and another one is ready
				again, m := ready(inbox), memberOf(g.Trigger)
				again.Releases = []Release{{Domain: "d", Type: "few", Path: g.Path, Bookings: m[:]}}
				w.to.Hints = append(w.to.Hints, again)
			}
			for i := range lists {
				name := fmt.Sprint("l", i)
				w.pollAgain(name)
				w.to.Hints = append(w.to.Hints, ready(name))
			}
			for range 200 {
				w.turn()
			}
			w.got = 0
			b.ReportAllocs()
			b.ResetTimer()
			for w.got < b.N {
				w.turn()
			}
		})
	}
}

// BenchmarkPollWhereMuchIsWantedBelow is a poll that comes to a tasklist of 16 000 polls of different types, where 20 partitions below want
// polls for others.
func BenchmarkPollWhereMuchIsWantedBelow(b *testing.B) {
	s := New(Config{Shards: 1, Partitions: 1, Epoch: 1, AnswerBytesMax: 1000, PollsMax: 1 << 30}, few{}, Now{Mono: 1})
	var fx Effects
	now, last := time.Duration(1), uint64(0)
	poll := func(typ string) Poll {
		last++
		return Poll{ID: last, Domain: "d", Tasklist: "l", Max: 1, Types: []string{typ}, For: time.Hour}
	}
	step := func(in Inputs) {
		now += time.Microsecond
		s.Step(&in, Now{Mono: now}, &fx)
	}
	for i := range 16_000 {
		step(Inputs{Polls: []Poll{poll(fmt.Sprint("t", i))}})
	}
	step(Inputs{Opened: []OpenOutcome{{Domain: "d", Opened: table.Opened{Epoch: "e"}}}})
	for p := range 20 {
		below := Branch{Tasklist: table.Tasklist{Domain: "d", Name: "l", Partition: p + 1}}
		for i := range wantedMax {
			below.Wanted = append(below.Wanted, Wanted{Column: table.Column{Priority: 1, Type: fmt.Sprint("u", p, "-", i)}, Triggers: 5})
		}
		step(Inputs{Branches: []Branch{below}})
	}
	for b.Loop() {
		step(Inputs{Polls: []Poll{poll("t0")}})
	}
}
