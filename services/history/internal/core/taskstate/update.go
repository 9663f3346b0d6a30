package taskstate

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// Update is what a client changes of a task. A field that is 0 or empty stays as it is.
type Update struct {
	// IfRevision is the revision that the task must have; 0 = any.
	IfRevision uint64
	Priority   int32
	// DueAt is when it is to run, Unix ms, and how long after the log took it at least. Now: at once.
	DueAt, DelayMS int64
	Now            bool
	// Policy has the fields that replace those of the task's; nil = none.
	Policy *Policy
	// StartWithinMS and FinishWithinMS count from the update, or from when the task is due, if that is later.
	StartWithinMS, FinishWithinMS int64
	Group                         string
	// Tasklist is where the task moves to; of a Whole, the one that the task must be in.
	Tasklist string
	// Headers are by name, ascending, in place of all that it has.
	Headers []Header
	// Payload is the new one, if HasPayload.
	Payload    Blob
	HasPayload bool
	// Request names the request that it came with; 0 = none.
	Request uint64
	// Since is a time before which the log has no copy of its event, Unix ms; 0 = not known.
	Since int64
	// SoleUntil is a time up to which the log has this event and no other copy, Unix ms; 0 = it may have others from Since on.
	SoleUntil int64
	// EndState is how the task of an Ended event ends: Completed, with Payload as its result, Dead or Cancelled.
	EndState State
	// Whole is all else of a submit that replaces the task; nil = what is 0 or empty stays as it is.
	Whole *Whole
}

// Whole is what a submit gives that replaces a task with its unique key, beside what an update may change.
type Whole struct {
	// Type must be that of the task.
	Type        string
	Cost        int32
	UniqueForMS int64
	OrderBlocks bool
	Trace       string
}

// Updates is what a task remembers of its updates. It is not changed any more: copies of a task share it.
type Updates struct {
	// Applied counts those that were applied.
	Applied uint64
	// Seq is the place in the log of the last one that was decided, applied or not. An update before it is not decided again:
	// a takeover may meet it while the task is in a later state.
	Seq   uint64
	Index uint32
	// Request names that one, 0 = it has no name, and Refused tells whether it was refused: a repeat gets the same verdict.
	Request uint64
	Refused bool
	// At is when the log took it, Unix ms, or one that was decided before it, if the log's clock was set back.
	At int64
	// Passed counts the numbers of grants that were passed over, so that a trigger with them is out of date; PassedNow
	// those since the last attempt began.
	Passed, PassedNow uint32
}

// Again is the verdict on an update that t does not decide any more: it is the last one that was decided, which comes again, or it may have been decided
// before that.
func (t *Task) Again(e *Event) (Verdict, bool) {
	if !e.Kind.Changes() {
		return Verdict{}, false
	}
	u := t.updates()
	first := e.At < e.Update.SoleUntil || u.At < e.Update.Since // the log has no other copy of it, or none was there when the last update was decided
	switch {
	case e.Update.Request != 0 && e.Update.Request == u.Request:
		if !u.Refused {
			return Verdict{Revision: t.Revision()}, true
		}
		if v, stale := t.stale(e); stale {
			return v, true
		}
		return t.asItIs("the same request has been refused before"), true
	case e.Seq > 0 && !u.before(e.Seq, e.Index), u.At > 0 && !first:
		return Verdict{
			Code: fault.Unknown, Final: true, Revision: t.Revision(),
			Message: "it may have been made before: another update of the task was decided since; look at the task, and ask again with a new request",
		}, true
	}
	return Verdict{}, false
}

// stale refuses an event that is for another revision.
func (t *Task) stale(e *Event) (Verdict, bool) {
	if e.Update.IfRevision == 0 || e.Update.IfRevision == t.Revision() {
		return Verdict{}, false
	}
	return Verdict{Code: fault.Stale, Message: "the task has revision " + strconv.FormatUint(t.Revision(), 10), Revision: t.Revision()}, true
}

