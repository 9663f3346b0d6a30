package chaos_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	probePrefix = "probe"
	// knownWithin is when all nodes know of a stop that is known to one, with no fault, on a slow machine.
	knownWithin = 3 * time.Second
	// decidedWithin is how old what a policy was decided by may be when the log has it, with no fault.
	decidedWithin = 2 * time.Second
	// together is how far apart attempts are asked to make room by one decision: the next comes a second later.
	together = 300 * time.Millisecond
	// clocksApart is by how much the log may date what has been ready otherwise than who decided.
	clocksApart = 100 * time.Millisecond
)

func isProbe(key string) bool { return strings.HasPrefix(key, probePrefix) }

// finish waits until all tasks have ended, and nothing is counted any more.
func (m *medley) finish() {
	m.t.Helper()
	m.untilDone("spread", func(ctx context.Context) error {
		_, err := m.client.PutTasklist(ctx, yard.Tasklist{Name: wideList, Partitions: wideMost})
		return err
	})
	began := time.Now()
	m.idle()
	m.t.Logf("all had ended, and no slot was in use, %.1f s after the last fault", time.Since(began).Seconds())
}

// idle waits until no task is counted in any tasklist, and no slot is in use.
func (m *medley) idle() {
	m.t.Helper()
	testkit.Eventually(m.t, 3*within, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		for _, name := range []string{wideList, scaledList, cappedList} {
			d, err := m.client.DescribeTasklist(ctx, name)
			if err != nil || d.Ready+d.Running+d.Backoff+d.Waiting+d.Queued > 0 {
				return fmt.Errorf("%+v %w", d, err)
			}
		}
		top, err := m.client.TopLimits(ctx, yard.TopOptions{Limits: 100})
		for _, one := range top.Limits {
			if one.Running+one.SlotsInUse+one.UnexplainedSlots > 0 {
				return fmt.Errorf("%+v, and nothing runs", one)
			}
		}
		return err
	})
}

// medleyTask is a task as the engine tells of it.
type medleyTask struct {
	*medleyOrder
	*yardv1.Task
	// spans are its attempts.
	spans []span
	// displaced is when each was asked to make room; zero: it was not.
	displaced []time.Time
	// taken is when attempts, by their number, ended without their worker's word.
	taken map[int]time.Time
	// ended is when the last attempt had, or the task without one.
	ended time.Time
}

// check looks every accepted task up and holds all against what was promised.
func (m *medley) check() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	tasks := m.lookUp()
	counts := map[string]int{}
	var offences []string
	for _, task := range tasks {
		offences = append(offences, m.endedOnce(task)...)
		counts[task.typ+" "+task.State.Name()]++
		if slices.ContainsFunc(task.displaced, func(at time.Time) bool { return !at.IsZero() }) {
			counts[task.typ+" displaced"]++
		}
	}
	offences = append(offences, m.ranAsAccepted()...)
	for _, l := range medleyLimits {
		offences = append(offences, m.limitHeld(l, tasks)...)
		if l.onFull == yard.OnFullCancelOldest {
			offences = append(offences, m.displacedForSome(l, tasks)...)
		}
		if l.onFull != "" && counts[l.typ+" cancelled"]+counts[l.typ+" displaced"] == 0 {
			offences = append(offences, "the policy of "+l.typ+" never acted")
		}
	}
	offences = append(offences, m.stopsHeld(tasks)...)
	offences = append(offences, m.rateHeld(tasks)...)
	m.t.Logf("%d tasks were accepted of %d, %d attempts ran: %v", len(tasks), len(m.orders), len(m.runs), counts)
	for i, o := range offences {
		if i == offencesMax {
			m.t.Errorf("%d more", len(offences)-i)
			break
		}
		m.t.Error(o)
	}
}

// lookUp gets all accepted tasks.
func (m *medley) lookUp() (all []*medleyTask) {
	m.t.Helper()
	jobs := make(chan *medleyTask, len(m.orders))
	for _, o := range m.orders {
		if o.fate == accepted {
			all = append(all, &medleyTask{medleyOrder: o})
			jobs <- all[len(all)-1]
		}
	}
	close(jobs)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var askers sync.WaitGroup
	for range 16 {
		askers.Go(func() {
			for task := range jobs {
				for {
					var err error
					if task.Task, err = m.client.Wire().Get(ctx, task.id); err == nil && task.Task.State.Finished() {
						task.read()
						break
					}
					if ctx.Err() != nil {
						m.t.Errorf("%s %s has not ended: %v %v", task.key, task.id, task.Task, err)
						task.Task = &yardv1.Task{}
						break
					}
					wait(ctx, 100*time.Millisecond)
				}
			}
		})
	}
	askers.Wait()
	return all
}

