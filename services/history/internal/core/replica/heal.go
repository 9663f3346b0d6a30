package replica

import (
	"cmp"
	"slices"
	"time"
)

const (
	// surveyEveryMS is how often the tasks that wait for a grant are looked through, surveyPerTaskUS how much later for each that was
	// looked at: it costs some nanoseconds of each, and a backlog has as many as the windows hold.
	surveyEveryMS   = 1000
	surveyPerTaskUS = 50
	// healMax is how many lost triggers are sent again at one tick. If there are more, the next tick goes on.
	healMax = 5000
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
	e.waits = false
	e.column.list.sent.remove(e)
}

// survey is what the last look at all tasks that wait for a grant has found.
type survey struct {
	// oldest is since when the one is ready that has waited longest, Unix ms; 0 = none waits.
	oldest int64
	// at is when it was, pause until the next one, Unix ms and ms.
	at, pause int64
	// list is where in Replica.order the next one begins: behind the tasklist in which this one had found enough.
	list int
}

// lookThrough looks at all tasks in memory that wait for a grant. It re-sends the triggers of those that others of their column have
// overtaken, and of what has been ready for long whatever the reason (I5). While polls are fed with other tasks no one is hungry, so no one
// else would notice. Without a lease, when nothing goes out, it would gather.
func (r *Replica) lookThrough(now Now, fx *Effects) {
	s, heals := &r.survey, r.lease.holds(now.Mono)
	if now.MS-s.at < s.pause && now.MS >= s.at { // or the clock has been put back
		return
	}
	var lost []*Entry
	oldest, looks, list := int64(0), int64(0), s.list
	for i := range r.order {
		at := (s.list + i) % len(r.order)
		if len(lost) < healMax {
			list = at + 1
		}
		for e := r.order[at].sent.first; e != nil; e = e.after {
			since := e.inLineSince()
			if looks++; oldest == 0 || since < oldest {
				oldest = since
			}
			overtaken := since < e.column.grantedReadyAt-overtakenMS && e.sentEarlier(hungryAgeMS+overtakenMS, now)
			if heals && len(lost) < healMax && (overtaken || e.sentEarlier(oldAgeMS, now)) {
				lost = append(lost, e)
			}
		}
	}
	*s = survey{oldest: oldest, at: now.MS, pause: max(surveyEveryMS, looks*surveyPerTaskUS/1000), list: list}
	if len(lost) == healMax {
		s.pause = 0
	}
	r.retrigger(lost, now, fx)
}

// OldestReady is for how long the oldest ready task had to wait for a grant so far, as of a moment ago; 0 = none waits. A task that is not
// read is left out: it is younger than what is read of its domain and lane.
func (r *Replica) OldestReady(now Now) time.Duration {
	if r.survey.oldest == 0 {
		return 0
	}
	return time.Duration(max(0, now.MS-r.survey.oldest)) * time.Millisecond
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
