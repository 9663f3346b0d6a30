package match

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/heap"
)

// world is everything around some shards: the tables, history, workers and time. It has no
// index and no batches; its rules are straight. What goes in and out is checked as it goes.
type world struct {
	t *testing.T
	// byHand: what the tables answer is up to the test.
	byHand bool
	now    time.Duration
	// later is what happens at a time.
	later heap.Heap[event]
	count int

	tables *table.Table
	// down are domains whose tables do not answer.
	down map[string]bool
	// lossy tells, for each call, whether its outcome is lost, and whether it is carried out.
	lossy func(c *table.Call) (lost, done bool)

	partitions []*partition
	tasks      map[ids.TaskID]*task
	running    map[string]int // by limit, and peak
	peak       map[string]int
	limits     map[string]int // by name: see Limits
	shared     []string       // the names of shared ones
	// shadow are limits that are in shadow, by name; rates have "rate " before it. changed are those that came or went, or were in shadow.
	shadow, changed map[string]bool
	pauses          map[string]bool
	// policies are those of limits, by name; they act after overflowAfter. stops are what they asked for.
	policies map[string]limit.OnFull
	stops    []grab.Stop
	owners   []*owner
	shards   int

	polls    map[string]*pollSeen
	hungry   []Hungry
	retrigs  []question.Question
	asked    []question.Question
	restores []LimitHint
	freeds   []LimitHint
	batches  []grab.Batch
	calls    []table.Call
	traced   []grab.Traced
	refusals []waiting.Refusal
	drops    []LimitHint
	acks     map[uint64]bool
	answers  []grab.Answer
	loads    []tree.Load
	grantedN int
	counts   Counts
	// looksMost is the most looks of one turn.
	looksMost int64

	// delay is how long messages take, work how long a task takes, lease after how long history
	// takes an attempt back that no one works on.
	delay func() time.Duration
	work  func() time.Duration
	lease time.Duration
	// deaf tells whether no one waits for an answer any more.
	deaf func(inbox string) bool
	failures
	// group is that of the next task, weights are those of groups in all domains.
	group   func() string
	weights map[string]float64
	// cost is that of the next task.
	cost func() int
	// groupLimits are those of groups in all domains.
	groupLimits  map[string]int
	pausedGroups map[string]bool // as d=acme
	// rates are by name, as limits are; tokens tells when the tables let attempts start under each, and forgotten when they lost
	// their memory. starts counts the attempts by the names of what covers them.
	rates     map[string]table.Rate
	tokens    map[table.Ref][]token
	forgotten []time.Duration
	starts    map[string]int
	// ends: attempts end by themselves.
	ends bool
	spreading
	// skewMS is how far the clock of the owners' machine is off.
	skewMS int64
}

type partition struct {
	fences map[int]uint64
	silent bool
	kept   []func()
}

type pollSeen struct {
	id       uint64
	answered int
	tasks    int
	at       time.Duration
	// again: another owner has answered it, too.
	again bool
	// poll is what was sent, until when its time is over.
	poll  waiting.Poll
	until time.Duration
}

// owner is one ownership of a shard.
type owner struct {
	w       *world
	shard   int
	epoch   uint64
	s       *Shard
	in      Inputs
	fx      Effects
	dead    bool
	stepped bool
	// stoppedUntil is when it goes on that was stopped.
	stoppedUntil time.Duration
	wakeAt       time.Duration
	// what came out, for the checks
	open, drained, overtaken bool
	calls                    map[string]uint64
	sent                     map[[2]uint64]string
	numbers                  map[int]uint64
	deliveries               map[uint64]bool
	live                     map[string]time.Duration // polls that wait here
	lastSeq                  uint64
	sentAt                   map[[2]uint64]time.Duration // of grants by partition and batch: when the last was answered
	outstanding              map[[2]uint64]int
}

type event struct {
	at time.Duration
	n  int
	do func()
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.n < o.n }

const epochMS = int64(1_700_000_000_000)

