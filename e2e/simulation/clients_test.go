package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

var policy = &historysim.Policy{
	MaxAttempts: 50, InitialIntervalMS: 100, Backoff: 1.5, MaxIntervalMS: 2000, StartToCloseMS: 3000, HeartbeatTimeoutMS: 1000,
}

// onePolicy is that of tasks whose only attempt must do.
var onePolicy = &historysim.Policy{MaxAttempts: 1, StartToCloseMS: 60_000}

func (w *world) policy() *historysim.Policy {
	if w.plan.once {
		return onePolicy
	}
	return policy
}

// requestMost bounds the tasks of a request.
const requestMost = 8

// submitSome lets clients submit so many tasks, now and then.
func (w *world) submitSome(left int) {
	if left <= 0 {
		return
	}
	n := min(left, 1+w.dice.IntN(requestMost))
	w.after(w.dice.upTo(w.plan.length*2/time.Duration(1+w.submits/4)), func() {
		w.submit(n)
		w.submitSome(left - n)
	})
}

// submit is one request of n tasks, which is one message of the log.
func (w *world) submit(n int) {
	if w.refuses(logFull) {
		w.after(w.dice.upTo(time.Second), func() { w.submit(n) })
		return
	}
	m := &historysim.Message{}
	if w.fault(sharedMessages, 300) {
		w.fillShared(m, n)
	} else {
		w.fill(m, n)
	}
	stored := w.startDirectly(m)
	w.appendLog(m)
	stored()
	if w.fault(doubledSubmits, 200) {
		w.appendLog(&historysim.Message{Lane: m.Lane, Place: m.Place, Tasks: m.Tasks})
	}
	for i := range m.Tasks {
		w.cancelSome(m.Tasks[i].ID)
		w.updateSome(&m.Tasks[i])
		w.redriveSome(m.Tasks[i].ID)
	}
	if w.telling {
		for i := range m.Tasks {
			t := &m.Tasks[i]
			w.say("client", "submits %s to lane %v at %d, due %d: %s/%s %s", w.name(t.ID), m.Lane, m.Seq, t.DueAt, t.Domain, t.Tasklist, t.Type)
		}
	}
}

// fill gives m tasks of one lane, of one priority or delayed: of all domains; of one that it is filed under; or of one tasklist.
func (w *world) fill(m *historysim.Message, n int) {
	some := w.match.someTask
	switch at := some(); {
	case w.dice.chance(300) || w.apart(at):
		m.Place, some = ids.PlaceOf(at.domain, at.tasklist), func() task { return at }
	case w.dice.chance(400) && !w.plan.listFloods(at): // what waits for a worker there holds up its domain
		m.Place, some = ids.PlaceOf(at.domain, ""), func() task { return w.match.another(at) }
	}
	if delayed := w.fault(delayedTasks, 250); delayed {
		m.Lane = ids.LaneLater
		for range n {
			w.addTask(m, 1+w.dice.IntN(5), delayed, some())
		}
		return
	}
	if w.fault(orderKeys, 250) {
		w.fillKeyed(m, n)
		return
	}
	m.Lane = ids.Lane(1 + w.dice.IntN(5))
	if w.plan.has(floods) {
		m.Lane = ids.Lane(1 + w.dice.IntN(2))
	}
	for range n {
		at := some()
		if m.Place == "" && w.apart(at) {
			at = task{domains[0], tasklists[domains[0]][0], free}
		}
		w.addTask(m, int(m.Lane), false, at)
	}
}

// fillKeyed gives m tasks with order keys.
func (w *world) fillKeyed(m *historysim.Message, n int) {
	at := w.match.someTask()
	if w.plan.listFloods(at) { // as above
		at = task{domains[0], tasklists[domains[0]][w.dice.IntN(shards)], at.typ}
	}
	m.Lane, m.Place = ids.LaneKeyed, ids.PlaceOf(at.domain, "")
	for range n {
		w.addTask(m, 1+w.dice.IntN(5), w.fault(delayedTasks, 250), at)
		t := &m.Tasks[len(m.Tasks)-1]
		x := historysim.Extra{}
		if t.Extra != nil {
			x = *t.Extra
		}
		x.Order = &historysim.Order{Key: fmt.Sprint(w.part, "/", w.dice.IntN(6))} // a key is in one partition
		if x.Order.Blocks = w.fault(blocks, 500); x.Order.Blocks {
			x.Expiry = historysim.Expiry{} // its time is changed
		}
		t.Extra, w.keyOf[t.ID] = &x, x.Order.Key
	}
}

// apart tells whether an owner wants such tasks to be filed under their domain, or their tasklist.
func (w *world) apart(at task) bool {
	list := ids.PlaceOf(at.domain, at.tasklist)
	for _, p := range w.living() {
		if p.owner.Live() && slices.ContainsFunc(p.owner.Apart(), func(apart ids.Place) bool { return apart.Has(list) }) {
			return true
		}
	}
	return false
}

