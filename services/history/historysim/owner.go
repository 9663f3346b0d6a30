package historysim

import (
	"math"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

// Halted begins the reason of an owner that has met what it cannot read.
const Halted = "halted: "

// events is the place of the stored turn among the sources, behind the lanes.
const events = ids.Lanes

const (
	// retryAfter is how long an owner waits before it repeats what failed.
	retryAfter = 100 * time.Millisecond
	tickEvery  = 100 * time.Millisecond
	// turnMax bounds the inputs of one turn.
	turnMax = 8
)

// reader reads one subject of the log.
type reader struct {
	next    uint64
	queue   []*Message
	waiting bool
}

// replayed is a message of a takeover; queue: it is read as that of a domain that lags.
type replayed struct {
	*Message
	queue bool
}

// Owner is one ownership of a partition.
type Owner struct {
	name string
	host Host
	cfg  Config
	r    *replica.Replica
	fx   replica.Effects

	// found is the checkpoint that was claimed, as it was before.
	found           Stored
	epoch, revision uint64
	saves           int
	cancelsDoneAt   int64
	claimedAt       time.Duration
	base            replica.Checkpoint
	recovered       replica.Recovered

	readers [ids.Lanes]reader
	turns   turns
	// queues are the readers of domains that lag.
	queues map[Queue]*reader
	// replaying are the messages of the takeover that have not been stepped through, once logRead.
	replaying []replayed
	logRead   bool
	inputs    []replica.Input
	live      bool
	turning   bool
	// stalled: the lease is over; no record until a checkpoint is saved.
	stalled  bool
	draining bool
	drained  bool
	ended    bool
}

// New makes an owner; Start begins its takeover.
func New(name string, cfg Config, host Host) *Owner {
	return &Owner{name: name, cfg: cfg, host: host, queues: make(map[Queue]*reader)}
}

// Live tells whether the takeover is over.
func (o *Owner) Live() bool { return o.live && !o.ended }

// Epoch is 0 before the claim.
func (o *Owner) Epoch() uint64 { return o.epoch }

// LeaseHolds tells whether the owner may step through records.
func (o *Owner) LeaseHolds() bool { return !o.ended && o.r != nil && o.r.LeaseHolds(o.host.Now().Mono) }

// Read tells whether the owner has read a message, or needs not.
func (o *Owner) Read(m *Message) bool {
	at := Queue{Lane: m.Lane, Domain: m.Domain}
	for _, q := range o.base.Queues {
		if !m.Event && q.Queue == at && m.Seq <= max(q.Ack, q.End) {
			return true // the lane's reader passes over it
		}
	}
	if !o.live {
		for _, left := range o.replaying {
			if left.Seq == m.Seq {
				return false
			}
		}
	}
	if m.Event {
		return o.r.EventAt() >= m.Seq || m.Seq <= o.base.Floor
	}
	levels := o.r.UnreadLevels("")
	return levels.Of(at) >= m.Seq || !slices.ContainsFunc(o.base.Queues, func(q QueueCursor) bool { return q.Queue == at }) && m.Seq <= o.base.Ack[m.Lane]
}

// Apart are the domains whose tasks are to be filed under the domain.
func (o *Owner) Apart() []string { return o.r.Apart() }

// Lagging counts the domains that lag behind a lane.
func (o *Owner) Lagging() int { return o.r.Lagging() }

// Len counts the tasks in memory.
func (o *Owner) Len() int {
	if o.r == nil {
		return 0
	}
	return o.r.Len()
}

// InLane counts the tasks in memory that were read from a lane.
func (o *Owner) InLane(lane ids.Lane) int {
	return len(o.r.List(math.MaxInt, func(t *Task) bool { return t.Position.Lane() == lane }))
}

// Kill ends the owner as SIGKILL does.
func (o *Owner) Kill() { o.ended = true }

// Drain makes the owner finish what it has begun, save, and end.
func (o *Owner) Drain() {
	o.draining = true
	if o.live {
		o.give(replica.Draining{})
	}
}

// Request asks for a batch of events. An owner that does not serve does not hear of it.
func (o *Owner) Request(m *Message) {
	if o.Live() && !o.draining {
		o.turns.requests = append(o.turns.requests, m)
		o.wake()
	}
}

// Hungry asks for the triggers of a tasklist again, but for those of the types that are present.
func (o *Owner) Hungry(domain, tasklist string, present []string) {
	if !o.Live() {
		return
	}
	o.r.Hungry(domain, tasklist, present, o.host.Now(), &o.fx)
	o.flush()
}

// Bounced says that the answer with these grants was not delivered. Only a grant that is no
// repetition may be taken back.
func (o *Owner) Bounced(a *Answer) {
	var all replica.Bounced
	for i := range a.Verdicts {
		if g := &a.Verdicts[i].Grant; g.Task != nil && g.First {
			all.Grants = append(all.Grants, replica.GrantRef{ID: g.Task.ID, Fence: g.Token})
		}
	}
	if len(all.Grants) > 0 {
		o.give(all)
	}
}

// FirstOf is the first task of an order key; false if the owner may not say, or knows of none.
func (o *Owner) FirstOf(domain, key string) (id ids.TaskID, blocked, ok bool) {
	if !o.Live() || !o.LeaseHolds() {
		return id, false, false
	}
	found, _ := o.r.Lines(&replica.LinesQuery{Domain: domain, Key: key})
	if len(found) == 0 {
		return id, false, false
	}
	return found[0].Head.ID, found[0].Head.Order().Blocked, true
}

// GrabsDecided tells whether every grab up to an event has been decided.
func (o *Owner) GrabsDecided(seq uint64) bool { return o.Live() && o.r.GrabsDecided(seq) }

// Bookings is a page of the running attempts of a matching shard. It is good once the grabs are decided
// that were in the log when the first page was asked for.
func (o *Owner) Bookings(q BookingsQuery) BookingsPage { return o.r.Bookings(q) }

// Overtaken tells whether a newer owner of a matching shard has fenced the one of an epoch.
func (o *Owner) Overtaken(shard int, epoch uint64) bool { return o.r.Overtaken(shard, epoch) }

// Undelivered is a page of up to limit grants of a shard's owners before epoch that may not have reached
// their polls, behind a task; likewise.
func (o *Owner) Undelivered(shard int, epoch uint64, after ids.TaskID, limit int) (page []Undelivered) {
	o.r.Undelivered(shard, epoch, after, func(u *Undelivered) bool {
		if len(page) == limit {
			return false
		}
		page = append(page, *u)
		return true
	})
	return page
}

func (o *Owner) finish(why string) {
	if !o.ended {
		o.ended = true
		o.host.Ended(why)
	}
}

// send carries out an operation, whose outcome is dropped once the owner has ended.
func (o *Owner) send(op *Op, done func(Outcome)) {
	op.Epoch = o.epoch
	op.Done = func(out Outcome) {
		if !o.ended && done != nil {
			done(out)
		}
	}
	o.host.Send(op)
}

// until repeats an operation until it is done.
func (o *Owner) until(op Op, done func(Outcome)) {
	again := op
	o.send(&op, func(out Outcome) {
		if out.Result == OK {
			done(out)
			return
		}
		o.host.After(retryAfter, func() {
			if !o.ended {
				o.until(again, done)
			}
		})
	})
}

func (o *Owner) give(in replica.Input) {
	if o.ended || o.r == nil {
		return
	}
	o.inputs = append(o.inputs, in)
	o.wake()
}

func (o *Owner) wake() {
	if o.turning {
		return
	}
	o.turning = true
	o.host.After(0, func() {
		o.turning = false
		if !o.ended {
			o.turn()
		}
	})
}

// Silent says that workers fell silent.
func (o *Owner) Silent(all ...WorkerKey) {
	if o.live && !o.ended {
		o.give(replica.Silent{Workers: all})
	}
}

// tick gives the replica the time, forever.
func (o *Owner) tick() {
	if o.ended {
		return
	}
	o.give(replica.Tick{})
	o.host.After(tickEvery, o.tick)
}

// turn steps through some of what waits, in any order that keeps each reader's, and
// carries out what follows.
func (o *Owner) turn() {
	for n := 1 + o.host.Pick(turnMax); n > 0 && !o.ended; n-- {
		if !o.stepOne() {
			break
		}
	}
	if o.ended {
		return
	}
	o.flush()
	o.fetch()
	if len(o.sources()) > 0 {
		o.wake()
	}
	if o.draining && o.live && o.r.Idle() && o.turns.idle() {
		o.drained = true
	}
}

// inputsOf is the source of inputs that are no records, behind the readers.
const inputsOf = events + 1

// queuesOf are the sources of domains that lag, in the order of their readings.
const queuesOf = inputsOf + 1

// sources are where something waits that may be stepped through now.
func (o *Owner) sources() []int {
	var all []int
	if len(o.inputs) > 0 {
		all = append(all, inputsOf)
	}
	if o.stalled || !o.live && (!o.logRead || len(o.replaying) == 0) {
		return all
	}
	if !o.live {
		return append(all, 0)
	}
	if o.draining {
		if len(o.turns.stored) > 0 {
			all = append(all, events)
		}
		return all
	}
	for i := range o.readers {
		if len(o.readers[i].queue) > 0 && o.r.Room(ids.Lane(i)) {
			all = append(all, i)
		}
	}
	if len(o.turns.stored) > 0 {
		all = append(all, events)
	}
	for i, rd := range o.r.Readings() {
		if q := o.queues[rd.Queue]; q != nil && len(q.queue) > 0 && o.r.QueueRoom(rd.Queue, q.queue[0].Seq) {
			all = append(all, queuesOf+i)
		}
	}
	return all
}

func (o *Owner) stepOne() bool {
	all := o.sources()
	if len(all) == 0 {
		return false
	}
	which := all[o.host.Pick(len(all))]
	if which == inputsOf {
		in := o.inputs[0]
		o.inputs = o.inputs[1:]
		o.r.Step(in, o.host.Now(), &o.fx)
		o.check()
		return true
	}
	m, taken := o.next(which)
	if !o.r.Step(inputOf(m), o.host.Now(), &o.fx) {
		o.stalled = true
		return true
	}
	taken()
	o.host.Applied(m.Message)
	o.check()
	if o.fx.Halt != nil {
		o.finish(Halted + o.fx.Halt.Error())
		return false
	}
	if !o.live && len(o.replaying) == 0 {
		o.recover()
	}
	return true
}

// next is the next message of a source; taken takes it out.
func (o *Owner) next(which int) (m replayed, taken func()) {
	if !o.live {
		return o.replaying[0], func() { o.replaying = o.replaying[1:] }
	}
	if which == events {
		return replayed{o.turns.stored[0], false}, func() { o.turns.stored = o.turns.stored[1:] }
	}
	var from *reader
	queue := which >= queuesOf
	if queue {
		from = o.queues[o.r.Readings()[which-queuesOf].Queue]
	} else {
		from = &o.readers[which]
	}
	return replayed{from.queue[0], queue}, func() { from.queue = from.queue[1:] }
}

func inputOf(m replayed) replica.Input {
	if m.Event {
		in := &replica.Events{
			Seq: m.Seq, At: m.At, Bytes: 100 * len(m.Events), ReplyTo: m.ReplyTo, RequestID: m.Request,
			Shard: m.Shard, Epoch: m.Epoch, Delivered: m.Delivered, Polls: m.Polls,
			Events: append([]Event(nil), m.Events...),
		}
		for i, c := range m.Carried {
			if in.Carried == nil {
				in.Carried = make(map[int]*replica.Carried)
			}
			in.Carried[i] = &replica.Carried{Entry: entryOf(&c.Task), AsOf: c.AsOf, Granted: c.Granted}
		}
		return in
	}
	in := &replica.Submits{Lane: m.Lane, Domain: m.Domain, Queue: m.queue, Seq: m.Seq, At: m.At, Bytes: 200 * len(m.Tasks)}
	for i := range m.Tasks {
		in.Tasks = append(in.Tasks, entryOf(&m.Tasks[i]))
	}
	return in
}

func (o *Owner) check() {
	if c, ok := any(o.r).(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			o.host.Fault("the replica of %s is broken: %v", o.name, err)
		}
	}
}

