package replica

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// A story is a random log of one partition, and what one reader in log order makes of it. Its
// model of the tasks is a map and taskstate; nothing of the replica is in it.
type story struct {
	rng     *rand.Rand
	now     int64
	seq     uint64
	eventAt uint64
	log     []*message
	tasks   map[ids.TaskID]*modelTask
	// order are the ids of tasks, unborn those of tasks that are submitted later.
	order, unborn []ids.TaskID
	sent          []taskstate.Event
	// requests counts those that change tasks.
	requests uint64
	asides   uint64
	// parked are the stays in the timer store as they were parked, released the bookings.
	parked   map[Stay]string
	released map[string]bool
	carried  []carriedRecord
	accepted map[outcome]bool
	// shards are what the matching shards have said, by their number in the log.
	shards [1 + storyShards]modelShard
	// keyed: most tasks have an order key.
	keyed bool
	// repeats allows a submit to be repeated, in its message or in a later one.
	repeats bool
}

type modelTask struct {
	taskstate.Task
	// pending are the cancels that wait for the stay to fire.
	pending []pendingCancel
	lane    ids.Lane
	record  taskstate.Task
	// granted is the batch that granted the running attempt, as long as it may not have been received.
	granted *Granted
	// line is its order key, and at its place in the log, until it ends by the event endedAt; 0 = it has not ended. Redriven it has none.
	line    *taskstate.Order
	at      ids.Position
	endedAt uint64
}

// storyShards is how many matching shards there are.
const storyShards = 2

// modelShard is one matching shard: the epoch of its fence, and how many batches its owners have sent.
type modelShard struct {
	epoch   uint64
	batches [8]uint64
}

type pendingCancel struct {
	ev taskstate.Event
	at int64
	w  *want
}

// message is one record of the log.
type message struct {
	seq    uint64
	at     int64
	events bool
	lane   ids.Lane
	// domain is the one that it is filed under; "" where domains share it.
	domain string
	// Of a lane: the records, whose Position is that of the stay before.
	tasks []taskstate.Task
	// Of the events.
	list    []taskstate.Event
	carried map[int]carriedRecord
	want    []*want
	asked   bool
	// Of matching.
	shard                     uint32
	epoch, request, delivered uint64
	polls                     []Poll
}

type carriedRecord struct {
	task    taskstate.Task
	asOf    uint64
	granted *Granted
}

// want is the verdict that the model gives.
type want struct {
	code fault.Code
	// repeated: an outcome that was accepted before, of a stay that is over. It may get OK
	// or STALE.
	repeated bool
	// foreign: it names another domain than its task's. It is refused, whatever the code.
	foreign bool
}

// seqGap leaves room in the log for what replicas append.
const seqGap = 64

var storyPolicy = &taskstate.Policy{
	MaxAttempts: 4, InitialIntervalMS: 1000, Backoff: 6, MaxIntervalMS: 60_000, StartToCloseMS: 9_000, HeartbeatTimeoutMS: 4_000,
}

func newStory(rng *rand.Rand, tasks, messages int, repeats bool) *story {
	s := &story{
		rng: rng, now: 1_700_000_000_000, tasks: make(map[ids.TaskID]*modelTask),
		parked: make(map[Stay]string), released: make(map[string]bool), accepted: make(map[outcome]bool), repeats: repeats,
	}
	if s.keyed = rng.IntN(3) == 0; s.keyed {
		tasks += rng.IntN(12)
	}
	for i := range tasks {
		s.unborn = append(s.unborn, ids.NewTaskID(time.UnixMilli(s.now), 0, uint64(i+1)))
	}
	for range messages {
		s.now += []int64{0, 1, 50, 2_000, 6_000}[rng.IntN(5)]
		switch n := rng.IntN(100); {
		case n < 25 && len(s.unborn) > 0 || len(s.order) == 0:
			s.submit()
		case n < 40:
			s.fire()
		case n < 45:
			s.snapshot()
		default:
			s.happen()
		}
	}
	for _, id := range s.order { // what was decided to fire, fires
		if m := s.tasks[id]; len(m.pending) > 0 {
			s.fireTasks([]*modelTask{m})
		}
	}
	return s
}

