package simulation

import (
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
)

// heldBy names an attempt that a worker has got.
type heldBy struct {
	id    ids.TaskID
	token ids.Token
}

// grantOf is an attempt as history has granted it.
type grantOf struct {
	w     *world
	id    ids.TaskID
	token ids.Token
	path  *historysim.Path
	// seq is the first event of which an owner has said that it was granted, askedAt when the log has got
	// the first that asks for it, Unix ms, 0 = not looked at.
	seq     uint64
	askedAt int64
	// end is the event that ended it, 0 = none.
	end uint64
}

// matchChecker holds the invariants of matching against what happens.
type matchChecker struct {
	m *matching
	// got are the inboxes in which workers have got attempts.
	got    map[heldBy]string
	grants map[attempt]*grantOf
	// grabs are which shards have asked for attempts, as in the log; elsewhere counts slots at others than that of the first partition.
	grabs     map[heldBy]uint32
	elsewhere int
}

func newMatchChecker(m *matching) *matchChecker {
	return &matchChecker{m: m, got: map[heldBy]string{}, grants: map[attempt]*grantOf{}, grabs: map[heldBy]uint32{}}
}

// handed holds I4: no one gets what another one has got, or what no one was granted. It returns the
// partition of the task.
func (c *matchChecker) handed(in *inbox, id ids.TaskID, token ids.Token) *world {
	w, key := c.m.parts[id.Partition()], heldBy{id, token}
	if other, again := c.got[key]; again {
		c.m.violated("I4: attempt %d of %s is handed to %s and to %s", token.Version, w.name(id), other, in.name)
		return nil
	}
	c.got[key] = in.name
	if holder := w.check.holders[attempt{id, token.Version}]; holder != token {
		c.m.violated("I4: %s gets attempt %d of %s as %+v, and it was granted as %+v", in.name, token.Version, w.name(id), token, holder)
	}
	if at := w.accepted[id]; at.domain != in.worker.domain || !w.mayBeIn(id, in.worker.tasklist) || len(in.worker.types) > 0 && !slices.Contains(in.worker.types, at.typ) {
		c.m.violated("%s gets %s of %+v", in.name, w.name(id), at)
	}
	return w
}

// received tells whether a worker has got an attempt.
func (c *matchChecker) received(id ids.TaskID, token ids.Token) bool {
	_, ok := c.got[heldBy{id, token}]
	return ok
}

// granted notes where an attempt was granted.
func (c *matchChecker) granted(w *world, e *historysim.Event, seq uint64) {
	key := attempt{e.ID, e.Fence.Version}
	if g := c.grants[key]; g != nil {
		g.seq = min(g.seq, seq)
		return
	}
	c.grants[key] = &grantOf{w: w, id: e.ID, token: e.Fence, path: e.Limits, seq: seq}
}

// versions are those of the attempts of a task by their numbers, which differ where updates have passed over some. What is not known is left out.
func (c *matchChecker) versions(t *historysim.Task) map[uint32]uint32 {
	versions := map[uint32]uint32{}
	for version := range t.Version {
		if passed := t.Grants() < t.Version; !passed || c.grants[attempt{t.ID, version + 1}] != nil {
			versions[uint32(len(versions)+1)] = version + 1
		}
	}
	if len(versions) != int(t.Grants()) {
		return nil
	}
	return versions
}

// archived holds R41: what no worker has received burns nothing.
func (c *matchChecker) archived(w *world, t *historysim.Task) {
	versions := c.versions(t)
	for i := range t.Steps {
		s := &t.Steps[i]
		if s.Kind != historysim.StepFailed && s.Kind != historysim.StepTimedOut && s.Kind != historysim.StepLost {
			continue
		}
		if t.Policy.OnLost == historysim.LostDies && s.Kind == historysim.StepLost || t.Policy.OnTimeout == historysim.TimeoutDies && s.Kind == historysim.StepTimedOut {
			continue // it must not run twice, and may have run
		}
		if g := c.grants[attempt{t.ID, versions[s.Grant]}]; g != nil && !c.received(t.ID, g.token) {
			c.m.violated("R41: attempt %d of %s has reached no worker, and counts", s.Grant, w.name(t.ID))
		}
	}
	if c.m.plan.once && t.State != historysim.Completed {
		c.m.violated("R41: %s has one attempt, workers always succeed, and it is %v", w.name(t.ID), t.State)
	}
}

