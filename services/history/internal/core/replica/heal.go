package replica

import (
	"cmp"
	"slices"
)

const (
	// healEveryMS is how often the tasks in memory are looked through for lost triggers,
	// healMax how many of them, and of their tasklists, at one tick.
	healEveryMS = 5000
	healMax     = 5000
	// hungryMax bounds what one hint triggers again, hungryLooksMax what it looks at. More is asked for again.
	hungryMax, hungryLooksMax = 5000, 20_000
	// hungryAgeMS spares triggers that are still on their way.
	hungryAgeMS = 2000
	// overtakenMS is how much later another task must have become ready, to say that
	// this one was passed over and not just granted out of order.
	overtakenMS = 3000
	// oldAgeMS is when a ready task is triggered again without being asked for.
	oldAgeMS = 5 * 60_000
)

// sentEarlier tells whether the trigger of e was sent so long ago, or by a clock that has been put
// back since.
func (e *Entry) sentEarlier(age int64, now Now) bool {
	return e.triggeredAt < now.MS-age || e.triggeredAt > now.MS
}

// sweep is a walk through all tasks that wait for a grant, some at each tick.
type sweep struct {
	beginsAt int64
	running  bool
	// list is where it is in Replica.order, next is the task that it has come to there.
	list int
	next *Entry
}

// sentNow notes that the trigger of e is sent now.
func (r *Replica) sentNow(e *Entry, now Now) {
	r.endWait(e)
	e.triggeredAt = now.MS
	e.waits = true
	e.column.list.sent.push(e)
}

// endWait takes e out of those that wait for a grant.
func (r *Replica) endWait(e *Entry) {
	if !e.waits {
		return
	}
	if r.sweep.next == e {
		r.sweep.next = e.after
	}
	e.waits = false
	e.column.list.sent.remove(e)
}

// heal re-sends the triggers of tasks that others of their column have overtaken, and
// of what has been ready for long whatever the reason (I5). While polls are fed with other
// tasks no one is hungry, so no one else would notice.
func (r *Replica) heal(now Now, fx *Effects) {
	s := &r.sweep
	if !s.running {
		if now.MS < s.beginsAt {
			return
		}
		*s = sweep{beginsAt: now.MS + healEveryMS, running: true, list: -1}
	}
	var lost []*Entry
	for range healMax {
		e := s.next
		if e == nil || !e.sentEarlier(hungryAgeMS+overtakenMS, now) {
			if s.list++; s.list >= len(r.order) {
				s.running = false
				break
			}
			s.next = r.order[s.list].sent.first
			continue
		}
		s.next = e.after
		if e.inLineSince() < e.column.grantedReadyAt-overtakenMS || e.sentEarlier(oldAgeMS, now) {
			lost = append(lost, e)
		}
	}
	r.retrigger(lost, now, fx)
}

// Hungry re-sends the triggers of a tasklist that were not sent recently: its pollers
// have nothing to do. Matching has those of the types that are present: copies of them would
// only pile up there (R33). Pollers ask again, so without a lease, when nothing goes out, it does
// not gather what they ask for. It costs what it sends again, and a look at what is present.
func (r *Replica) Hungry(domain, name string, present []string, now Now, fx *Effects) {
	l, ok := r.lists[tasklistKey{domain, name}]
	if !ok || !r.lease.holds(now.Mono) {
		return
	}
	there := make(map[string]bool, len(present))
	for _, typ := range present {
		there[typ] = true
	}
	var lost []*Entry
	looks := 0
	for e := l.sent.first; e != nil && len(lost) < hungryMax && looks < hungryLooksMax && e.sentEarlier(hungryAgeMS, now); e = e.after {
		looks++
		if !there[e.column.key.taskType] {
			lost = append(lost, e)
		}
	}
	r.retrigger(lost, now, fx)
}

// Retrigger re-sends the triggers of all that is ready in the partitions of one shard, or of all of them if
// shard is negative: those of one domain, or of all if none is named. It spares none that was sent
// a moment ago: who asks has lost what it had, or a connection broke, and a trigger that was taken
// in before that is lost as well.
func (r *Replica) Retrigger(domain string, shard int, now Now, fx *Effects) int {
	var all []*Entry
	for _, l := range r.order {
		if domain != "" && l.key.domain != domain || shard >= 0 && l.shard != shard && !l.spread {
			continue
		}
		for e := l.sent.first; e != nil; e = e.after {
			if shard < 0 || e.column.pack.shard == shard {
				all = append(all, e)
			}
		}
	}
	return r.retrigger(all, now, fx)
}

// retrigger re-sends triggers.
func (r *Replica) retrigger(lost []*Entry, now Now, fx *Effects) int {
	sortInLine(lost)
	for _, e := range lost {
		r.trigger(e, now, fx)
	}
	fx.Counts.Retriggered += int64(len(lost))
	return len(lost)
}

// inLine lists the tasks in memory that match, in line.
func (r *Replica) inLine(match func(*Entry) bool) []*Entry {
	var line []*Entry
	for _, e := range r.tasks {
		if !e.left && match(e) {
			line = append(line, e)
		}
	}
	sortInLine(line)
	return line
}

// sortInLine sorts tasks in the order in which they became ready, those of one message in its
// order: a reader that gets them again must not see them shuffled.
func sortInLine(line []*Entry) {
	slices.SortFunc(line, func(a, b *Entry) int {
		if a.ReadyAt != b.ReadyAt {
			return cmp.Compare(a.ReadyAt, b.ReadyAt)
		}
		return cmp.Or(
			cmp.Compare(a.Position.Seq(), b.Position.Seq()),
			cmp.Compare(a.index, b.index),
			slices.Compare(a.ID[:], b.ID[:]),
		)
	})
}