func (s *story) append(m *message) *message {
	s.seq += seqGap
	m.seq, m.at = s.seq, s.now
	s.log = append(s.log, m)
	return m
}

// submit appends some of the unborn, delayed or not, and sometimes a repetition.
func (s *story) submit() {
	if len(s.unborn) == 0 {
		return
	}
	n := 1 + s.rng.IntN(min(3, len(s.unborn)))
	lane := []ids.Lane{ids.LaneLater, 2, 4}[s.rng.IntN(3)]
	keyed := s.keyed && s.rng.IntN(5) > 0
	if keyed {
		lane, n = ids.LaneKeyed, s.sameDomainFirst(n)
	}
	var records []taskstate.Task
	for _, id := range s.unborn[:n] {
		t := taskstate.Task{
			ID: id, Domain: domainOf(id), Tasklist: "mail", Type: "send", Priority: int32(min(max(1, lane), ids.LaneLast)), Policy: storyPolicies[s.rng.IntN(len(storyPolicies))],
			Payload: taskstate.Blob{Data: []byte("payload")},
		}
		if s.rng.IntN(3) == 0 {
			within := []int64{0, 3_000, 30_000}
			t.Extra = &taskstate.Extra{Expiry: taskstate.Expiry{StartWithinMS: within[s.rng.IntN(3)], FinishWithinMS: 2 * within[s.rng.IntN(3)]}}
		}
		if keyed {
			x := taskstate.Extra{}
			if t.Extra != nil {
				x = *t.Extra
			}
			x.Order = s.orderOf()
			t.Extra, t.Policy = &x, keyedPolicies[s.rng.IntN(len(keyedPolicies))]
		}
		if lane == ids.LaneLater || s.rng.IntN(4) == 0 {
			t.DueAt = s.now + 1 + s.rng.Int64N(60_000)
		}
		records = append(records, t)
		if s.repeats && s.rng.IntN(6) == 0 {
			records = append(records, t)
		}
	}
	s.unborn = s.unborn[n:]
	domain := s.filedUnder(records)
	if keyed {
		domain = records[0].Domain // never in a message that domains share
	}
	s.submitted(lane, domain, records)
	if s.repeats && !keyed && s.rng.IntN(4) == 0 {
		s.submitted(lane, domain, records)
	}
}

// domains are whose tasks there are.
var domains = []string{"shop", "depot"}

func domainOf(id ids.TaskID) string { return domains[id[15]%2] }

// filedUnder is the domain of all records, if a message of them is filed under it.
func (s *story) filedUnder(records []taskstate.Task) string {
	domain := records[0].Domain
	for _, r := range records {
		if r.Domain != domain {
			return ""
		}
	}
	if s.rng.IntN(4) == 0 {
		return ""
	}
	return domain
}

func (s *story) submitted(lane ids.Lane, domain string, records []taskstate.Task) {
	m := s.append(&message{lane: lane, domain: domain, tasks: records})
	for i, r := range records {
		known := s.tasks[r.ID]
		if known != nil {
			continue
		}
		known = &modelTask{Task: cloneTask(&r), lane: max(1, lane), record: r}
		known.Position = m.position()
		known.Extra = known.Extra.LiesAt(m.seq, i)
		known.line, known.at = known.Order(), known.Position
		if lane == ids.LaneKeyed { // it is fired only once it is redriven, by its priority
			known.lane = 2
		}
		s.tasks[r.ID] = known
		s.order = append(s.order, r.ID)
		taskstate.Load(&known.Task, m.at)
		s.note(known, taskstate.Effects{})
	}
}

// fire brings back some of the tasks that wait, and sometimes one twice.
func (s *story) fire() {
	var due []*modelTask
	for _, id := range s.order {
		if m := s.tasks[id]; m.State == taskstate.Waiting && s.rng.IntN(2) == 0 {
			due = append(due, m)
		}
	}
	if len(due) > 0 {
		s.fireTasks(due)
	}
}