// updates are those of t, to read.
func (t *Task) updates() Updates {
	if u := t.Extra.orNothing().Updates; u != nil {
		return *u
	}
	return Updates{}
}

// setUpdates replaces them.
func (t *Task) setUpdates(u Updates) { t.extra().Updates = &u }

// extra is a copy of what few tasks have, for t to change.
func (t *Task) extra() *Extra {
	x := *t.Extra.orNothing()
	t.Extra = &x
	return &x
}

// Revision is 1 for a task as it was submitted, and one more with each update.
func (t *Task) Revision() uint64 { return t.updates().Applied + 1 }

// DecidedBefore tells whether an update of t was decided that lies before a place in the log.
func (t *Task) DecidedBefore(seq uint64, index int) bool {
	u := t.updates()
	return u.Seq > 0 && u.before(seq, uint32(index))
}

// before tells whether the last decided update lies before a place in the log.
func (u *Updates) before(seq uint64, index uint32) bool {
	return u.Seq < seq || u.Seq == seq && u.Index < index
}

// Grants is how often t was given to a worker.
func (t *Task) Grants() uint32 { return t.Version - t.updates().Passed }

// last is the version of the last attempt.
func (t *Task) last() uint32 { return t.Version - t.updates().PassedNow }

// begun notes that an attempt has begun.
func (t *Task) begun() {
	if u := t.updates(); u.PassedNow > 0 {
		u.PassedNow = 0
		t.setUpdates(u)
	}
}

// pass makes the triggers of t out of date: they name a place in line that it has no more.
func (t *Task) pass() {
	t.Version++
	u := t.updates()
	u.Passed++
	u.PassedNow++
	t.setUpdates(u)
}

// decided is the verdict on an update that comes again, or may, or that t does not take. Else it notes that the update is decided now: refused, unless it
// is applied.
func (t *Task) decided(e *Event) (v Verdict, over bool) {
	if v, again := t.Again(e); again {
		return v, true
	}
	u := t.updates()
	if u.before(e.Seq, e.Index) {
		u.Seq, u.Index = e.Seq, e.Index
	}
	u.At, u.Request, u.Refused = max(u.At, e.At), e.Update.Request, true
	t.setUpdates(u)
	if v, stale := t.stale(e); stale {
		return v, true
	}
	if !t.replaceable(e.Update) {
		return t.asItIs("an attempt of the task has begun, or it is of another type or tasklist"), true
	}
	return Verdict{Revision: t.Revision() + 1}, false
}

// replaceable tells whether t may become the task that an update is of. A task that a worker has been given is not run again.
func (t *Task) replaceable(u *Update) bool {
	return u.Whole == nil || t.Grants() == 0 && t.Type == u.Whole.Type && t.Tasklist == u.Tasklist
}

// changeIdle changes a task that waits for its attempt here.
func changeIdle(t *Task, e *Event, now int64) (Verdict, Effects) {
	v, over := t.decided(e)
	if over {
		return v, Effects{}
	}
	place := [...]any{t.Tasklist, t.Priority, t.Group(), t.Cost()}
	t.change(e, now)
	if place != [...]any{t.Tasklist, t.Priority, t.Group(), t.Cost()} {
		t.pass()
	}
	if e.Update.Now || e.Update.DueAt != 0 {
		t.freeKey()
	}
	switch wait := t.DueAt - now; {
	case e.Update.Now || e.Update.DueAt != 0 && wait <= 0:
		if t.State == Backoff {
			return v, t.ready(now)
		}
	case e.Update.DueAt == 0:
	case wait > ParkAfterMS || t.Order() != nil: // what is due does not wait for it
		return v, t.park(now)
	default:
		t.State, t.ReadyAt = Backoff, t.DueAt
	}
	return v, Effects{Trigger: t.State == Ready}
}

