package simulation

import (
	"cmp"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// attempt names one grant of a task.
type attempt struct {
	id      ids.TaskID
	version uint32
}

// decided is the first verdict on an event, and by which one.
type decided struct {
	who     string
	verdict historysim.Verdict
}

// place is an event of the log.
type place struct {
	seq uint64
	i   int
}

// checker holds the invariants against what happens.
type checker struct {
	w *world
	// holders are those that were informed that they hold an attempt, and by which event.
	holders   map[attempt]ids.Token
	grantedAt map[ids.TaskID]uint64
	// keyed are the tasks with order keys that have ended.
	keyed map[orderKey][]*historysim.Task
	// took are the latest revisions of their types under which attempts of tasks were seen.
	took map[ids.TaskID]int64
	// succeeded are the attempts whose success was confirmed.
	succeeded map[ids.TaskID]ids.Token
	// cancelled are the tasks of which a cancel was confirmed, and the first such event.
	cancelled map[ids.TaskID]uint64
	// asked are the tasks whose owner has asked for a cancel.
	asked     map[ids.TaskID]bool
	verdictOf map[place]decided
	// asks are the events about each task, in log order.
	asks map[ids.TaskID][]ask
	// booked are the attempts for which a slot was booked, slots the bookings that were released.
	booked map[attempt]bool
	// finishBy is when the tasks expire that have a time to finish, by the log.
	finishBy map[ids.TaskID]int64
	slots    map[string]bool
	// updates are those that were asked for, by their requests.
	updates map[ids.TaskID]map[uint64]*asked
	// back is up to which stay redrives have brought each task back, backBy the requests that did, by letter.
	back   map[ids.TaskID]uint32
	backBy map[broughtBack]uint64
	// cameBack are the stays of which a redrive was confirmed.
	cameBack map[historysim.Stay]bool
	// redriveAsked are the tasks that somebody asks to come back.
	redriveAsked map[ids.TaskID]bool
	// notBack counts the redrives that were refused.
	notBack int
	// skipped are the tasks of which a skip or an end was confirmed, and the first such event; mayBeSkipped those of which one was asked for. ofKeys are the
	// requests of skips and unblocks that were asked for, and whether they were confirmed.
	// endedAs are the states in which tasks were ended by that.
	skipped      map[ids.TaskID]uint64
	endedAs      map[ids.TaskID]historysim.State
	mayBeSkipped map[ids.TaskID]bool
	ofKeys       map[ids.TaskID]map[uint64]bool
	// fences are the events by which owners of matching shards fenced, and their epochs, in log order.
	fences map[uint32][]fenced
}

func newChecker(w *world) *checker {
	return &checker{
		w: w, holders: map[attempt]ids.Token{}, grantedAt: map[ids.TaskID]uint64{}, took: map[ids.TaskID]int64{}, succeeded: map[ids.TaskID]ids.Token{},
		cancelled: map[ids.TaskID]uint64{}, asked: map[ids.TaskID]bool{}, verdictOf: map[place]decided{}, asks: map[ids.TaskID][]ask{},
		finishBy: map[ids.TaskID]int64{}, booked: map[attempt]bool{}, slots: map[string]bool{}, fences: map[uint32][]fenced{},
		updates: map[ids.TaskID]map[uint64]*asked{},
		keyed:   map[orderKey][]*historysim.Task{},
		back:    map[ids.TaskID]uint32{}, backBy: map[broughtBack]uint64{}, cameBack: map[historysim.Stay]bool{}, redriveAsked: map[ids.TaskID]bool{},
		skipped: map[ids.TaskID]uint64{}, endedAs: map[ids.TaskID]historysim.State{}, mayBeSkipped: map[ids.TaskID]bool{}, ofKeys: map[ids.TaskID]map[uint64]bool{},
	}
}

func (c *checker) appended(m *historysim.Message) {
	for i := range m.Tasks {
		t := &m.Tasks[i]
		if x := t.Expiry(); x.FinishWithinMS > 0 && c.finishBy[t.ID] == 0 {
			c.finishBy[t.ID] = max(m.At, t.DueAt) + x.FinishWithinMS
		}
	}
	for i := range m.Events {
		if e := &m.Events[i]; m.Request == 0 && e.Kind == historysim.Released && c.w.match.check.received(e.ID, e.Fence) && c.w.plan.faults&changesOfOwner == 0 {
			c.w.violated("R15: attempt %d of %s is taken back, and its worker has it", e.Fence.Version, c.w.name(e.ID))
		}
		if e := &m.Events[i]; e.Kind == historysim.Started {
			c.w.match.check.grabbed(m.Shard, heldBy{e.ID, e.Fence})
		}
		c.noted(&m.Events[i], place{m.Seq, i})
		c.updateAsked(&m.Events[i], m.Seq)
		if m.Events[i].Kind == historysim.Redrove {
			c.redriveAsked[m.Events[i].ID] = true
		}
		c.keyCommandAsked(&m.Events[i])
		if m.Events[i].Kind == historysim.Fence {
			c.fences[m.Shard] = append(c.fences[m.Shard], fenced{m.Seq, m.Epoch})
		}
		if e := &m.Events[i]; e.CancelRunning || e.Kind == historysim.Cancel && e.Domain == c.w.accepted[e.ID].domain {
			c.asked[e.ID] = true
		}
	}
}

func (c *checker) released(booking string) { c.slots[booking] = true }

// earlyMost is how much too early a task may fire if clocks run at different rates.
const earlyMost = time.Second

// fired holds I6 and I10: a stay fires once, if it is not void, and not before its time by the furthest clock that the server ever had, but for a
// command.
func (c *checker) fired(t *historysim.Task) {
	w, key := c.w, historysim.Stay{ID: t.ID, Parkings: t.Parkings}
	if w.waiting.fired[key] {
		w.violated("I10: stay %d of %s fires twice", t.Parkings, w.name(t.ID))
	}
	if w.waiting.by[key] == 0 {
		w.violated("I6: stay %d of %s fires, and it is void", t.Parkings, w.name(t.ID))
	}
	now := w.epochMS + (w.now + w.aheadMost).Milliseconds()
	if w.plan.has(skewedClocks) {
		now += earlyMost.Milliseconds()
	}
	if t.DueAt > now && !w.waiting.early[key] {
		w.violated("I6: %s fires %d ms before its time", w.name(t.ID), t.DueAt-now)
	}
	c.late(t)
	w.waiting.fired[key] = true
}

// lateMost is how late a task may fire without faults, lateSlow the same of a timer that looks
// seldom at its clock.
const (
	lateMost = 5 * time.Second
	lateSlow = lateMost + 8*time.Second
)

// late holds R23: once there are no more faults, the clocks of before do not stop the firing.
func (c *checker) late(t *historysim.Task) {
	w, most := c.w, lateMost
	if w.plan.has(slowTimer) {
		most = lateSlow
	}
	since := max(t.DueAt, w.calmMS)
	for _, copy := range w.waiting.copies[t.ID] {
		if copy.parkings == t.Parkings {
			since = max(since, w.waiting.messages[copy.seq-1].AtMS)
		}
	}
	now := min(w.serverMS(), w.epochMS+w.now.Milliseconds()) // the earlier one of a healthy node's clock and the server's
	if late := now - since; !w.faulty && late > most.Milliseconds() {
		w.violated("R23: %s fires %d ms late", w.name(t.ID), late)
	}
}

// arrived holds R14: a timer takes for void what it must, whichever fences are left.
func (c *checker) arrived(p *timerProc, seq uint64, outdated int) {
	if want := c.w.waiting.void[seq]; outdated != want {
		c.w.violated("R14: %s takes %d tasks of message %d for void, and it is %d", p.name, outdated, seq, want)
	}
}

// verdicts looks at what an owner decided, whether it is heard or not.
func (c *checker) verdicts(p *proc, a *historysim.Answer) {
	seq, err := strconv.ParseUint(a.ReplyTo, 10, 64)
	if err != nil {
		c.w.violated("an answer to %q", a.ReplyTo)
		return
	}
	m := c.w.log[seq-1]
	if at := c.w.unknownAt; at > 0 && seq > at {
		c.w.violated("I13: %s answers event %d, and cannot read event %d", p.name, seq, at)
	}
	for i := range a.Verdicts {
		at := a.First + i
		e, v := &m.Events[at], &a.Verdicts[i]
		if c.w.telling {
			c.w.say(p.name, "says to %d/%d, %v %s at event %d: %s granted=%v repeated=%v cancel=%v", a.RequestID, at, e.Kind, c.w.name(e.ID), seq,
				cmp.Or(string(v.Code), "OK"), v.Granted, v.Repeated, v.CancelRequested)
		}
		c.fencing(m, e, v)
		c.contradiction(p, e, v, place{seq, at})
		c.otherwise(e, v, place{seq, at})
		if v.Code != "" {
			c.refused(e, v, seq)
			continue
		}
		c.confirmed(e, v, seq)
		if t := v.Grant.Task; t != nil {
			c.took[e.ID] = max(c.took[e.ID], t.Policy.TypeRevision)
		}
	}
}

// refused holds I14, and R25: who may cancel a task hears that it has ended, and never that
// it does not exist.
func (c *checker) refused(e *historysim.Event, v *historysim.Verdict, seq uint64) {
	switch {
	case e.Kind == historysim.Changed && e.Domain != rival:
		c.updateRefused(e, v, seq)
	case e.Kind == historysim.Redrove:
		c.redriveRefused(e, v)
	case ofOperator(e) && e.Domain != rival:
		if v.Code != fault.FailedPrecondition && v.Code != fault.Unknown {
			c.w.violated("a %v of %s gets %s", e.Kind, c.w.name(e.ID), v.Code)
		}
	case e.Kind != historysim.Cancel && e.Kind != historysim.Changed && e.Kind != historysim.Ended:
	case e.Domain == rival && v.Code != fault.NotFound:
		c.w.violated("I14: a foreign cancel of %s gets %s", c.w.name(e.ID), v.Code)
	case e.Domain == c.w.accepted[e.ID].domain && v.Code != fault.FailedPrecondition:
		c.w.violated("R25: a cancel of %s gets %s", c.w.name(e.ID), v.Code)
	}
}

// contradiction holds I3: two owners may not decide differently about an event.
func (c *checker) contradiction(p *proc, e *historysim.Event, v *historysim.Verdict, at place) {
	first, again := c.verdictOf[at]
	if !again {
		c.verdictOf[at] = decided{p.name, *v}
		return
	}
	if searched(e) && (first.verdict.Code == fault.Unknown || v.Code == fault.Unknown) {
		return // who says so does not know what the other one has decided
	}
	same := (first.verdict.Code == "") == (v.Code == "") && first.verdict.Fenced == v.Fenced && first.verdict.Granted == v.Granted
	if same || c.free(e, &first.verdict, v, at) {
		return
	}
	c.w.violated("I3: %s says %q to %v %s at event %d, and %s says %q", first.who, first.verdict.Code, e.Kind, c.w.name(e.ID), at.seq, p.name, v.Code)
}

// holds takes in what a history owner says of a running attempt, whose verdict may not have been delivered.
func (c *checker) holds(id ids.TaskID, token ids.Token) {
	for i := len(c.w.log) - 1; i >= 0; i-- {
		m := c.w.log[i]
		if m == nil || m.Shard == 0 {
			continue
		}
		for k := range m.Events {
			if e := &m.Events[k]; e.Kind == historysim.Started && e.ID == id && e.Fence == token {
				c.grant(e, m.Seq)
				return
			}
		}
	}
	c.w.violated("I4: attempt %d of %s runs, and no one has asked for %+v", token.Version, c.w.name(id), token)
}

// grant holds I4: an attempt has one holder.
func (c *checker) grant(e *historysim.Event, seq uint64) {
	key := attempt{e.ID, e.Fence.Version}
	if holder, ok := c.holders[key]; ok && holder != e.Fence {
		c.w.violated("I4: attempt %d of %s is held twice: %+v and %+v", key.version, c.w.name(e.ID), holder, e.Fence)
	}
	c.holders[key] = e.Fence
	if e.Limits != nil {
		c.booked[key] = true
	}
	c.w.match.check.granted(c.w, e, seq)
}

// free tells whether two verdicts on a repeated failure may differ, as the replica's doc says: it ended its stay, so
// it was looked for, by one of them until the next attempt had begun.
func (c *checker) free(e *historysim.Event, a, b *historysim.Verdict, at place) bool {
	_, later := c.holders[attempt{e.ID, e.Fence.Version + 1}]
	late := a.Code == fault.Stale && b.Code == "" || a.Code == "" && b.Code == fault.Stale
	for _, before := range c.asks[e.ID] {
		if before.at.seq < at.seq && before.wish == wishOf(e) {
			return e.Kind == historysim.Failed && later && late
		}
	}
	return false
}

// confirmed looks at an event that was applied.
func (c *checker) confirmed(e *historysim.Event, v *historysim.Verdict, seq uint64) {
	name := c.w.name(e.ID)
	switch e.Kind {
	case historysim.Changed:
		c.updateConfirmed(e, v, seq)
	case historysim.Redrove:
		c.redriveConfirmed(e)
	case historysim.Skipped, historysim.Unblocked, historysim.Ended:
		c.keyCommanded(e, v, seq)
	case historysim.Started:
		c.grant(e, seq)
		c.grantedAt[e.ID] = max(c.grantedAt[e.ID], seq)
		if at, ok := c.skipped[e.ID]; ok && at < seq && !c.redriveAsked[e.ID] {
			c.w.violated("%s was skipped by event %d, and is granted by event %d", name, at, seq)
		}
		if at, ok := c.cancelled[e.ID]; ok && at < seq {
			c.w.violated("%s was cancelled by event %d, and is granted by event %d", name, at, seq)
		}
	case historysim.Succeeded:
		if other, ok := c.succeeded[e.ID]; ok && other != e.Fence {
			c.w.violated("I4: %s succeeds in two attempts: %+v and %+v", name, other, e.Fence)
		}
		c.succeeded[e.ID] = e.Fence
		c.holder(e)
	case historysim.Failed, historysim.Released, historysim.Heartbeat:
		c.holder(e)
	case historysim.Cancel:
		if e.Domain == rival {
			c.w.violated("I14: %s is cancelled by another domain", name)
		}
		if v.CancelRequested {
			return
		}
		if at, ok := c.cancelled[e.ID]; !ok || seq < at {
			c.cancelled[e.ID] = seq
		}
		if c.grantedAt[e.ID] > seq {
			c.w.violated("%s is cancelled by event %d, and was granted by event %d", name, seq, c.grantedAt[e.ID])
		}
	}
}

// holder holds I4: only who holds an attempt is obeyed.
func (c *checker) holder(e *historysim.Event) {
	if other, ok := c.holders[attempt{e.ID, e.Fence.Version}]; ok && other != e.Fence {
		c.w.violated("I4: %+v ends attempt %d of %s, which is held by %+v", e.Fence, e.Fence.Version, c.w.name(e.ID), other)
	}
}

// saved looks at a checkpoint that is to be stored.
func (c *checker) saved(s historysim.Stored) {
	old := c.w.checkpoint
	if now, was := s.Snapshot, old.Snapshot; now.Seq < was.Seq || now.TimerSeq < was.TimerSeq {
		c.w.violated("a checkpoint goes back from the snapshot of %d to that of %d, timer %d to %d", was.Seq, now.Seq, was.TimerSeq, now.TimerSeq)
	}
	if now := s.Snapshot; now.Seq > 0 && c.w.snapshots[snapshotName{now.Epoch, now.Seq}] == nil {
		c.w.violated("a checkpoint names the snapshot of %d, which is not stored", now.Seq)
	}
}

// purged holds I12, nothing is purged that an owner with a lease has not read, and I1, nothing
// that is nowhere else.
func (c *checker) purged(by *proc, m *historysim.Message) {
	for _, p := range c.w.living() {
		if p.owner.LeaseHolds() && !p.owner.Read(m) {
			c.w.violated("I12: %s purges %d, which %s has not read", by.name, m.Seq, p.name)
		}
	}
	for i := range m.Tasks {
		c.reachable(m.Tasks[i].ID)
	}
}

// memory holds I7 where nothing makes an owner read ahead: of each lane it holds a window, the
// message that fills it, and what runs.
func (c *checker) memory(p *proc) {
	if c.w.plan.faults&changesOfOwner != 0 || !p.owner.Live() {
		return
	}
	for lane := range ids.Lane(ids.Lanes) {
		most := c.w.plan.window + requestMost - 1
		if p.owner.Lagging() > 0 {
			most *= 13 // what lags holds eleven windows at most, but for the message that fills each
		}
		if n := p.owner.InLane(lane); n > most {
			c.w.violated("I7: %s holds %d tasks of lane %v, and its window takes %d", p.name, n, lane, most)
		}
	}
}

func (c *checker) allEnded() bool {
	return len(c.w.archived) >= len(c.w.accepted) && len(c.w.accepted) >= c.w.submits && c.w.asking == 0 && c.allBack() && c.w.schedulesOver()
}

// progress holds that nothing is stuck, but for the tasks of a domain; "" = of none.
func (c *checker) progress(but func(task) bool) {
	if id := c.stuck(but); id != nil {
		c.w.violated("I1 I11: %s does not end", c.w.name(*id))
	}
}

// stuck is a task that has not ended, and is none of some; nil = of all. One whose redrive was read again in a takeover waits until the lanes are read, with all of that
// domain.
func (c *checker) stuck(but func(task) bool) *ids.TaskID {
	for _, id := range c.w.order {
		waits := but != nil && c.w.archived[id] != nil && c.w.letters[id] != nil
		if !c.w.ended(id) && !waits && (but == nil || !but(c.w.accepted[id])) {
			return &id
		}
	}
	return nil
}

// end looks at the whole run.
func (c *checker) end() {
	w := c.w
	for _, id := range w.order {
		if w.broken != "" {
			return
		}
		c.endOf(w.archived[id])
	}
	c.runsEnd()
	for _, p := range w.living() {
		if n := p.owner.Len(); n > 0 {
			w.violated("%s has %d tasks in memory, and all have ended", p.name, n)
		}
		for domain, want := range w.members {
			if n, ended := historysim.Members(p.owner, domain, w.half); (n != want || ended != want) && p.owner.LeaseHolds() {
				w.violated("%s counts %d tasks of the batch of %s, %d of them ended, and all %d that were submitted have", p.name, n, domain, ended, want)
			}
		}
	}
	for _, p := range w.livingTimers() {
		if n := p.owner.Waiting(); n > 0 {
			w.violated("I6: %d tasks wait in %s, and all have ended", n, p.name)
		}
	}
	if seq := w.leftBehind(restLasts / 2); seq > 0 {
		w.violated("message %d of the timer store is needed forever", seq)
	}
	for i, all := range w.subjects {
		if i == events && len(all) > 0 && all[0].Turn == all[len(all)-1].Turn {
			continue // the last turn stays
		}
		if len(all) > 0 && all[0].At < w.serverMS()-restLasts.Milliseconds()/2 {
			w.violated("message %d of subject %d is needed forever, %d are behind it", all[0].Seq, i, len(all)-1)
		}
	}
}

func (c *checker) endOf(t *historysim.Task) {
	w, name := c.w, c.w.name(t.ID)
	if tok, ok := c.succeeded[t.ID]; ok && (t.State != historysim.Completed || tok.Version != t.Version || tok.Nonce != t.Attempt.Nonce) {
		w.violated("%s: attempt %d was informed that it succeeded, but it is %v in attempt %d", name, tok.Version, t.State, t.Version)
	}
	if t.State == historysim.Cancelled && !c.asked[t.ID] {
		w.violated("%s is cancelled, though its owner did not ask", name)
	}
	c.inTime(t)
	c.updatesHold(t)
	c.byPolicy(t)
	c.lettersHold(t)
	at, skipped := c.skipped[t.ID]
	if skipped && t.State != c.endedAs[t.ID] && t.Redriven().Count == 0 {
		w.violated("%s was skipped, or ended as %v, by event %d, but it is %v", name, c.endedAs[t.ID], at, t.State)
	}
	if o := t.Order(); o != nil && o.Blocks && t.State == historysim.Dead && !c.mayBeSkipped[t.ID] {
		w.violated("%s is dead, and was to block its key", name)
	}
	if _, ok := c.cancelled[t.ID]; ok && t.State != historysim.Cancelled {
		w.violated("%s was cancelled, but it is %v", name, t.State)
	}
	if _, ok := c.holders[attempt{t.ID, t.Version + 1}]; ok {
		w.violated("R13: attempt %d of %s was granted, but the task has ended in attempt %d", t.Version+1, name, t.Version)
	}
	for version := range t.Version {
		if c.booked[attempt{t.ID, version + 1}] && !c.slots[ids.Booking(t.ID, version+1)] {
			w.violated("I8: attempt %d of %s is over, and its slot was not released", version+1, name)
		}
	}
}
