package simulation

import (
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

// keyCommandAsked takes in a skip or an unblock that is in the log.
func (c *checker) keyCommandAsked(e *historysim.Event) {
	if !e.Kind.OfKey() {
		return
	}
	c.mayBeSkipped[e.ID] = c.mayBeSkipped[e.ID] || e.Kind == historysim.Skipped
	if c.ofKeys[e.ID] == nil {
		c.ofKeys[e.ID] = map[uint64]bool{}
	}
	if _, again := c.ofKeys[e.ID][e.Update.Request]; !again {
		c.ofKeys[e.ID][e.Update.Request] = false
	}
}

// keyCommanded holds that what was skipped has not run since, and that only what ends its turn is skipped.
func (c *checker) keyCommanded(e *historysim.Event, v *historysim.Verdict, seq uint64) {
	c.ofKeys[e.ID][e.Update.Request] = true
	if e.Kind != historysim.Skipped || v.CancelRequested || e.CancelRunning {
		return
	}
	if at, ok := c.skipped[e.ID]; !ok || seq < at {
		c.skipped[e.ID] = seq
	}
	if c.grantedAt[e.ID] > seq {
		c.w.violated("%s is skipped by event %d, and was granted by event %d", c.w.name(e.ID), seq, c.grantedAt[e.ID])
	}
}