// changeWaiting changes a task on its way into the timer store, where it waits for the time that it has then.
func changeWaiting(t *Task, e *Event, now int64) (Verdict, Effects) {
	v, over := t.decided(e)
	switch {
	case over:
	case e.Kind.OfKey():
		return t.asItIs("it is not the turn of the task: it waits for its time"), Effects{}
	default:
		t.change(e, now)
	}
	return v, Effects{}
}

// changeRunning changes what may be changed of a task whose attempt goes on.
func changeRunning(t *Task, e *Event, now int64) (Verdict, Effects) {
	v, over := t.decided(e)
	if over {
		return v, Effects{}
	}
	u := e.Update
	if u.Whole != nil || u.Priority != 0 || u.DueAt != 0 || u.Now || u.StartWithinMS != 0 || u.Group != "" || u.Tasklist != "" || u.Headers != nil || u.HasPayload ||
		u.Policy != nil && u.Policy.HeartbeatTimeoutMS != 0 {
		return t.asItIs("the task is running: of it only start_to_close_ms, finish_within_ms and retry may change"), Effects{}
	}
	a := &t.Attempt
	cut := a.DeadlineAt == t.Expiry().FinishBy
	t.change(e, now)
	switch {
	case u.Policy != nil && u.Policy.StartToCloseMS != 0:
		a.DeadlineAt = now + u.Policy.StartToCloseMS
	case cut: // by the time of the task, which may be more now
		a.DeadlineAt = max(a.DeadlineAt, a.StartedAt+t.Policy.StartToCloseMS)
	}
	if by := t.Expiry().FinishBy; by > 0 {
		a.DeadlineAt = min(a.DeadlineAt, by)
	}
	return v, Effects{}
}

// change sets what an update names.
func (t *Task) change(e *Event, now int64) {
	u := e.Update
	if u.Whole != nil {
		t.replace(e, now)
		return
	}
	x := t.extra()
	var named []string
	set := func(is bool, field string, do func()) {
		if is {
			named = append(named, field)
			do()
		}
	}
	set(u.Priority != 0, "priority", func() { t.Priority = u.Priority })
	set(u.DueAt != 0, "run_at_ms", func() { t.DueAt = u.due(now) })
	set(u.Now, "run_now", func() { t.DueAt = min(t.DueAt, now) })
	set(u.Group != "", "group", func() { x.Group = u.Group })
	set(u.Tasklist != "", "tasklist", func() { t.Tasklist = u.Tasklist })
	set(u.Headers != nil, "headers", func() { x.Headers = u.Headers })
	set(u.HasPayload, "payload", func() { t.Payload = u.Payload })
	set(u.StartWithinMS != 0, "start_within_ms", func() { x.Expiry.StartWithinMS = u.StartWithinMS })
	set(u.FinishWithinMS != 0, "finish_within_ms", func() { x.Expiry.FinishWithinMS = u.FinishWithinMS })
	if u.Policy != nil {
		named = append(named, t.changePolicy(u.Policy)...)
	}
	moved := u.DueAt != 0 || u.Now
	if moved || u.StartWithinMS != 0 {
		x.Expiry.StartBy = 0
	}
	if moved || u.FinishWithinMS != 0 {
		x.Expiry.FinishBy = 0
	}
	t.limitTime(now)
	t.changed(e, now, strings.Join(named, ", "))
}

// due is when a task is to run whose update was made at now; 0 = the update does not say.
func (u *Update) due(now int64) int64 {
	if u.DelayMS > 0 {
		return max(u.DueAt, now+u.DelayMS)
	}
	return u.DueAt
}

