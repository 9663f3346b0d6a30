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

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// lookers ask at the same time.
const lookers = 24

// lifeEnd is a task as the engine tells of it.
type lifeEnd struct {
	*lifeItem
	*yardv1.Task
	// value is its input at the end.
	value lifeInput
	// lostReplace: a submit that may have replaced it got no answer.
	lostReplace bool
	// withBatch: the rest of its batch was cancelled.
	withBatch bool
	// lived is when it is sure to have been in the log, first when its first stay ended: what happened behind that is not about its keys. Unix ms.
	lived, first int64
	// starts are those of its attempts in the first stay, Unix ms.
	starts []int64
	// parked and fired are when it was last put into the timer store, and last came from there, before its first attempt. Unix ms.
	parked, fired int64
	// deaths, redriven, updated and blocked count events.
	deaths, redriven, updated, blocked int
}

// check looks every task up, and holds all against what was promised.
func (l *life) check() lifeReport {
	l.t.Helper()
	ends := l.lookUp()
	l.mu.Lock()
	lost := map[string]bool{}
	for _, o := range l.tasks {
		lost[o.unique] = lost[o.unique] || o.repeated() && o.conflict == yardv1.OnConflict_ON_CONFLICT_REPLACE
	}
	for _, e := range ends {
		e.lostReplace = lost[e.uniqueKey()]
		if b := l.batches[e.BatchId]; b != nil {
			e.withBatch = b.cancel
		}
	}
	l.mu.Unlock()
	batches := l.checkBatches(ends)
	l.mu.Lock()
	defer l.mu.Unlock()
	offend := func(format string, args ...any) { l.offences = append(l.offences, fmt.Sprintf(format, args...)) }
	runs := map[string][]*lifeRun{}
	for _, r := range l.runs {
		runs[r.id] = append(runs[r.id], r)
	}
	r := lifeReport{runs: len(l.runs), repeats: l.repeats, batches: batches}
	var back int64
	for _, e := range ends {
		if wrong := slices.Concat(e.oneLife(), e.asWritten(runs[e.id]), e.asCancelled()); len(wrong) > 0 {
			offend("%s", e.tell(strings.Join(wrong, "; "), runs[e.id])+l.whose(e))
		}
		back += int64(e.redriven)
		r.count(e)
	}
	if back < l.redriven {
		offend("%d dead letters came back, and %d were said to", back, l.redriven)
	}
	l.ranAsAccepted(offend)
	inOrder(ends, offend)
	alone(ends, offend)
	for _, o := range l.tasks {
		r.submitted++
		switch o.fate {
		case accepted:
			r.accepted++
			r.answers = append(r.answers, o.answered.Sub(o.asked))
		case unsure:
			r.unsure++
		default:
			r.refused++
		}
		switch o.outcome {
		case yard.OutcomeExisting, yard.OutcomeRejected:
			r.taken++
		case yard.OutcomeReplaced:
			r.replaced++
		}
	}
	r.starts = l.firstStarts(runs)
	for what, n := range l.asks {
		if strings.HasPrefix(what, "update") {
			r.updates += n
		} else {
			r.cancels += n
		}
	}
	l.t.Logf("round %d: asks %v", l.round, l.asks)
	return r
}

func (r *lifeReport) count(e *lifeEnd) {
	switch e.State {
	case yardv1.TaskState_TASK_STATE_COMPLETED:
		r.completed++
	case yardv1.TaskState_TASK_STATE_CANCELLED:
		r.cancelled++
	case yardv1.TaskState_TASK_STATE_DEAD:
		r.dead++
	case yardv1.TaskState_TASK_STATE_EXPIRED:
		r.expired++
	}
	r.redriven += e.redriven
	r.blocked += e.blocked
}

