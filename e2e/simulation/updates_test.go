package simulation

import (
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// updatesMost bounds the updates of a task: a request is known again while no more than three others have come since.
const updatesMost = 4

// updateSome lets somebody change a task, some times.
func (w *world) updateSome(t *historysim.Task) {
	id, domain, timed := t.ID, t.Domain, t.Extra != nil && t.Extra.Expiry != historysim.Expiry{}
	if !w.fault(updates, 350) {
		return
	}
	for range 1 + w.dice.IntN(updatesMost) {
		w.after(w.dice.upTo(w.dice.upTo(30*time.Second)), func() { w.update(id, domain, timed) })
	}
	if w.fault(foreignCancels, 100) {
		w.after(w.dice.upTo(10*time.Second), func() { w.update(id, rival, timed) })
	}
}

// update changes the payload of a task to the number of the request, and some more. The time of one that may expire stays.
func (w *world) update(id ids.TaskID, by string, timed bool) {
	w.requests++
	u := &historysim.Update{
		Request: w.requests, HasPayload: true, Payload: historysim.Blob{Data: []byte(strconv.FormatUint(w.requests, 10))},
	}
	if w.dice.chance(300) {
		u.IfRevision = 1 + w.dice.Uint64()%3
	}
	if w.dice.chance(400) {
		u.Priority = int32(1 + w.dice.IntN(5))
	}
	if w.groupOf[id] != "" && w.dice.chance(400) {
		u.Group = w.group()
	}
	switch {
	case timed:
	case w.dice.chance(300):
		u.Now = true
	case w.dice.chance(500):
		u.DueAt = w.serverMS() + w.dice.Int64N(w.dice.Int64N(25_000)+1) + 1
	}
	w.askers.ask("client", &call{
		events:  []historysim.Event{{Kind: historysim.Changed, ID: id, Domain: by, Update: u}},
		answers: func(int, *historysim.Verdict) {},
	})
}

// asked is an update that is in the log: at the first and the last event that asks for it.
type asked struct {
	first, last        uint64
	group              string
	confirmed, refused bool
}

// groupAt is the group of a task behind an event, submitted with one, as far as what was answered tells.
func (c *checker) groupAt(id ids.TaskID, seq uint64, group string) (string, bool) {
	at := uint64(0)
	for _, one := range c.updates[id] {
		switch never := one.refused && !one.confirmed && one.first == one.last; {
		case one.group == "" || never || one.first > seq:
		case !one.confirmed || one.first != one.last:
			return "", false
		case one.first > at:
			at, group = one.first, one.group
		}
	}
	return group, true
}

func (c *checker) updateAsked(e *historysim.Event, seq uint64) {
	if e.Kind != historysim.Changed || e.Domain == rival {
		return
	}
	of := c.updates[e.ID]
	if of == nil {
		of = map[uint64]*asked{}
		c.updates[e.ID] = of
	}
	one := of[e.Update.Request]
	if one == nil {
		one = &asked{first: seq, group: e.Update.Group}
		of[e.Update.Request] = one
	}
	one.last = seq
}

func (c *checker) updateConfirmed(e *historysim.Event) {
	if e.Domain == rival {
		c.w.violated("I14: %s is changed by another domain", c.w.name(e.ID))
		return
	}
	c.updates[e.ID][e.Update.Request].confirmed = true
}

// updateRefused holds that who may change a task never hears that it does not exist, and of another revision only if he asked for one.
func (c *checker) updateRefused(e *historysim.Event, v *historysim.Verdict) {
	if v.Code == fault.Unknown {
		return
	}
	c.updates[e.ID][e.Update.Request].refused = true
	if stale := v.Code == fault.Stale; v.Code != fault.FailedPrecondition && !stale || stale && (e.Update.IfRevision == 0 || e.Update.IfRevision == v.Revision) {
		c.w.violated("an update of %s if at revision %d gets %s, at revision %d", c.w.name(e.ID), e.Update.IfRevision, v.Code, v.Revision)
	}
}

// updatesHold holds that what was confirmed holds, was made once, and that the last update in the log is the one that counts.
func (c *checker) updatesHold(t *historysim.Task) {
	name, applied, confirmed := c.w.name(t.ID), int(t.Revision())-1, 0
	request, _ := strconv.ParseUint(string(t.Payload.Data), 10, 64)
	last := c.updates[t.ID][request]
	for number, one := range c.updates[t.ID] {
		if !one.confirmed {
			continue
		}
		confirmed++
		if last == nil || last.last < one.first {
			c.w.violated("update %d of %s was confirmed, and it ends as update %d made it", number, name, request)
		}
	}
	if applied < confirmed || applied > len(c.updates[t.ID]) {
		c.w.violated("%s ends with %d updates, %d were confirmed of %d", name, applied, confirmed, len(c.updates[t.ID]))
	}
}

// askedForGroup tells whether an update has asked for the group that a task ends with.
func (c *checker) askedForGroup(t *historysim.Task) bool {
	for _, one := range c.updates[t.ID] {
		if one.group == t.Group() {
			return true
		}
	}
	return false
}