// replace makes t the task of a submit with its unique key. The id, the key and the history stay.
func (t *Task) replace(e *Event, now int64) {
	u := e.Update
	t.Priority, t.Policy, t.Payload, t.Trace = u.Priority, u.Policy, u.Payload, u.Whole.Trace
	t.DueAt = u.due(now)
	if u.Now {
		t.DueAt = now
	}
	x := t.extra()
	x.Headers, x.Group, x.Cost = u.Headers, u.Group, u.Whole.Cost
	x.Expiry = Expiry{StartWithinMS: u.StartWithinMS, FinishWithinMS: u.FinishWithinMS}
	t.limitTime(now)
	if x.Unique != nil {
		key := *x.Unique
		key.ForMS = u.Whole.UniqueForMS
		x.Unique = &key
	}
	if x.Order != nil {
		order := *x.Order
		order.Blocks = u.Whole.OrderBlocks
		x.Order = &order
	}
	t.changed(e, now, "replaced by a submit with its unique key")
}

// changed notes that an update was applied.
func (t *Task) changed(e *Event, now int64, what string) {
	t.applied()
	s := Step{Kind: StepUpdated, At: now, Message: what}
	if t.DueAt > now {
		s.DueAt = t.DueAt
	}
	t.step(s)
}

// applied notes that the update that is decided now is applied.
func (t *Task) applied() {
	u := t.updates()
	u.Applied, u.Refused = u.Applied+1, false
	t.setUpdates(u)
}

// changePolicy gives t a policy of its own with the fields that are set, and names them. They do not follow the type any more.
func (t *Task) changePolicy(set *Policy) (named []string) {
	was, p := *t.Policy, *t.Policy
	p.MaxAttempts = cmp.Or(set.MaxAttempts, p.MaxAttempts)
	p.InitialIntervalMS = cmp.Or(set.InitialIntervalMS, p.InitialIntervalMS)
	p.Backoff = cmp.Or(set.Backoff, p.Backoff)
	p.MaxIntervalMS = cmp.Or(set.MaxIntervalMS, max(p.MaxIntervalMS, set.InitialIntervalMS))
	p.StartToCloseMS = cmp.Or(set.StartToCloseMS, p.StartToCloseMS)
	p.HeartbeatTimeoutMS = cmp.Or(set.HeartbeatTimeoutMS, p.HeartbeatTimeoutMS)
	p.MaxDeliveries = cmp.Or(set.MaxDeliveries, p.MaxDeliveries)
	p.Jitter, p.OnLost, p.OnTimeout = cmp.Or(set.Jitter, p.Jitter), cmp.Or(set.OnLost, p.OnLost), cmp.Or(set.OnTimeout, p.OnTimeout)
	p.Rules = set.Rules.over(p.Rules)
	p.OfType &^= set.set()
	t.Policy = &p
	if set.StartToCloseMS != 0 {
		named = append(named, "start_to_close_ms")
	}
	if set.HeartbeatTimeoutMS != 0 {
		named = append(named, "heartbeat_timeout_ms")
	}
	rest := p
	rest.StartToCloseMS, rest.HeartbeatTimeoutMS, rest.OfType = was.StartToCloseMS, was.HeartbeatTimeoutMS, was.OfType
	if rest != was {
		named = append(named, "retry")
	}
	return named
}

// over are the rules with the lists of r in place of those before, where r has any.
func (r *Rules) over(before *Rules) *Rules {
	if r == nil || before == nil {
		return cmp.Or(r, before)
	}
	both := Rules{NonRetryable: r.NonRetryable, ByError: r.ByError}
	if len(both.NonRetryable) == 0 {
		both.NonRetryable = before.NonRetryable
	}
	if len(both.ByError) == 0 {
		both.ByError = before.ByError
	}
	return &both
}

// Bytes is about how much memory u takes while it waits.
func (u *Update) Bytes() int {
	if u == nil {
		return 0
	}
	const header = 32
	n := len(u.Group) + len(u.Tasklist) + len(u.Payload.Data)
	for _, h := range u.Headers {
		n += header + len(h.Name) + len(h.Value)
	}
	if u.Policy != nil {
		n += u.Policy.Rules.Footprint()
	}
	if w := u.Whole; w != nil {
		n += len(w.Type) + len(w.Trace)
	}
	return n
}