// tell is a violation with all that is known of its task.
func (e *lifeEnd) tell(wrong string, runs []*lifeRun) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", e.Type, e.id, wrong)
	if e.task != nil {
		fmt.Fprintf(&b, "\n  submitted: %+v", *e.task)
	}
	fmt.Fprintf(&b, "\n  ends %s with input %s, revision %d", e.State.Name(), e.value, e.Revision)
	for _, w := range e.writes {
		fmt.Fprintf(&b, "\n  input %s asked %s answered %s, sure %v, refused %v, revision %d", w.value, stamp(w.asked), stamp(w.answered), w.sure, w.refused, w.revision)
	}
	for _, c := range e.cancels {
		fmt.Fprintf(&b, "\n  cancel asked %s answered %s, sure %v, ran %v", stamp(c.asked), stamp(c.answered), c.sure, c.ran)
	}
	for _, r := range runs {
		fmt.Fprintf(&b, "\n  run %d with %s from %s to %s, succeeded %v, %q", r.grant, r.value, stamp(r.began), stamp(r.ended), r.succeeded, r.result)
	}
	for _, v := range e.Events {
		fmt.Fprintf(&b, "\n  event %s %s grant %d %s %q %q", stamp(time.UnixMilli(v.AtMs)), v.Kind, v.Grant, v.Worker, v.Message, v.ErrorType)
	}
	return b.String()
}

// uniqueKey is the one that it was submitted with: a redriven task has none any more.
func (e *lifeEnd) uniqueKey() string {
	if e.task != nil {
		return e.task.unique
	}
	return e.UniqueKey
}

// whose tells of the submits with its unique key that may have replaced it, and say that they did not.
func (l *life) whose(e *lifeEnd) string {
	var b strings.Builder
	for _, o := range l.tasks {
		if o != e.task && e.task != nil && o.unique != "" && o.unique == e.uniqueKey() && o.conflict == yardv1.OnConflict_ON_CONFLICT_REPLACE &&
			!(o.id == e.id && o.outcome == yard.OutcomeReplaced) && o.answered.After(e.task.asked) {
			fmt.Fprintf(&b, "\n  beside it task %d was submitted from %s to %s, %d tries: %s %s", o.n, stamp(o.asked), stamp(o.answered), o.tries, o.outcome, o.id)
		}
	}
	return b.String()
}

func stamp(at time.Time) string { return at.UTC().Format("15:04:05.000") }

