package historysim

import (
	"math"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Halted begins the reason of an owner that has met what it cannot read. TakenOver is that of one that has met a newer owner.
const (
	Halted    = "halted: "
	TakenOver = "taken over"
)

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

// Owner is one ownership of a partition.
type Owner struct {
	name string
	host Host
	cfg  Config
	r    *replica.Replica
	fx   replica.Effects

	epoch, revision uint64
	saves           int
	start           replica.Start

	readers [ids.Lanes]reader
	turns   turns
	// queues are the readers of domains that lag.
	queues  map[Queue]*reader
	again   replay
	inputs  []replica.Input
	live    bool
	turning bool
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

// LeaseHolds tells whether the owner may step through records.
func (o *Owner) LeaseHolds() bool { return !o.ended && o.r != nil && o.r.LeaseHolds(o.host.Now().Mono) }

// Read tells whether the owner has read a message, or needs not.
func (o *Owner) Read(m *Message) bool {
	if o.r == nil {
		return false
	}
	if m.Event {
		return o.r.EventAt() >= m.Seq
	}
	levels := o.r.UnreadLevels("")
	return levels.Of(Queue{Lane: m.Lane, Place: m.Place}) >= m.Seq
}

// Apart are the places whose tasks are to be filed there.
func (o *Owner) Apart() []ids.Place { return o.r.Apart() }

// Lagging counts the places that are split off a lane.
func (o *Owner) Lagging() int { return o.r.Splits() }

// Len counts the tasks in memory.
func (o *Owner) Len() int {
	if o.r == nil {
		return 0
	}
	return o.r.Len()
}

// InLane counts the tasks in memory that were read from a lane and have not run. While one runs others are read, and it may wait again beside them. A
// task that a redrive has brought back was not read.
func (o *Owner) InLane(lane ids.Lane) int {
	n := 0
	for _, d := range o.r.Domains("", math.MaxInt) {
		for walk := (dispatch.Walk{Domain: d.Domain}); !o.r.Walk(&walk, func(e *dispatch.Entry) {
			back := e.State == taskstate.Waiting && e.Redriven().Count > 0
			if e.Position.Lane() == lane && e.Grants() == 0 && !back {
				n++
			}
		}); {
		}
	}
	return n
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
	found, ok := o.r.OrderKeys().Of(domain, key)
	if !ok {
		return id, false, false
	}
	return found.Head.ID, found.Head.Order().Blocked, true
}

// Members is how many tasks of a batch an owner has admitted, and how many of them have ended.
func Members(o *Owner, domain string, b Batch) (tasks, ended int64) {
	tally := o.r.Members[batch.Name{Domain: domain, ID: b.ID, Made: b.Made}]
	return tally.Tasks, tally.Total()
}

// GrabsDecided tells whether every grab up to an event has been decided.
func (o *Owner) GrabsDecided(seq uint64) bool { return o.Live() && o.r.EventAt() >= seq }

// Bookings is a page of the running attempts of a matching shard. It is good once the grabs are decided
// that were in the log when the first page was asked for.
func (o *Owner) Bookings(q BookingsQuery) BookingsPage { return o.r.Bookings(q) }

// Overtaken tells whether a newer owner of a matching shard has fenced the one of an epoch.
func (o *Owner) Overtaken(shard int, epoch uint64) bool { return o.r.Superseded(shard, epoch) }

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
	if o.stalled || !o.live && len(o.again.turns) == 0 {
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
		if len(o.readers[i].queue) > 0 && o.r.MayAdmit() && o.r.Room(ids.Lane(i)) {
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
		if o.fx.TakenOver {
			o.finish(TakenOver)
		}
		return !o.ended
	}
	if !o.live {
		o.again.next(o)
	} else if in, all, taken := o.next(which); o.take(in, all) {
		taken()
	}
	if o.ended || o.stalled {
		return !o.ended
	}
	if !o.live && o.again.over() {
		o.recover()
	}
	return true
}

// take steps through what messages hold. It is false while the lease does not hold, or at the end.
func (o *Owner) take(in replica.Input, all []*Message) bool {
	if !o.r.Step(in, o.host.Now(), &o.fx) {
		o.stalled = true
		return false
	}
	for _, m := range all {
		o.host.Applied(m)
	}
	o.check()
	if o.fx.Halt != nil {
		o.finish(Halted + o.fx.Halt.Error())
		return false
	}
	return true
}

// next is what a source has next, and the messages that hold it; taken takes it out.
func (o *Owner) next(which int) (in replica.Input, all []*Message, taken func()) {
	if which == events {
		return turnOf(o.turns.stored), o.turns.stored, func() { o.turns.stored = nil }
	}
	var from *reader
	by := ids.Place("")
	if which >= queuesOf {
		at := o.r.Readings()[which-queuesOf].Queue
		from, by = o.queues[at], at.Place
	} else {
		from = &o.readers[which]
	}
	m := from.queue[0]
	return submitsOf(m, by), []*Message{m}, func() { from.queue = from.queue[1:] }
}

func (o *Owner) check() {
	if err := o.r.Check(); err != nil {
		o.host.Fault("the replica of %s is broken: %v", o.name, err)
	}
}

// The step by which an attempt begins, and those that cost the task one, or would if its worker had got it.
const (
	StepStarted  = taskstate.StepStarted
	StepFailed   = taskstate.StepFailed
	StepTimedOut = taskstate.StepTimedOut
	StepLost     = taskstate.StepLost
)

// NewWorker is who runs an attempt, by name and the id of its signs of life.
func NewWorker(name, id string) *Worker { return taskstate.NewWorker(name, id, 0) }

// NewPath is a path of limits; nil of none.
func NewPath(refs ...string) *Path { return taskstate.NewPath(refs...) }

// Retrigger sends the triggers of all that is ready of a matching shard again, those of one
// domain or of all domains. It returns false if the owner does not serve.
func (o *Owner) Retrigger(domain string, shard int) bool {
	if !o.Live() {
		return false
	}
	o.r.Retrigger(domain, shard, o.host.Now().MS, &o.fx.Effects)
	o.flush()
	return true
}