// turns are what an owner appends, as internal/turn does. Here each batch of a turn is a message of its own; they are stored together.
type turns struct {
	// requests wait for a turn, own is what the owner proposes.
	requests []*Message
	own      *Message
	// stored is a turn that is stored and not stepped through, last its last message.
	stored []*Message
	last   uint64
	// name is that of the last turn of this owner; busy: it is under way.
	name TurnName
	busy bool
}

// writer is an owner as its turns see it.
type writer interface {
	send(op *Op, done func(Outcome))
	until(op Op, done func(Outcome))
	finish(why string)
}

func (t *turns) idle() bool { return !t.busy && len(t.stored) == 0 }

// propose adds the owner's own events to the next turn.
func (t *turns) propose(own []replica.Proposal) {
	t.own = &Message{Event: true}
	for i := range own {
		p := &own[i]
		t.own.Events = append(t.own.Events, Event{
			Kind: p.Kind, ID: p.ID, Fence: p.Fence, Domain: p.Domain, Message: p.Message, Undelivered: p.Undelivered, NotAfter: p.NotAfter, SilentLease: p.SilentLease,
		})
		if p.Carried != nil {
			if t.own.Carried == nil {
				t.own.Carried = make(map[int]CarriedState)
			}
			t.own.Carried[i] = CarriedState{CopyTask(p.Carried), p.AsOf, p.Granted}
		}
	}
}