// read takes the attempts out of a task's history.
func (t *medleyTask) read() {
	open := false
	t.taken = map[int]time.Time{}
	for _, e := range t.Events {
		at := time.UnixMilli(e.AtMs)
		switch e.Kind {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_LOST, yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT, yardv1.TaskEventKind_TASK_EVENT_KIND_HANDED_BACK:
			t.taken[int(e.Grant)] = at
		}
		switch e.Kind {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED:
			t.spans, t.displaced, open = append(t.spans, span{at, at, t.key}), append(t.displaced, time.Time{}), true
		case yardv1.TaskEventKind_TASK_EVENT_KIND_CANCEL_REQUESTED:
			if open {
				t.displaced[len(t.displaced)-1] = at
			}
		case yardv1.TaskEventKind_TASK_EVENT_KIND_SUBMITTED, yardv1.TaskEventKind_TASK_EVENT_KIND_PARKED, yardv1.TaskEventKind_TASK_EVENT_KIND_FIRED:
		default:
			t.ended = at
			if open {
				t.spans[len(t.spans)-1].to, open = at, false
			}
		}
	}
}

// endedOnce: a task has completed with the result of one run, or its limit's policy ended it and says so.
func (m *medley) endedOnce(t *medleyTask) (offences []string) {
	offend := func(format string, args ...any) {
		offences = append(offences, fmt.Sprintf("%s task %s of group %q (%s): %s; events %v", t.typ, t.key, t.group, t.id, fmt.Sprintf(format, args...), t.Events))
	}
	ends := 0
	for _, kind := range []yardv1.TaskEventKind{
		yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED, yardv1.TaskEventKind_TASK_EVENT_KIND_CANCELLED,
		yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD, yardv1.TaskEventKind_TASK_EVENT_KIND_EXPIRED,
	} {
		ends += countEvents(t.Task, kind)
	}
	if ends != 1 {
		offend("it ended %d times", ends)
	}
	var stopped []*yardv1.TaskEvent
	for _, e := range t.Events {
		if e.Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_CANCEL_REQUESTED || e.Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_CANCELLED {
			stopped = append(stopped, e)
		}
	}
	switch t.State {
	case yardv1.TaskState_TASK_STATE_COMPLETED:
		var result string
		err := json.Unmarshal(t.Result.GetData(), &result)
		if !slices.ContainsFunc(m.runs, func(r *medleyRun) bool { return r.key == t.key && r.succeeded && r.result == result }) {
			offend("result %q is of no run that succeeded: %v", result, err)
		}
	case yardv1.TaskState_TASK_STATE_CANCELLED:
		m.endedByPolicy(t, stopped, offend)
	default:
		offend("state %v", t.State)
	}
	return offences
}

// endedByPolicy: what was rejected did not run, what was displaced ran, and the reason is the limit.
func (m *medley) endedByPolicy(t *medleyTask, stopped []*yardv1.TaskEvent, offend func(string, ...any)) {
	at := slices.IndexFunc(medleyLimits, func(l medleyLimit) bool { return l.typ == t.typ })
	if at < 0 || medleyLimits[at].onFull == "" || len(stopped) == 0 {
		offend("it is cancelled, and no limit of it has a policy")
		return
	}
	l := medleyLimits[at]
	reason := "limit shared/" + l.typ + " is full"
	if l.perGroup > 0 {
		reason = "limit shared/" + l.typ + "/group/" + t.group + " is full"
	}
	displaced := l.onFull == yard.OnFullCancelOldest
	if asked := stopped[0].Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_CANCEL_REQUESTED; asked != displaced || !strings.HasPrefix(stopped[0].Message, reason) {
		offend("it is cancelled for %q", stopped[0].Message)
	}
}

// ranAsAccepted: nothing ran that was refused, or under two ids.
func (m *medley) ranAsAccepted() (offences []string) {
	orders, ids := map[string]*medleyOrder{}, map[string]string{}
	for _, o := range m.orders {
		orders[o.key], ids[o.key] = o, o.id
	}
	for _, r := range m.runs {
		switch o := orders[r.key]; {
		case o == nil || o.fate == refused:
			offences = append(offences, fmt.Sprintf("%s ran as %s, and was refused", r.key, r.id))
		case ids[r.key] != "" && ids[r.key] != r.id:
			offences = append(offences, fmt.Sprintf("%s ran as %s and as %s", r.key, r.id, ids[r.key]))
		}
		ids[r.key] = r.id
	}
	return offences
}