func (s *story) fireTasks(due []*modelTask) {
	byLane := map[Queue][]*modelTask{}
	for _, m := range due {
		at := Queue{m.lane, m.Domain}
		byLane[at] = append(byLane[at], m)
	}
	for i := range 3 * len(domains) {
		lane := []ids.Lane{1, 2, 4}[i%3]
		tasks := byLane[Queue{lane, domains[i/3]}]
		if len(tasks) == 0 {
			continue
		}
		var records []taskstate.Task
		for _, m := range tasks {
			r := cloneTask(&m.Task)
			r.State, r.Before = taskstate.None, 0
			records = append(records, r)
			if s.repeats && s.rng.IntN(6) == 0 {
				records = append(records, r)
			}
		}
		msg := s.append(&message{lane: lane, domain: domains[i/3], tasks: records})
		for _, m := range tasks {
			m.Before, m.Position = m.Position, msg.position()
			taskstate.Load(&m.Task, msg.at)
			for _, c := range m.pending {
				v, fx := taskstate.Apply(&m.Task, &c.ev, max(c.at, msg.at))
				c.w.code = v.Code
				s.note(m, fx)
			}
			m.pending = nil
		}
		if s.repeats && s.rng.IntN(4) == 0 {
			s.append(&message{lane: lane, domain: domains[i/3], tasks: records})
		}
	}
}

// note remembers what a task did.
func (s *story) note(m *modelTask, fx taskstate.Effects) {
	if fx.Release != nil {
		at := m.own()
		if m.Attempt.Shard > 0 {
			at = m.Attempt.Shard
		}
		s.released[ids.Booking(m.ID, fx.ReleaseVersion)+fmt.Sprint(fx.Release, " at ", at)] = true
	}
	if m.State != taskstate.Running {
		m.Attempt.Shard = 0
	}
	if m.State == taskstate.Waiting {
		s.parked[Stay{m.ID, m.Parkings}] = dump(&m.Task)
	}
}

// own is the shard of the first partition of its tasklist, plus one.
func (m *modelTask) own() uint16 {
	return uint16(ids.MatchingShard(m.Domain, m.Tasklist, 0, storyShards)) + 1
}

// snapshot is what an owner that has read everything so far would carry.
func (s *story) snapshot() {
	id := s.order[s.rng.IntN(len(s.order))]
	m := s.tasks[id]
	if active(m.State) {
		s.carried = append(s.carried, carriedRecord{cloneTask(&m.Task), s.eventAt, m.granted})
	}
}

func active(st taskstate.State) bool {
	return st == taskstate.Ready || st == taskstate.Running || st == taskstate.Backoff
}

// happen appends a message of events.
func (s *story) happen() {
	m := s.append(&message{events: true, asked: s.rng.IntN(6) > 0, carried: make(map[int]carriedRecord)})
	if s.rng.IntN(2) == 0 && s.ofMatching(m) {
		s.eventAt = m.seq
		return
	}
	var last taskstate.Event
	for range 1 + s.rng.IntN(3) {
		if len(s.carried) > 0 && s.rng.IntN(3) > 0 {
			c := s.carried[0]
			s.carried = s.carried[1:]
			m.want = append(m.want, new(want))
			m.carried[len(m.list)] = c
			m.list = append(m.list, taskstate.Event{Kind: taskstate.Carried, ID: c.task.ID, Fence: ids.Token{Position: c.task.Position}})
			continue
		}
		last = s.wish(m.seq)
		s.add(m, last)
	}
	s.eventAt = m.seq
	s.crowd(&last)
}

// add has a message ask for something.
func (s *story) add(m *message, ev taskstate.Event) {
	w := new(want)
	m.list, m.want = append(m.list, ev), append(m.want, w)
	s.sent = append(s.sent, ev)
	s.decide(&ev, m, w)
}

var storyPaths = []*taskstate.Path{nil, nil, taskstate.NewPath("type/send"), taskstate.NewPath("domain", "type/send")}

// fencedMark is behind the code of what a newer owner of the shard has fenced.
const fencedMark fault.Code = " fenced"