// begin appends what was proposed, and as many as pick says of what has been asked for, in a turn behind the last one.
func (t *turns) begin(w writer, pick func(n int) int, done func(proposed bool)) {
	if !t.idle() || t.own == nil && len(t.requests) == 0 {
		return
	}
	var turn []*Message
	n, proposed := pick(len(t.requests)+1), t.own != nil
	if proposed {
		turn, t.own = append(turn, t.own), nil
	} else {
		n = max(n, 1)
	}
	turn = append(turn, t.requests[:n]...)
	t.requests = t.requests[n:]
	t.name.Number++
	t.busy = true
	t.append(w, turn, func(out Outcome) {
		t.busy = false
		t.stored, t.last = out.Messages, out.Seq
		done(proposed)
	})
}

// append repeats a turn until it is stored. If it may be, or another one is there, the last turn tells.
func (t *turns) append(w writer, turn []*Message, done func(Outcome)) {
	w.send(&Op{Kind: AppendTurn, Turn: turn, Name: t.name, Expected: t.last}, func(out Outcome) {
		if out.Result == OK {
			done(out)
			return
		}
		w.until(Op{Kind: ReadLastTurn}, func(last Outcome) {
			switch {
			case last.LastTurn == t.name:
				done(last)
			case last.Seq == t.last:
				t.append(w, turn, done)
			default:
				w.finish("taken over")
			}
		})
	})
}