// fillShared gives m tasks of all priorities, some of them delayed, on the most urgent lane, as frontends
// do without a backlog.
func (w *world) fillShared(m *historysim.Message, n int) {
	m.Lane = ids.LaneFirst
	for range n {
		at := w.match.someTask()
		if w.apart(at) {
			at = task{domains[0], tasklists[domains[0]][0], free}
		}
		w.addTask(m, 1+w.dice.IntN(5), w.fault(delayedTasks, 250), at)
	}
}

func (w *world) addTask(m *historysim.Message, priority int, delayed bool, at task) ids.TaskID {
	id := ids.NewTaskID(time.UnixMilli(w.serverMS()), w.part, w.dice.Uint64())
	w.addTaskAs(id, m, priority, delayed, at)
	return id
}

// addTaskAs adds a task with an id.
func (w *world) addTaskAs(id ids.TaskID, m *historysim.Message, priority int, delayed bool, at task) {
	now := w.serverMS()
	t := historysim.Task{
		ID: id, Domain: at.domain, Tasklist: at.tasklist, Type: at.typ, Priority: int32(priority), Policy: w.policy(),
	}
	if delayed {
		t.DueAt = now + 200 + w.dice.Int64N(3000)
		if w.dice.chance(400) {
			t.DueAt += w.dice.Int64N(30_000)
		}
	}
	if w.fault(expiries, 300) && !w.plan.once {
		t.Extra = w.expiry()
	}
	if w.fault(groups, 700) {
		if t.Extra == nil {
			t.Extra = new(historysim.Extra)
		}
		t.Extra.Group = w.group()
		w.groupOf[id] = t.Extra.Group
	}
	if w.fault(rates, 300) {
		if t.Extra == nil {
			t.Extra = new(historysim.Extra)
		}
		t.Extra.Cost = []int32{2, 3, 9}[w.dice.IntN(3)]
		w.costOf[id] = t.Extra.Cost
	}
	if w.fault(uniqueKeys, 300) {
		if t.Extra == nil {
			t.Extra = new(historysim.Extra)
		}
		t.Extra.Unique = &historysim.Unique{Key: id.String(), ForMS: w.dice.Int64N(3), Before: 1 + uint32(w.dice.IntN(5))}
	}
	if len(w.order)%2 == 0 {
		if t.Extra == nil {
			t.Extra = new(historysim.Extra)
		}
		t.Extra.Batch = w.batch()
		w.members[at.domain]++
	}
	if w.fault(ownPolicies, 500) && !w.plan.once {
		t.Policy = w.ownPolicy()
	}
	if w.dies(500) {
		t.Policy = w.ownPolicy()
		t.Policy.MaxAttempts = 1 + w.dice.Int32N(2)
	}
	w.ofType(&t, t.Policy != w.policy())
	w.policyOf[id] = t.Policy
	w.order = append(w.order, id)
	w.names[id] = w.named(fmt.Sprintf("t%d", len(w.order)))
	w.accepted[id] = at
	m.Tasks = append(m.Tasks, t)
}

// batch is the one that half of the tasks are of, in each domain. It has the time of the first of them.
func (w *world) batch() *historysim.Batch {
	if w.half.ID == "" {
		w.half = historysim.Batch{ID: "half", Made: w.serverMS()}
	}
	b := w.half
	return &b
}

// weights are those of groups in all domains.
var weights = map[string]float64{"idle": 0, "small": 0.01, "large": 100}

// group is that of a task: one of a few, or one of many.
func (w *world) group() string {
	if w.dice.chance(500) {
		return fmt.Sprintf("g%d", w.dice.IntN(200))
	}
	return []string{"idle", "small", "large"}[w.dice.IntN(3)]
}

// expiry is the time that a task has to start, or to be completed, or both.
func (w *world) expiry() *historysim.Extra {
	x := new(historysim.Extra)
	if w.dice.chance(600) {
		x.Expiry.StartWithinMS = 100 + w.dice.Int64N(10_000)
	}
	if w.dice.chance(600) || x.Expiry.StartWithinMS == 0 {
		x.Expiry.FinishWithinMS = x.Expiry.StartWithinMS + 100 + w.dice.Int64N(20_000)
	}
	return x
}

// cancelSome lets somebody cancel a task, some time.
func (w *world) cancelSome(id ids.TaskID) {
	if w.fault(cancels, 250) {
		w.after(w.dice.upTo(w.dice.upTo(30*time.Second)), func() { w.cancel(id, w.accepted[id].domain) })
		if w.dice.chance(200) {
			w.after(w.dice.upTo(20*time.Second), func() { w.cancel(id, w.accepted[id].domain) })
		}
	}
	if w.fault(foreignCancels, 100) {
		w.after(w.dice.upTo(10*time.Second), func() { w.cancel(id, rival) })
	}
}

func (w *world) cancel(id ids.TaskID, by string) {
	w.askers.ask("client", &call{
		events:  []historysim.Event{{Kind: historysim.Cancel, ID: id, Domain: by, Message: "by " + by}},
		answers: func(int, *historysim.Verdict) {},
	})
}