// limitHeld: neither by the log nor by the handlers more ran at once than may. A handler whose attempt was taken from it goes on until its next
// heartbeat: its attempt is over for the limit.
func (m *medley) limitHeld(l medleyLimit, tasks []*medleyTask) (offences []string) {
	logged, seen := map[string][]span{}, map[string][]span{}
	taken := map[string]map[int]time.Time{}
	for _, t := range tasks {
		taken[t.id] = t.taken
		if t.typ == l.typ {
			logged[t.group] = append(logged[t.group], t.spans...)
		}
	}
	for _, r := range m.runs {
		end := cmp.Or(r.ended, time.Now())
		if at, is := taken[r.id][r.number]; is && at.Before(end) {
			end = at
		}
		if r.typ == l.typ && end.After(r.began) {
			seen[r.group] = append(seen[r.group], span{r.began, end, r.key})
		}
	}
	for name, groups := range map[string]map[string][]span{"by the log": logged, "by the handlers": seen} {
		hold := func(of string, spans []span, limit int) {
			most, at := overlap(spans)
			if len(most) > limit && limit > 0 {
				offences = append(offences, fmt.Sprintf("%s %d attempts of %s ran at once at %v, %d may: %v; events %v",
					name, len(most), of, at.Format(time.StampMilli), limit, most, eventsOf(tasks, most)))
			}
		}
		var all []span
		for group, spans := range groups {
			all = append(all, spans...)
			if group != "" {
				hold(l.typ+" "+group, spans, l.perGroup)
			}
		}
		hold(l.typ, all, l.most)
	}
	return offences
}

// eventsOf is what the log has of those tasks.
func eventsOf(tasks []*medleyTask, of []span) (events []string) {
	for _, t := range tasks {
		if slices.ContainsFunc(of, func(s span) bool { return s.key == t.key }) {
			events = append(events, fmt.Sprintf("%s %s: %v", t.key, t.id, t.Events))
		}
	}
	return events
}

// disturbed tells until when a time is extended by the faults that touch it.
func (m *medley) disturbed(at time.Time, by time.Duration) time.Time {
	end := at.Add(by)
	for _, f := range m.faults { // in order
		if f.from.Before(end) && f.to.After(at) {
			end = f.to.Add(by)
		}
	}
	return end
}

// displacedForSome: no more attempts were asked together to make room than tasks had waited for long enough. It is a coarse bound: around a fault
// many wait, and few too many stay unseen. The tests of core/match and e2e/scenario are exact.
func (m *medley) displacedForSome(l medleyLimit, tasks []*medleyTask) (offences []string) {
	for _, t := range tasks {
		for i, at := range t.displaced {
			if t.typ != l.typ || at.IsZero() {
				continue
			}
			since := at.Add(-decidedWithin)
			for _, f := range m.faults { // what was disturbed may be decided by what is older
				if before := f.from.Add(-decidedWithin); f.to.After(at.Add(-decidedWithin)) && f.from.Before(at) && before.Before(since) {
					since = before
				}
			}
			leaving, waiting := 0, 0
			for _, o := range tasks {
				if o.typ != l.typ || l.perGroup > 0 && o.group != t.group {
					continue
				}
				for _, asked := range o.displaced {
					if !asked.After(at) && asked.After(at.Add(-together)) {
						leaving++
					}
				}
				waiting += o.waited(since, at)
			}
			if leaving > waiting {
				offences = append(offences, fmt.Sprintf("of %s %q %d attempts were asked to make room, and %d tasks waited, when %s was, at %v: %v",
					t.typ, t.group, leaving, waiting, t.key, at.Format(time.StampMilli), t.spans[i]))
			}
		}
	}
	return offences
}

// waited counts the times that a task had waited for an attempt for long enough, in a time. One that was handed back goes on to wait.
func (t *medleyTask) waited(from, to time.Time) (n int) {
	due, waits := time.UnixMilli(t.DueAtMs), t.spans
	if len(waits) == 0 || waits[len(waits)-1].to.Before(t.ended) {
		waits = append(slices.Clone(waits), span{from: t.ended})
	}
	for _, s := range waits {
		if enough := due.Add(fullAfter - clocksApart); s.from.After(from) && !enough.After(to) && !enough.After(s.from) {
			n++
		}
	}
	return n
}