func newWorld(t *testing.T, shards, partitions int) *world {
	w := &world{
		t: t, later: heap.Heap[event]{Less: event.before}, tables: table.New(), down: map[string]bool{}, tasks: map[ids.TaskID]*task{}, running: map[string]int{},
		peak: map[string]int{}, limits: map[string]int{}, pauses: map[string]bool{}, pausedGroups: map[string]bool{}, shards: shards, polls: map[string]*pollSeen{}, acks: map[uint64]bool{},
		delay: func() time.Duration { return time.Millisecond }, work: func() time.Duration { return 10 * time.Millisecond },
		lease: 30 * time.Second, deaf: func(string) bool { return false }, failures: none(), ends: true,
		lossy: func(*table.Call) (bool, bool) { return false, true }, group: func() string { return "" }, cost: func() int { return 0 },
		rates: map[string]table.Rate{}, policies: map[string]limit.OnFull{}, shadow: map[string]bool{}, changed: map[string]bool{}, tokens: map[table.Ref][]token{}, starts: map[string]int{},
		spreading: spreading{spread: map[string]int{}, scales: map[string]bool{}, turn: map[string]int{}, mute: func(string) bool { return false }},
	}
	for range partitions {
		w.partitions = append(w.partitions, &partition{fences: map[int]uint64{}})
	}
	return w
}

func (w *world) after(d time.Duration, do func()) {
	w.count++
	w.later.Push(event{w.now + d, w.count, do})
}

// own makes a new owner of a shard.
func (w *world) own(shard int, epoch uint64, change ...func(*Config)) *owner {
	cfg := Config{
		Shard: shard, Shards: w.shards, Partitions: len(w.partitions), Epoch: epoch, Seed: uint64(shard)<<32 | epoch,
		AnswerBytesMax: 100_000, PollsMax: 10_000, GrabEventsMax: 1000, GrabsInFlight: 1, PopMax: 1000,
	}
	for _, f := range change {
		f(&cfg)
	}
	o := &owner{
		w: w, shard: shard, epoch: epoch, calls: map[string]uint64{}, sent: map[[2]uint64]string{}, numbers: map[int]uint64{},
		deliveries: map[uint64]bool{}, live: map[string]time.Duration{},
		sentAt: map[[2]uint64]time.Duration{}, outstanding: map[[2]uint64]int{},
	}
	o.s = New(cfg, w, Now{Mono: w.now, MS: epochMS + w.now.Milliseconds()})
	w.owners = append(w.owners, o)
	o.due(0)
	return o
}

// due has an owner step after a while.
func (o *owner) due(d time.Duration) {
	if at := o.w.now + d; !o.stepped || at < o.wakeAt || o.wakeAt <= o.w.now {
		o.stepped, o.wakeAt = true, at
		o.w.after(max(d, o.stoppedUntil-o.w.now), func() {
			if !o.dead && o.w.now >= max(o.wakeAt, o.stoppedUntil) {
				o.step()
			}
		})
	}
}

// stop stops an owner for a while, and what it would do.
func (o *owner) stop(d time.Duration) {
	o.stoppedUntil, o.stepped = o.w.now+d, false
	o.due(d)
}

// give hands an owner something at the end of the instant.
func (o *owner) give(change func(in *Inputs)) {
	if o.dead {
		return
	}
	change(&o.in)
	o.due(0)
}

func (o *owner) step() {
	in := o.in
	o.in = Inputs{}
	in.Proven = o.w.now
	o.s.Step(&in, Now{Mono: o.w.now, MS: epochMS + o.w.now.Milliseconds() + o.w.skewMS}, &o.fx)
	check(o.w, o.s)
	o.w.looksMost = max(o.w.looksMost, o.fx.Counts.Looks)
	if o.fx.Wake < o.w.now {
		o.w.t.Fatalf("wakes at %v, it is %v", o.fx.Wake, o.w.now)
	}
	o.carry(&o.fx)
	wake := o.fx.Wake - o.w.now
	o.stepped = false
	o.due(wake)
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	end := w.now + d
	for w.later.Len() > 0 && w.later.First().at <= end {
		e := w.later.Pop()
		w.now = max(w.now, e.at)
		e.do()
	}
	w.now = end
}

