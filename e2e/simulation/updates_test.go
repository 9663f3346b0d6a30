package simulation

import (
	"slices"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

const (
	// updatesMost bounds the updates of most tasks, crowdMost those of a few within seconds.
	updatesMost = 12
	crowdMost   = 30
)

// updateSome lets somebody change a task, some times.
func (w *world) updateSome(t *historysim.Task) {
	id, domain, timed := t.ID, t.Domain, t.Extra != nil && t.Extra.Expiry != historysim.Expiry{}
	if o := t.Order(); o != nil && o.Blocks {
		w.unblock(id, domain)
		return
	}
	if !timed && w.fault(updates, 150) {
		w.after(w.dice.upTo(w.dice.upTo(10*time.Second)), func() { w.endByHand(id, domain) })
	}
	if !w.fault(updates, 350) {
		return
	}
	most, crowded := updatesMost, w.fault(updates, 25)
	if w.plan.has(rates) { // a change may leave a trigger that is void, and to find that out takes a start
		most, crowded = 4, false
	}
	for range 1 + w.dice.IntN(most) {
		w.after(w.dice.upTo(w.dice.upTo(30*time.Second)), func() { w.update(id, domain, timed) })
	}
	if crowded {
		w.crowd(id, domain)
	}
	if w.fault(foreignCancels, 100) {
		w.after(w.dice.upTo(10*time.Second), func() { w.update(id, rival, timed) })
		w.after(w.dice.upTo(10*time.Second), func() { w.endByHand(id, rival) })
	}
}

// crowd has many change a task within seconds.
func (w *world) crowd(id ids.TaskID, domain string) {
	begin := w.dice.upTo(10 * time.Second)
	for range 1 + w.dice.IntN(crowdMost) {
		w.after(begin+w.dice.upTo(6*time.Second), func() { w.change(id, domain, &historysim.Update{}) })
	}
}

// unblock has a task that may block its order key run again, until it has ended. An update is answered, or given up, before the next one.
func (w *world) unblock(id ids.TaskID, domain string) {
	w.after(w.dice.between(20*time.Second, 25*time.Second), func() {
		if w.ended(id) {
			return
		}
		if w.dice.chance(500) {
			w.change(id, domain, &historysim.Update{Now: true})
		} else {
			w.commandKey(domain, w.keyOf[id])
		}
		w.unblock(id, domain)
	})
}

// update changes the payload of a task to the number of the request, and some more. The time of one that may expire stays.
func (w *world) update(id ids.TaskID, by string, timed bool) {
	u := &historysim.Update{}
	if w.dice.chance(300) {
		u.IfRevision = 1 + w.dice.Uint64()%3
	}
	if w.dice.chance(400) {
		u.Priority = int32(1 + w.dice.IntN(5))
	}
	if w.groupOf[id] != "" && w.dice.chance(400) {
		u.Group = w.group()
	}
	if w.plan.has(moves) && w.dice.chance(300) {
		u.Tasklist = w.match.another(w.accepted[id]).tasklist
		w.moves(id, u.Tasklist)
	}
	switch {
	case timed:
	case w.dice.chance(300):
		u.Now = true
	case w.dice.chance(500):
		u.DueAt = w.serverMS() + w.dice.Int64N(w.dice.Int64N(25_000)+1) + 1
	}
	w.change(id, by, u)
}

// moves notes that a task may be in a tasklist from now on.
func (w *world) moves(id ids.TaskID, to string) {
	if w.movedTo[id] == nil {
		w.movedTo[id] = map[string]bool{}
	}
	w.movedTo[id][to] = true
}

// mayBeIn reports whether a task was submitted to a tasklist, or may have moved there.
func (w *world) mayBeIn(id ids.TaskID, tasklist string) bool {
	return w.accepted[id].tasklist == tasklist || w.movedTo[id][tasklist]
}

// soleFor is how long an asker waits at least until it asks again.
const soleFor = 500 * time.Millisecond

// dated gives an update its request, and a time before which the log has no copy of it, as a frontend does.
func (w *world) dated(u *historysim.Update) *historysim.Update {
	w.requests++
	u.Request, u.Since = w.requests, w.serverMS()
	if w.faulty && w.plan.has(steppingServer) {
		u.Since = 1 // any time
	}
	return u
}

// change asks for an update, with a new payload. Some ask for the same again later, who have lost the answer.
func (w *world) change(id ids.TaskID, by string, u *historysim.Update) {
	w.dated(u)
	u.HasPayload, u.Payload = true, historysim.Blob{Data: []byte(strconv.FormatUint(w.requests, 10))}
	c := &call{
		events:  []historysim.Event{{Kind: historysim.Changed, ID: id, Domain: by, Update: u}},
		answers: func(int, *historysim.Verdict) {},
	}
	if w.dice.chance(100) {
		again := &call{events: c.events, answers: c.answers, tries: triesMost - 1}
		w.after(w.dice.between(soleFor, 9*time.Second), func() { w.askers.ask("client", again) })
	}
	w.askers.ask("client", c)
}

// sentFirst are events that are asked for the first time. They are not repeated before soleFor after their request, however late they are sent.
func sentFirst(events []historysim.Event) []historysim.Event {
	first := slices.Clone(events)
	for i := range first {
		if u := first[i].Update; u != nil {
			alone := *u
			alone.SoleUntil = u.Since + soleFor.Milliseconds()
			first[i].Update = &alone
		}
	}
	return first
}

// asked is an update that is in the log: at the first and the last event that asks for it.
type asked struct {
	first, last        uint64
	group, tasklist    string
	confirmed, refused bool
	// refusedAt is the first event of those that were refused, madeAt the last one of those that were not; 0 = none.
	refusedAt, madeAt uint64
	// revision is that of the task that it made; 0 = it was not answered.
	revision uint64
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
		one = &asked{first: seq, group: e.Update.Group, tasklist: e.Update.Tasklist}
		of[e.Update.Request] = one
	}
	one.last = seq
}