// ofMatching makes a message one of a matching shard: of any owner, before or after its fence. It returns
// true for a fence, which has no other events.
func (s *story) ofMatching(m *message) bool {
	m.shard = uint32(1 + s.rng.IntN(len(s.shards)-1))
	sh := &s.shards[m.shard]
	m.epoch = uint64(max(0, int(sh.epoch)+s.rng.IntN(3)-1)) % uint64(len(sh.batches))
	sh.batches[m.epoch]++
	m.request = sh.batches[m.epoch]
	m.delivered = s.rng.Uint64N(m.request)
	m.polls = []Poll{{Worker: taskstate.NewWorker("w", ""), ReplyTo: "inbox"}}
	for _, t := range s.tasks {
		if g := t.granted; g != nil && g.Shard == m.shard && g.Epoch == m.epoch && g.Request <= m.delivered {
			t.granted = nil
		}
	}
	if s.rng.IntN(3) > 0 {
		return false
	}
	w := new(want)
	m.list, m.want = append(m.list, taskstate.Event{Kind: taskstate.Fence}), append(m.want, w)
	if m.epoch < sh.epoch {
		w.code = fault.Stale + fencedMark
	}
	sh.epoch = max(sh.epoch, m.epoch)
	return true
}

// decide is the model: one reader, in log order.
func (s *story) decide(ev *taskstate.Event, msg *message, w *want) {
	m := s.tasks[ev.ID]
	pos := ev.Fence.Position
	w.foreign = m != nil && ev.Domain != "" && ev.Domain != m.Domain
	switch {
	case (ev.Kind == taskstate.Started || ev.Kind == taskstate.Released) && msg.shard > 0 && msg.epoch < s.shards[msg.shard].epoch:
		w.code = fault.Stale + fencedMark
		return
	case m != nil && ev.Kind == taskstate.Redrove:
		w.code = s.redrive(ev, msg, m, w.foreign)
		return
	case m == nil, !ev.Kind.Command() && (pos.Lane() >= ids.Lanes || pos.Seq() >= msg.seq):
		w.code = fault.NotFound
		return
	case ev.Kind == taskstate.Cancel && m.State == taskstate.Waiting:
		s.cancelWaiting(ev, msg, m, w)
		return
	}
	w.repeated = s.accepted[outcomeOf(ev)] && (m.State == taskstate.Waiting || !pos.Same(m.Position))
	if !ev.Kind.Command() && !pos.Same(m.Position) {
		w.code = taskstate.ApplyToEarlierStay(&m.Task, ev).Code
		return
	}
	was, own := m.State, *ev
	own.Seq, own.Index, own.At = msg.seq, uint32(len(msg.list)-1), msg.at
	v, fx := taskstate.Apply(&m.Task, &own, msg.at)
	if v.Granted && m.Order() != nil && !s.isFirst(m, msg.seq) {
		panic(fmt.Sprintf("%s is granted at %d, and one of its key before it has not ended", m.ID, msg.seq))
	}
	if m.State.Finished() && m.endedAt == 0 {
		m.endedAt = msg.seq
	}
	w.code = v.Code
	if v.Code == "" && !ev.Kind.Command() {
		s.accepted[outcomeOf(ev)] = true
	}
	switch {
	case v.Granted && !v.Repeated && msg.shard > 0:
		m.granted = &Granted{Shard: msg.shard, Epoch: msg.epoch, Request: msg.request}
		if at := uint16(msg.shard); at != m.own() {
			m.Attempt.Shard = at
		}
	case v.Code == "" && (m.State != taskstate.Running || ev.Kind == taskstate.Heartbeat):
		m.granted = nil
	}
	if m.State != was || fx != (taskstate.Effects{}) {
		s.note(m, fx)
	}
}

// cancelWaiting: whether the timer fires a task that is cancelled while it waits is up to it.
func (s *story) cancelWaiting(ev *taskstate.Event, msg *message, m *modelTask, w *want) {
	switch {
	case ev.Domain != "" && ev.Domain != m.Domain:
		w.code = fault.NotFound
	case len(m.pending) > 0 || s.rng.IntN(2) == 0:
		m.pending = append(m.pending, pendingCancel{*ev, msg.at, w})
	default:
		taskstate.CancelUnseen(&m.Task, ev.Message, msg.at)
	}
}