// lookUp gets all tasks that are known by an id, those of submits without an answer from who ran them.
func (l *life) lookUp() (ends []*lifeEnd) {
	l.t.Helper()
	l.mu.Lock()
	for _, r := range l.runs {
		l.item(r.id)
	}
	jobs := make(chan *lifeEnd, len(l.byID))
	for _, it := range l.byID {
		e := &lifeEnd{lifeItem: it}
		ends = append(ends, e)
		jobs <- e
	}
	l.mu.Unlock()
	close(jobs)
	ctx, cancel := context.WithTimeout(context.Background(), endsOfRound)
	defer cancel()
	var all sync.WaitGroup
	for range lookers {
		all.Go(func() {
			for e := range jobs {
				l.lookAt(ctx, e)
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(ends, func(e *lifeEnd) bool { return e.Task == nil })
}

func (l *life) lookAt(ctx context.Context, e *lifeEnd) {
	for began := time.Now(); ; wait(ctx, 100*time.Millisecond) {
		task, err := l.client.Wire().Get(ctx, e.id)
		switch code := fault.CodeOf(err); {
		case err == nil && task.State.Finished():
			e.Task = task
			_ = json.Unmarshal(task.Payload.GetData(), &e.value) // what is none of ours is found out
			e.read()
			l.letter(ctx, e)
			return
		case code == fault.NotFound:
			l.offend("%s is accepted, and not found: %+v", e.id, e.task)
			return
		case ctx.Err() != nil || time.Since(began) > within:
			l.offend("%s has not ended: %+v, %v %v", e.id, e.task, task, err)
			return
		}
	}
}

// letter holds that a dead task has a letter, and one that came back has none.
func (l *life) letter(ctx context.Context, e *lifeEnd) {
	dead := e.State == yardv1.TaskState_TASK_STATE_DEAD
	if e.deaths == 0 && !dead {
		return
	}
	for began := time.Now(); ; wait(ctx, 100*time.Millisecond) {
		_, err := l.client.GetDeadLetter(ctx, e.id)
		found := err == nil
		if found == dead && (found || fault.CodeOf(err) == fault.NotFound) {
			return
		}
		if time.Since(began) > 20*time.Second {
			l.offend("%s", e.tell(fmt.Sprintf("its dead letter is there %v, %v", found, err), nil))
			return
		}
	}
}

// read takes in the history of a task.
func (e *lifeEnd) read() {
	if e.task != nil && !e.task.answered.IsZero() {
		e.lived = e.task.answered.UnixMilli()
	}
	for _, v := range e.Events {
		if e.lived == 0 || v.AtMs < e.lived {
			e.lived = v.AtMs
		}
		switch v.Kind {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_PARKED:
			if len(e.starts) == 0 && e.redriven == 0 {
				e.parked = v.AtMs
			}
		case yardv1.TaskEventKind_TASK_EVENT_KIND_FIRED:
			if len(e.starts) == 0 && e.redriven == 0 {
				e.fired = v.AtMs
			}
		case yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED:
			if e.redriven == 0 {
				e.starts = append(e.starts, v.AtMs)
			}
		case yardv1.TaskEventKind_TASK_EVENT_KIND_REDRIVEN:
			e.redriven++
		case yardv1.TaskEventKind_TASK_EVENT_KIND_UPDATED:
			e.updated++
		case yardv1.TaskEventKind_TASK_EVENT_KIND_BLOCKED:
			e.blocked++
		case yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD:
			e.deaths++
			e.first = cmp.Or(e.first, v.AtMs)
		default:
			if isEnd(v.Kind) {
				e.first = cmp.Or(e.first, v.AtMs)
			}
		}
	}
}

func isEnd(k yardv1.TaskEventKind) bool {
	switch k {
	case yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED, yardv1.TaskEventKind_TASK_EVENT_KIND_CANCELLED, yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD,
		yardv1.TaskEventKind_TASK_EVENT_KIND_EXPIRED:
		return true
	}
	return false
}

// endOf is how the history of a task in a state ends.
var endOf = map[yardv1.TaskState]yardv1.TaskEventKind{
	yardv1.TaskState_TASK_STATE_COMPLETED: yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED, yardv1.TaskState_TASK_STATE_CANCELLED: yardv1.TaskEventKind_TASK_EVENT_KIND_CANCELLED,
	yardv1.TaskState_TASK_STATE_DEAD: yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD, yardv1.TaskState_TASK_STATE_EXPIRED: yardv1.TaskEventKind_TASK_EVENT_KIND_EXPIRED,
}

// oneLife: one attempt at a time, one end, and nothing behind it but a redrive of a dead one.
func (e *lifeEnd) oneLife() (wrong []string) {
	running, over := false, yardv1.TaskEventKind_TASK_EVENT_KIND_UNSPECIFIED
	for _, v := range e.Events {
		if over != 0 {
			if v.Kind != yardv1.TaskEventKind_TASK_EVENT_KIND_REDRIVEN || over != yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD {
				wrong = append(wrong, fmt.Sprintf("%s follows %s", v.Kind, over))
			}
			over = 0
			continue
		}
		switch v.Kind {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED:
			if running {
				wrong = append(wrong, fmt.Sprintf("attempt %d begins while another one runs", v.Grant))
			}
			running = true
		case yardv1.TaskEventKind_TASK_EVENT_KIND_REDRIVEN:
			wrong = append(wrong, "it is redriven, and was not dead")
		case yardv1.TaskEventKind_TASK_EVENT_KIND_CANCEL_REQUESTED, yardv1.TaskEventKind_TASK_EVENT_KIND_UPDATED:
		default:
			running = false
		}
		if isEnd(v.Kind) {
			over = v.Kind
		}
	}
	if over != endOf[e.State] {
		wrong = append(wrong, fmt.Sprintf("its history ends with %s", over))
	}
	if int(e.Redrives) != e.redriven {
		wrong = append(wrong, fmt.Sprintf("it says that it was redriven %d times", e.Redrives))
	}
	return wrong
}

// asWritten: it has the input that was confirmed last, its runs had what there was before, and it was updated as often as was confirmed.
func (e *lifeEnd) asWritten(runs []*lifeRun) (wrong []string) {
	if e.task == nil {
		return nil // no one knows what was to become of it
	}
	find := func(v lifeInput) *lifeWrite {
		for _, w := range e.writes {
			if w.value == v && (!w.refused || e.lateCopy(w)) {
				return w
			}
		}
		return nil
	}
	made, asked := 0, 0
	last := find(e.value)
	if last == nil && !e.lostReplace {
		wrong = append(wrong, "its input was never given")
	}
	for _, w := range e.writes {
		if !w.refused || e.lateCopy(w) {
			asked++
		}
		if !w.sure {
			continue
		}
		made++
		if last != nil && last.sure && last.answered.Before(w.asked) {
			wrong = append(wrong, fmt.Sprintf("it ends with input %s, and %s was confirmed later", last.value, w.value))
		}
	}
	if e.updated < made-1 || e.updated > asked-1 && !e.lostReplace || int64(e.updated) != e.Revision-1 {
		wrong = append(wrong, fmt.Sprintf("it was updated %d times, %d were confirmed and %d asked for", e.updated, made-1, asked-1))
	}
	slices.SortStableFunc(runs, func(a, b *lifeRun) int { return cmp.Compare(a.grant, b.grant) })
	var before *lifeWrite
	for _, r := range runs {
		w := find(r.value)
		if w == nil {
			if !e.lostReplace {
				wrong = append(wrong, fmt.Sprintf("run %d had input %s, which was never given", r.grant, r.value))
			}
			continue
		}
		if before != nil && before != w && w.sure && w.answered.Before(before.asked) {
			wrong = append(wrong, fmt.Sprintf("run %d had input %s, and a run before had %s", r.grant, w.value, before.value))
		}
		before = w
	}
	return append(wrong, e.result(runs)...)
}

// lateCopy tells whether an update was refused since the task was dead: a copy of it may come once the task was redriven.
func (e *lifeEnd) lateCopy(w *lifeWrite) bool { return w.refused && w.revision == 0 && e.redriven > 0 }

// result: it is that of a run that succeeded, with the input that the task has.
func (e *lifeEnd) result(runs []*lifeRun) (wrong []string) {
	if e.State != yardv1.TaskState_TASK_STATE_COMPLETED {
		return nil
	}
	var result string
	err := json.Unmarshal(e.Result.GetData(), &result)
	at := slices.IndexFunc(runs, func(r *lifeRun) bool { return r.succeeded && r.result == result })
	if at < 0 {
		return []string{fmt.Sprintf("result %q is of no run that succeeded: %v", result, err)}
	}
	if runs[at].value != e.value {
		return []string{fmt.Sprintf("it was completed by a run with input %s", runs[at].value)}
	}
	return nil
}

// asCancelled: what was cancelled where it waited runs no more, and what is said to be over was.
func (e *lifeEnd) asCancelled() (wrong []string) {
	for _, c := range e.cancels {
		if c.sure && !c.ran && e.State != yardv1.TaskState_TASK_STATE_CANCELLED {
			wrong = append(wrong, "its cancel was confirmed")
		}
	}
	if e.State == yardv1.TaskState_TASK_STATE_CANCELLED && len(e.cancels) == 0 && !e.withBatch {
		wrong = append(wrong, "no one cancelled it")
	}
	if !e.saidOver.IsZero() && (e.first == 0 || e.first > e.saidOver.Add(clocksApart).UnixMilli()) {
		wrong = append(wrong, fmt.Sprintf("it was said to be over at %s", stamp(e.saidOver)))
	}
	return wrong
}

// ranAsAccepted: nothing ran that was refused, or found its key taken.
func (l *life) ranAsAccepted(offend func(string, ...any)) {
	for _, r := range l.runs {
		o := l.tasks[r.value.N]
		switch {
		case o == nil:
			if o = l.before[r.value.N]; o == nil { // of the round before an attempt may come late that was taken back
				offend("%s ran as %s, grant %d, and was not submitted", r.value, r.id, r.grant)
			}
		case o.repeated():
		case o.fate == refused, o.outcome == yard.OutcomeExisting || o.outcome == yard.OutcomeRejected:
			offend("task %d ran as %s, and was %s %s: %+v", o.n, r.id, o.fate, o.outcome, *o)
		case o.id != "" && o.id != r.id:
			offend("task %d ran as %s, and was accepted as %s: %+v", o.n, r.id, o.id, *o)
		}
	}
}

// firstStarts is how long tasks that might run at once waited for their first run.
func (l *life) firstStarts(runs map[string][]*lifeRun) (all []time.Duration) {
	for id, some := range runs {
		o := l.byID[id].task
		if o != nil && o.delay == 0 && o.order == "" && o.unique == "" {
			first := slices.MinFunc(some, func(a, b *lifeRun) int { return a.began.Compare(b.began) })
			all = append(all, max(first.began.Sub(o.answered), 0))
		}
	}
	return all
}
