package simulation

import (
	"cmp"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// commandKey has an operator skip or unblock the first task of an order key, as the one of the owners says it is that is asked.
func (w *world) commandKey(domain, key string) {
	all := w.living()
	if len(all) == 0 {
		return
	}
	id, blocked, ok := all[w.dice.IntN(len(all))].owner.FirstOf(domain, key)
	if !ok {
		return
	}
	e := historysim.Event{Kind: historysim.Skipped, ID: id, Domain: domain, OrderKey: key, Message: "by ann", Update: w.dated(&historysim.Update{})}
	if e.CancelRunning = w.dice.chance(300); blocked && w.dice.chance(600) {
		e.Kind, e.CancelRunning = historysim.Unblocked, false
	}
	w.askers.ask("operator", &call{events: []historysim.Event{e}, answers: func(int, *historysim.Verdict) {}})
}

// endByHand has an operator end a task, wherever it is.
func (w *world) endByHand(id ids.TaskID, by string) {
	ends := []historysim.State{historysim.Completed, historysim.Dead, historysim.Cancelled}
	e := historysim.Event{Kind: historysim.Ended, ID: id, Domain: by, Message: "by ann", Update: w.dated(&historysim.Update{EndState: ends[w.dice.IntN(len(ends))]})}
	w.askers.ask("operator", &call{events: []historysim.Event{e}, answers: func(int, *historysim.Verdict) {}})
}

// ofOperator reports whether an event skips, unblocks or ends a task.
func ofOperator(e *historysim.Event) bool { return e.Kind.OfKey() || e.Kind == historysim.Ended }

// keyCommandAsked takes in a skip, an unblock or an end that is in the log.
func (c *checker) keyCommandAsked(e *historysim.Event) {
	if !ofOperator(e) || e.Domain == rival {
		return
	}
	c.mayBeSkipped[e.ID] = c.mayBeSkipped[e.ID] || e.Kind == historysim.Skipped || e.Update.EndState == historysim.Dead
	c.asked[e.ID] = c.asked[e.ID] || e.Update.EndState == historysim.Cancelled
	if c.ofKeys[e.ID] == nil {
		c.ofKeys[e.ID] = map[uint64]bool{}
	}
	if _, again := c.ofKeys[e.ID][e.Update.Request]; !again {
		c.ofKeys[e.ID][e.Update.Request] = false
	}
}

// keyCommanded holds that what was skipped or ended has not run since, and that only what ends its turn is skipped.
func (c *checker) keyCommanded(e *historysim.Event, v *historysim.Verdict, seq uint64) {
	if e.Domain == rival {
		c.w.violated("I14: %s is ended by another domain", c.w.name(e.ID))
		return
	}
	c.ofKeys[e.ID][e.Update.Request] = true
	if e.Kind == historysim.Unblocked || e.Kind == historysim.Skipped && (v.CancelRequested || e.CancelRunning) {
		return
	}
	if at, ok := c.skipped[e.ID]; !ok || seq < at {
		c.skipped[e.ID], c.endedAs[e.ID] = seq, cmp.Or(e.Update.EndState, historysim.Dead)
	}
	if c.grantedAt[e.ID] > seq && !c.redriveAsked[e.ID] {
		c.w.violated("%s is skipped by event %d, and was granted by event %d", c.w.name(e.ID), seq, c.grantedAt[e.ID])
	}
}