// stopsHeld: a paused group starts nothing once that is known, and a drained one is refused.
func (m *medley) stopsHeld(tasks []*medleyTask) (offences []string) {
	for _, t := range tasks {
		for _, w := range m.stops[t.group] {
			known := m.disturbed(w.from, knownWithin)
			if t.group == drainedGroup && t.asked.After(known) && t.answered.Before(w.to) {
				offences = append(offences, fmt.Sprintf("%s was accepted at %v, its group was drained from %v to %v", t.key, t.answered, w.from, w.to))
			}
			for _, s := range t.spans {
				if t.group == pausedGroup && s.from.After(known) && s.from.Before(w.to) {
					offences = append(offences, fmt.Sprintf("%s (%s) started at %v, its group was paused from %v to %v; events %v", t.key, t.typ, s.from.Format(time.StampMilli), w.from.Format(time.StampMilli), w.to.Format(time.StampMilli), t.Events))
				}
			}
		}
	}
	return offences
}

// rateHeld: in no time do the starts cost more than the rate gives, a burst, and another for each loss of Redis' memory.
func (m *medley) rateHeld(tasks []*medleyTask) []string {
	type start struct {
		at   int64
		cost int
	}
	var starts []start
	for _, t := range tasks {
		if t.typ == rateType {
			for _, s := range t.spans {
				starts = append(starts, start{s.from.UnixMilli(), t.cost})
			}
		}
	}
	slices.SortFunc(starts, func(a, b start) int { return cmp.Compare(a.at, b.at) })
	for i := range starts {
		sum := 0
		for _, s := range starts[i:] {
			sum += s.cost
			bursts := 1
			for _, at := range m.lost {
				if at >= starts[i].at-callsLate.Milliseconds() && at <= s.at+callsLate.Milliseconds() {
					bursts++
				}
			}
			if most := float64(rateBurst*bursts+costMost) + (float64(s.at-starts[i].at)/1000+callsLate.Seconds())*ratePerSecond; float64(sum) > most {
				return []string{fmt.Sprintf("starts within %d ms cost %d, %.1f may", s.at-starts[i].at, sum, most)}
			}
		}
	}
	return nil
}

// probe fills each limit to its most, and the cap of a group: nothing has leaked.
func (m *medley) probe() {
	m.t.Helper()
	var orders []*medleyOrder
	var tasks []yard.Task
	add := func(l medleyLimit, group string, n int) {
		for range n {
			key := fmt.Sprintf("%s-%d", probePrefix, len(tasks))
			orders = append(orders, &medleyOrder{key: key, typ: l.typ, group: group, tasklist: wideList})
			tasks = append(tasks, yard.Task{Type: l.typ, Tasklist: wideList, Group: group, Payload: key})
		}
	}
	for _, l := range medleyLimits {
		if l.perGroup == 0 {
			add(l, "a", l.most)
			continue
		}
		for _, group := range []string{"a", "b", pausedGroup} {
			add(l, group, l.perGroup)
		}
	}
	m.submit(m.client, orders, tasks)
	began := time.Now()
	testkit.Eventually(m.t, within, func() error { return m.allRun(orders) })
	m.t.Logf("all limits were filled within %.2f s", time.Since(began).Seconds())
	m.fillCap()
	close(m.gate)
	m.idle()
	for _, o := range orders {
		if task, err := m.client.Wire().Get(m.t.Context(), o.id); err != nil || task.State != yardv1.TaskState_TASK_STATE_COMPLETED {
			m.t.Errorf("%s of %s: %v %v", o.key, o.typ, task, err)
		}
	}
}

// allRun tells whether all probes run at once.
func (m *medley) allRun(probes []*medleyOrder) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := map[string]bool{}
	for _, r := range m.runs {
		if r.ended.IsZero() {
			run[r.key] = true
		}
	}
	for _, o := range probes {
		if !run[o.key] {
			return fmt.Errorf("%s of %s %q does not run", o.id, o.typ, o.group)
		}
	}
	return nil
}

// fillCap submits as many tasks of one group as its cap allows, at once.
func (m *medley) fillCap() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	most := make([]yard.Task, groupCap)
	for i := range most {
		most[i] = yard.Task{Type: "waitgroup", Tasklist: cappedList, Group: pausedGroup, Payload: fmt.Sprintf("%s-cap-%d", probePrefix, i)}
	}
	testkit.Check(m.t, testkit.Err(m.client.SubmitMany(ctx, most)))
}