// updateConfirmed holds that an update is made once: all owners, however often they say so, name one revision.
func (c *checker) updateConfirmed(e *historysim.Event, v *historysim.Verdict, seq uint64) {
	if e.Domain == rival {
		c.w.violated("I14: %s is changed by another domain", c.w.name(e.ID))
		return
	}
	one := c.updates[e.ID][e.Update.Request]
	if one.revision > 0 && one.revision != v.Revision {
		c.w.violated("update %d of %s made its revision %d, and by event %d revision %d", e.Update.Request, c.w.name(e.ID), one.revision, seq, v.Revision)
	}
	one.confirmed, one.madeAt, one.revision = true, max(one.madeAt, seq), v.Revision
	c.refusedStays(e.ID, e.Update.Request)
}

// refusedStays holds that an update which was refused is not made by a copy that comes later, unless the task may have come back since.
func (c *checker) refusedStays(id ids.TaskID, request uint64) {
	if one := c.updates[id][request]; one.refusedAt > 0 && one.madeAt > one.refusedAt && !c.redriveAsked[id] {
		c.w.violated("update %d of %s is refused by event %d, and made by event %d", request, c.w.name(id), one.refusedAt, one.madeAt)
	}
}

// updateRefused holds that who may change a task never hears that it does not exist, and of another revision only if he asked for one.
func (c *checker) updateRefused(e *historysim.Event, v *historysim.Verdict, seq uint64) {
	if v.Code == fault.Unknown {
		return
	}
	one := c.updates[e.ID][e.Update.Request]
	if one.refused = true; one.refusedAt == 0 || seq < one.refusedAt {
		one.refusedAt = seq
	}
	c.refusedStays(e.ID, e.Update.Request)
	if stale := v.Code == fault.Stale; v.Code != fault.FailedPrecondition && !stale || stale && (e.Update.IfRevision == 0 || e.Update.IfRevision == v.Revision) {
		c.w.violated("an update of %s if at revision %d gets %s, at revision %d", c.w.name(e.ID), e.Update.IfRevision, v.Code, v.Revision)
	}
}

// updatesHold holds that what was confirmed holds, was made once, and that the last update in the log is the one that counts.
func (c *checker) updatesHold(t *historysim.Task) {
	name, applied, confirmed := c.w.name(t.ID), int(t.Revision())-1, 0
	request, _ := strconv.ParseUint(string(t.Payload.Data), 10, 64)
	last := c.updates[t.ID][request]
	if !c.w.mayBeIn(t.ID, t.Tasklist) || last != nil && last.tasklist != "" && t.Tasklist != last.tasklist && t.Redriven().Count == 0 {
		c.w.violated("%s ends in tasklist %s, and the last update is %+v", name, t.Tasklist, last)
	}
	for number, one := range c.updates[t.ID] {
		if !one.confirmed {
			continue
		}
		confirmed++
		if last == nil || last.last < one.first {
			c.w.violated("update %d of %s was confirmed, and it ends as update %d made it", number, name, request)
		}
	}
	maybe := 0 // commands of its key that may have been made
	for _, made := range c.ofKeys[t.ID] {
		if made {
			applied--
		} else {
			maybe++
		}
	}
	if applied < confirmed || applied-maybe > len(c.updates[t.ID]) {
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