// carry carries out effects.
func (o *owner) carry(fx *Effects) {
	w := o.w
	for _, a := range fx.Answers {
		o.answer(a)
	}
	for _, r := range fx.Refusals {
		w.refusals = append(w.refusals, r)
		w.end(o, r.ReplyTo, r.Poll)
	}
	for _, m := range fx.Moves {
		o.move(m)
	}
	w.loads = append(w.loads, fx.Loads...)
	for _, b := range fx.Branches {
		w.after(w.delay(), func() { w.branch(b) })
	}
	for _, b := range fx.Batches {
		o.batch(b)
	}
	for _, c := range fx.Calls {
		o.call(c)
	}
	for _, name := range fx.Opens {
		w.after(w.delay(), func() {
			out := OpenOutcome{Domain: name, Failed: w.down[name]}
			if !out.Failed {
				w.count++
				out.Opened = w.tables.Open(name, o.shard, fmt.Sprint("life", w.count))
			}
			w.after(w.delay(), func() { o.give(func(in *Inputs) { in.Opened = append(in.Opened, out) }) })
		})
	}
	for _, d := range fx.Drops {
		w.drops = append(w.drops, d)
		for _, ref := range d.Limits {
			w.tables.Drop(d.Domain, ref)
		}
	}
	for _, a := range fx.Asks {
		o.ask(a)
	}
	o.hints(fx)
	for _, a := range fx.Acks {
		if !o.deliveries[a] {
			w.t.Fatalf("delivery %d was acknowledged twice, or never came", a)
		}
		delete(o.deliveries, a)
		w.acks[a] = true
	}
	w.traced = append(w.traced, fx.Traced...)
	if fx.Open && o.open {
		w.t.Fatal("open was said twice")
	}
	o.open = o.open || fx.Open
	o.drained, o.overtaken = o.drained || fx.Drained, o.overtaken || fx.Overtaken
	w.counts.add(&fx.Counts)
}

func (o *owner) hints(fx *Effects) {
	w := o.w
	send := func(h LimitHint, set func(in *Inputs, h LimitHint)) {
		for _, other := range w.owners {
			w.after(w.delay(), func() { other.give(func(in *Inputs) { set(in, h) }) })
		}
	}
	for _, h := range fx.Freed {
		w.freeds = append(w.freeds, h)
		send(h, func(in *Inputs, h LimitHint) { in.Freed = append(in.Freed, h) })
	}
	for _, h := range fx.Restore {
		w.restores = append(w.restores, h)
		send(h, func(in *Inputs, h LimitHint) { in.Restore = append(in.Restore, h) })
	}
	for _, h := range fx.Hungry {
		w.hungry = append(w.hungry, h)
		w.after(w.delay(), func() { w.retrigger(-1, -1, h.Domain, h.Tasklist, h.Present...) })
	}
}

// call carries a call to the tables out.
func (o *owner) call(c table.Call) {
	w := o.w
	w.calls = append(w.calls, c)
	if o.calls[c.Domain] != 0 {
		w.t.Fatalf("a second call about %s", c.Domain)
	}
	if c.Seq.Epoch != o.epoch || c.Seq.Call <= o.lastSeq {
		w.t.Fatalf("call %v after %d", c.Seq, o.lastSeq)
	}
	o.lastSeq, o.calls[c.Domain] = c.Seq.Call, c.Seq.Call
	w.checkPuts(&c)
	w.checkShadows(&c)
	for _, want := range c.Wants {
		if len(w.policies) > 0 && want.N == overflow.Max && len(want.Candidates[0].Path) == 0 { // what is to be rejected books nothing
			continue
		}
		for _, at := range want.Candidates {
			for ref, l := range o.s.domains[c.Domain].Limits {
				if l.Paused {
					if covers(&l.Setting, want.Name, at.Type) {
						w.t.Fatalf("a want of %s in %s, which is paused", at.Type, want.Name)
					}
					continue
				}
				names := func(ref table.Ref) bool {
					return slices.ContainsFunc(at.Path, func(i int) bool { return c.Stances[i].Ref == ref })
				}
				counts := covers(&l.Setting, want.Name, at.Type)
				if l.PerGroup && counts && at.Group == "" {
					w.t.Fatalf("a want of %v in %s, of groups that are not known", at, want.Name)
				}
				if l.PerGroup && at.Group == table.NoGroup {
					counts = false
				}
				if counts != names(ref) || l.PerGroup && counts != names(ref.Of(at.Group)) {
					w.t.Fatalf("a want of %v in %s names %s: %v", at, want.Name, ref, names(ref))
				}
			}
		}
	}
	w.after(w.delay(), func() {
		lost, done := w.lossy(&c)
		out := CallOutcome{Domain: c.Domain, Failed: lost || w.down[c.Domain]}
		if done && !w.down[c.Domain] {
			out.Outcome = w.do(c, lost)
		}
		if out.Failed {
			out.Outcome = table.Outcome{}
		}
		w.after(w.delay(), func() {
			o.calls[c.Domain] = 0
			o.give(func(in *Inputs) { in.Outcomes = append(in.Outcomes, out) })
		})
	})
}