// end looks at the whole run.
func (c *matchChecker) end() {
	if c.m.broken == "" {
		c.limits()
	}
	if c.m.broken == "" {
		c.leftovers()
	}
}

// ends finds out by which event of the log each attempt ended.
func (c *matchChecker) ends(w *world) {
	beats := map[*grantOf]int64{}
	for _, m := range w.log {
		if m == nil || !m.Event {
			continue
		}
		for i := range m.Events {
			e := &m.Events[i]
			if e.Kind == historysim.Ended {
				c.endedByHand(w, e, place{m.Seq, i})
				continue
			}
			g := c.grants[attempt{e.ID, e.Fence.Version}]
			if g == nil || g.token != e.Fence || g.end > 0 || e.Domain != "" && e.Domain != w.accepted[e.ID].domain {
				continue
			}
			switch e.Kind {
			case historysim.Started:
				g.askedAt = cmp.Or(g.askedAt, m.At)
			case historysim.Heartbeat:
				beats[g] = m.At
			case historysim.Succeeded, historysim.Failed, historysim.Released:
				g.end = m.Seq
			case historysim.Expired:
				if lease := g.deadline(beats[g]); m.At >= lease || e.SilentLease >= lease && m.At <= e.NotAfter {
					g.end = m.Seq
				}
			}
		}
	}
}

// endedByHand ends what runs of a task by an end by hand, unless that was refused.
func (c *matchChecker) endedByHand(w *world, e *historysim.Event, at place) {
	if v, known := w.check.verdictOf[at]; known && v.verdict.Code != "" || e.Domain == rival {
		return
	}
	for of, g := range c.grants {
		if of.id == e.ID && g.end == 0 && g.seq < at.seq {
			g.end = at.seq
		}
	}
}

// deadline is when the attempt must be over, or its worker be heard of again. An answer may have been lost, so
// it may have been granted earlier than anybody knows.
func (g *grantOf) deadline(beatAt int64) int64 {
	policy := g.w.policy()
	over := g.askedAt + policy.StartToCloseMS
	if by := g.w.check.finishBy[g.id]; by > 0 {
		over = min(over, by)
	}
	if policy.HeartbeatTimeoutMS == 0 {
		return over
	}
	return min(over, cmp.Or(beatAt, g.askedAt)+policy.HeartbeatTimeoutMS)
}

// change is the begin or the end of an attempt with a path.
type change struct {
	at  time.Duration
	seq uint64
	by  int
	g   *grantOf
}

// limits holds I8: by the order of the log, no more attempts run in a limit than it had slots recently.
func (c *matchChecker) limits() {
	for _, w := range c.m.parts {
		c.ends(w)
	}
	var all []change
	for _, g := range c.grants {
		c.booked(g)
		if g.path == nil || g.end > 0 && g.w.storedAt[g.end-1] <= g.w.storedAt[g.seq-1] {
			continue
		}
		all = append(all, change{g.w.storedAt[g.seq-1], g.seq, 1, g})
		if g.end > 0 {
			all = append(all, change{g.w.storedAt[g.end-1], g.end, -1, g})
		}
	}
	slices.SortFunc(all, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by), cmp.Compare(a.seq, b.seq), slices.Compare(a.g.id[:], b.g.id[:]))
	})
	type limit struct {
		domain string
		ref    string
	}
	running := map[limit]map[*grantOf]bool{}
	for _, ch := range all {
		domain := ch.g.w.accepted[ch.g.id].domain
		for _, ref := range ch.g.path.Refs() {
			at := limit{domain, ref}
			if running[at] == nil {
				running[at] = map[*grantOf]bool{}
			}
			if ch.by < 0 {
				delete(running[at], ch.g)
				continue
			}
			running[at][ch.g] = true
			if most := c.slotsLately(domain, ref, ch.at); len(running[at]) > most {
				for g := range running[at] {
					c.m.say("CHECK", "%s v%d runs from event %d to %d", c.m.name(g.id), g.token.Version, g.seq, g.end)
				}
				c.m.violated("I8: %d attempts run in %s %s with %s at %v (event %d), and it has %d slots",
					len(running[at]), domain, ref, c.m.name(ch.g.id), ch.at, ch.seq, most)
				return
			}
		}
	}
}

