package partition

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// carryMax bounds how many tasks are carried forward at once.
const carryMax = 1000

// carryForward rewrites the state of tasks that have been active for long at the
// log's tail, so that they pin neither the ack level nor the event floor. The record
// tells the last event that its state has seen; a replay applies later ones on top.
func (o *Owner) carryForward() {
	tail := o.eventAt
	for _, l := range o.lanes {
		tail = max(tail, l.ReadLevel())
	}
	var old []*entry
	for _, e := range o.tasks {
		if len(old) >= carryMax {
			break
		}
		pin := e.carriedAsOf
		if pin == 0 {
			pin = e.Position.Seq()
		}
		active := e.State == taskstate.Ready || e.State == taskstate.Running || e.State == taskstate.Backoff
		if active && pin != 0 && tail-min(tail, pin) > o.Config.CarryAfter && o.pins(e) {
			old = append(old, e)
		}
	}
	for _, e := range old {
		carried := o.encoder.Record(&e.Task).CloneVT()
		carried.AsOf = o.eventAt
		id := e.ID
		o.outbox.own(&logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_CARRIED, TaskId: id[:], Position: uint64(e.Position), Carried: carried,
		})
	}
	o.Metrics.Carried.Add(int64(len(old)))
}

// pins tells whether e is among what holds the log back: the rest of a message that
// is mostly waiting for its turn must not be rewritten.
func (o *Owner) pins(e *entry) bool {
	if e.carriedAsOf != 0 {
		return true
	}
	oldest, ok := o.lanes[e.Position.Lane()].OldestOpen()
	return ok && e.Position.Seq() <= oldest+carryMax
}

// carriedRecorded moves the pin of a task to its carried record.
func (o *Owner) carriedRecorded(c *record.CarriedTask) {
	e, ok := o.tasks[c.Task.ID]
	if !ok || e.Position != c.Task.Position || e.State.Finished() || e.State == taskstate.Waiting {
		return
	}
	first := e.carriedAsOf == 0
	e.carriedAsOf = c.AsOf
	o.carried[e.ID] = e
	if first {
		lane := e.Position.Lane()
		o.lanes[lane].Done(e.Position.Seq())
		o.gates[lane].leave(1)
	}
}

// adopt takes in a carried task while replaying.
func (o *Owner) adopt(c *record.CarriedTask) *entry {
	e := &entry{Task: *c.Task, carriedAsOf: c.AsOf}
	o.lineUp(e)
	o.tasks[e.ID] = e
	o.carried[e.ID] = e
	e.recount()
	o.wake.Set(e, e.WakeAt())
	return e
}