// hears has a partition do something, or keeps it until it speaks again.
func (w *world) hears(p int, do func()) {
	w.after(w.delay(), func() {
		if at := w.partitions[p]; at.silent {
			at.kept = append(at.kept, do)
			return
		}
		do()
	})
}

// speak ends the silence of a partition.
func (w *world) speak(p int) {
	at := w.partitions[p]
	at.silent = false
	for _, do := range at.kept {
		w.after(0, do)
	}
	at.kept = nil
}

func (o *owner) ask(a question.Question) {
	w := o.w
	w.asked = append(w.asked, a)
	if a.Kind == question.Retrigger {
		w.retrigs = append(w.retrigs, a)
	}
	answered := false
	reply := func(out question.Answer) {
		if !answered {
			answered = true
			w.after(w.delay(), func() { o.give(func(in *Inputs) { in.Answers = append(in.Answers, out) }) })
		}
	}
	w.after(2*time.Second, func() { reply(question.Answer{Question: a, Failed: true}) })
	w.hears(a.Partition, func() {
		if answered {
			return
		}
		out := question.Answer{Question: a}
		switch a.Kind {
		case question.Retrigger:
			w.retrigger(a.Partition, o.shard, a.Domain, "")
		case question.Undelivered:
			out.Undelivered = w.undelivered(a.Partition, o.shard, o.epoch)
		case question.Holders:
			out.Holders = w.holders(&a)
		default:
			out.Running = w.held(a, o.shard)
			out.Superseded = o.epoch < w.partitions[a.Partition].fences[o.shard]
		}
		reply(out)
	})
}

// held is the attempts that run.
func (w *world) held(a question.Question, shard int) []limit.Running {
	var all []limit.Running
	for _, t := range w.sorted() {
		if t.id.Partition() != a.Partition || t.shard != shard || t.state != "running" {
			continue
		}
		if a.Kind == question.Bookings && len(t.path) == 0 || a.Kind == question.Running && (t.domain != a.Domain || len(a.Types) > 0 && !slices.Contains(a.Types, t.typ)) {
			continue
		}
		all = append(all, limit.Running{
			Domain: t.domain, Tasklist: t.list, Type: t.typ, Group: t.group, Path: t.path, Member: ids.Booking(t.id, t.version),
			DeadlineMS: epochMS + w.now.Milliseconds() + 60_000,
		})
	}
	return all
}

func (w *world) undelivered(p, shard int, epoch uint64) []grab.Undelivered {
	var all []grab.Undelivered
	for _, t := range w.sorted() {
		if t.id.Partition() == p && t.shard == shard && t.state == "running" && !t.received && t.owner[0] < epoch {
			all = append(all, grab.Undelivered{
				Domain: t.domain, ReplyTo: t.inbox, JSON: t.json, Max: w.polls[t.inbox].poll.Max, Trigger: ids.Trigger{ID: t.id, Version: t.version}, Nonce: t.nonce, Task: t.encode(),
			})
		}
	}
	return all
}

// encode is the task as a worker gets it.
func (t *task) encode() []byte {
	b := append([]byte(nil), t.id[:]...)
	b = binary.BigEndian.AppendUint32(b, t.version)
	return binary.BigEndian.AppendUint64(b, t.nonce)
}

// domainOf is the domain of a limit.
func domainOf(s *Shard, l *limit.Limit) *domain { return s.domains[l.Domain.Name] }