// booked holds that an attempt has a slot of each limit that has covered it for long.
func (c *matchChecker) booked(g *grantOf) {
	at, granted, group := g.w.accepted[g.id], g.w.storedAt[g.seq-1], g.w.groupOf[g.id]
	group, known := g.w.check.groupAt(g.id, g.seq, group)
	if !known || len(g.w.movedTo[g.id]) > 0 {
		return
	}
	names := []string{at.typ, wide, shared, ofTasklist + at.tasklist}
	if group != "" {
		names = append(names, c.m.perGroups(at.domain)...)
	}
	for _, name := range names {
		limited := false
		one := limitOf(name)
		if one.PerGroup {
			one.Ref = one.Ref.Of(group)
		}
		for _, ch := range c.m.changes {
			switch {
			case ch.domain != at.domain || ch.name != name || ch.at > granted:
			case ch.at > 0 && ch.at > granted-limitLag:
				return
			default:
				limited = ch.max > 0
			}
		}
		if limited && covers(one, at) && !slices.Contains(g.path.Refs(), string(one.Ref)) {
			c.m.violated("I8: attempt %d of %s has no slot of %s: %v", g.token.Version, c.m.name(g.id), one.Ref, g.path.Refs())
		}
	}
}

// limitLag is how long an owner may act upon a limit that was changed: it may be paused.
const limitLag = time.Minute

// slotsLately is the most that a limit was recently.
func (c *matchChecker) slotsLately(domain, ref string, now time.Duration) int {
	most, present := 0, 0
	of, group, ok := matchingsim.Ref(ref).Group()
	if !ok {
		of = matchingsim.Ref(ref)
	}
	for _, ch := range c.m.changes {
		slots := groupSlots(group, ch.max)
		switch {
		case ch.at > now || ch.domain != domain || limitOf(ch.name).Ref != of:
		case ch.at <= now-limitLag:
			present = slots
		default:
			most = max(most, slots)
		}
	}
	return max(most, present)
}

// lateCalls are faults by which a call may store triggers behind the back of the owner that has opened
// the tables: they stay until somebody looks for others of their kind.
const lateCalls = changesOfMatching | unknownCalls | slowTables

// leftovers holds that nothing is left of a run in which all tasks have ended: no slot, no trigger, no
// memory.
func (c *matchChecker) leftovers() {
	m := c.m
	c.rated()
	for _, d := range domains {
		n := m.nodes[d]
		for name, most := range m.limits[d] {
			if used := n.tables.Slots(d, limitOf(name).Ref, n.clock()); used != 0 && most > 0 {
				m.violated("I8: %d slots of %s %s are in use, and all tasks have ended", used, d, name)
			}
		}
		c.groupsFree(d)
		for i := range m.shards {
			if m.plan.faults&lateCalls != 0 {
				break
			}
			for _, k := range n.tables.Open(d, i).Columns {
				if k.Type == few && len(m.rates(d)) > 0 {
					continue // a copy of a trigger uses the rate as its task does, which may cost more than the rate gives by now
				}
				m.violated("the tables of %s hold %d triggers of %s %s for shard %d, and all tasks have ended", d, k.Triggers, k.Name, k.Type, i)
			}
		}
	}
	for _, sh := range m.shards {
		for _, p := range sh.living() {
			held := p.owner.Census()
			held.Domains, held.Lists = 0, 0
			if held != (matchingsim.Census{}) {
				m.violated("%s holds %+v, and all tasks have ended", p.name, held)
			}
		}
		if n := len(sh.stream.waiting) + len(sh.stream.pending); n > 0 {
			m.violated("%d hints of shard %d are not taken care of", n, sh.number)
		}
	}
}
