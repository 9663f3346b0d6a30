package match

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

type task struct {
	id       ids.TaskID
	domain   string
	list     string
	typ      string
	group    string
	cost     int
	priority int
	part     int
	shard    int
	version  uint32
	state    string // ready, running, done
	nonce    uint64
	path     []table.Ref
	inbox    string
	json     bool
	owner    [2]uint64 // epoch, batch
	received bool
	worked   bool
	// triggeredAt is when its trigger was sent last.
	triggeredAt time.Duration
	// readyAt is when it became ready. rejected: it ended so. leaving: it was asked to stop.
	readyAt           time.Duration
	rejected, leaving bool
}

func (w *world) sorted() []*task {
	all := make([]*task, 0, len(w.tasks))
	for _, t := range w.tasks {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *task) int { return bytes.Compare(a.id[:], b.id[:]) })
	return all
}

// shardOf is where the tasks of a partition of a tasklist are matched.
func (w *world) shardOf(list string, partition int) int {
	return (int(list[len(list)-1]) + partition) % w.shards
}

// ready makes n tasks of a tasklist, in turns of all partitions, and sends their triggers.
func (w *world) ready(domain, list, typ string, priority, n int) []*task {
	var made []*task
	for range n {
		made = append(made, w.task(domain, list, typ, priority, len(w.tasks)%len(w.partitions)))
	}
	w.trigger(made...)
	return made
}

func (w *world) task(domain, list, typ string, priority, partition int) *task {
	t := &task{
		id:     ids.NewTaskID(time.UnixMilli(epochMS), partition, uint64(len(w.tasks)+1)),
		domain: domain, list: list, typ: typ, priority: priority, state: "ready", group: w.group(), cost: w.cost(), readyAt: w.now,
	}
	w.place(t)
	w.tasks[t.id] = t
	return t
}

// trigger sends the triggers of tasks that are ready, one message to each shard.
func (w *world) trigger(tasks ...*task) {
	groups := map[int][]arrival.Triggers{}
	for _, t := range tasks {
		t.triggeredAt = w.now
		packed := ids.AppendTrigger(nil, ids.Trigger{ID: t.id, Version: t.version + 1})
		all := groups[t.shard]
		if n := len(all); n > 0 && all[n-1].Name == t.list && all[n-1].Partition == t.part && all[n-1].Type == t.typ && all[n-1].Cost == t.cost && all[n-1].Domain == t.domain {
			all[n-1].Packed = append(all[n-1].Packed, packed...)
			groupIs(&all[n-1], t.group)
			continue
		}
		groups[t.shard] = append(all, arrival.Triggers{
			Tasklist: table.Tasklist{Domain: t.domain, Name: t.list, Partition: t.part}, Column: table.Column{Priority: t.priority, Type: t.typ},
			ReadyAt: (epochMS + w.now.Milliseconds()) * 1000, Packed: packed, Cost: t.cost,
		})
		groupIs(&groups[t.shard][len(all)], t.group)
	}
	for shard := range w.shards {
		if len(groups[shard]) > 0 {
			w.hint(shard, Hints{Triggers: groups[shard]})
		}
	}
}

// groupIs notes the group of the last trigger.
func groupIs(t *arrival.Triggers, group string) {
	if group == "" && t.Groups == nil {
		return
	}
	for len(t.Groups) < len(t.Packed)/ids.TriggerBytes-1 {
		t.Groups = append(t.Groups, "")
	}
	t.Groups = append(t.Groups, group)
}

// hint sends a message to the shard's owner, which may be lost, or come twice; what is not acknowledged comes again.
func (w *world) hint(shard int, h Hints) uint64 {
	if w.lost() {
		w.after(resentAfter, func() { w.resend(&h) })
		return 0
	}
	if w.twice() {
		w.send(shard, h)
	}
	return w.send(shard, h)
}

// send sends a message.
func (w *world) send(shard int, h Hints) uint64 {
	w.count++
	id := uint64(w.count)
	h.Delivery = id
	var deliver func()
	deliver = func() {
		if w.acks[id] {
			return
		}
		for i := len(w.owners) - 1; i >= 0; i-- {
			o := w.owners[i]
			if o.shard != shard || o.dead || o.overtaken || o.drained {
				continue
			}
			if !o.deliveries[id] {
				o.deliveries[id] = true
				o.give(func(in *Inputs) { in.Hints = append(in.Hints, h) })
			}
			break
		}
		w.after(5*time.Second, deliver)
	}
	w.after(w.delay(), deliver)
	return id
}

// resentAfter is when history sends the triggers again of what has been ready for long.
const resentAfter = 10 * time.Second

// resend sends those of a hint that was lost. Its releases are lost for good.
func (w *world) resend(h *Hints) {
	var all []*task
	for _, ts := range h.Triggers {
		for i := range len(ts.Packed) / ids.TriggerBytes {
			tr := ids.TriggerAt(ts.Packed, i)
			if t := w.tasks[tr.ID]; t.state == "ready" && t.version+1 == tr.Version {
				all = append(all, t)
			}
		}
	}
	w.trigger(all...)
}

// retrigger sends the triggers of what is ready again.
func (w *world) retrigger(partition, shard int, domain, list string, present ...string) {
	var all []*task
	for _, t := range w.sorted() {
		if t.state == "ready" && (shard < 0 || t.shard == shard) && (partition < 0 || t.id.Partition() == partition) &&
			(domain == "" || t.domain == domain) && !slices.Contains(present, t.typ) && (list == "" || t.list == list && w.now-t.triggeredAt >= 2*time.Second) {
			if t.part >= w.partsOf(t.list) {
				w.place(t)
			}
			all = append(all, t)
		}
	}
	w.trigger(all...)
}

// batch has a partition decide a batch.
func (o *owner) batch(b grab.Batch) {
	w := o.w
	w.batches = append(w.batches, b)
	o.checkBatch(&b)
	b.Grabs, b.Polls, b.HandBacks, b.Stops = slices.Clone(b.Grabs), slices.Clone(b.Polls), slices.Clone(b.HandBacks), slices.Clone(b.Stops)
	times := 1
	if w.twice() {
		times = 2
	}
	for range times {
		w.hears(b.Partition, func() {
			v := w.decide(o, &b)
			if len(v.All) == 0 {
				return
			}
			parts := []grab.Verdicts{v}
			if len(v.All) > 1 && w.twice() { // in two parts, the second one first
				half := len(v.All) / 2
				parts = []grab.Verdicts{{Partition: v.Partition, Batch: v.Batch, First: half, All: v.All[half:]}, {Partition: v.Partition, Batch: v.Batch, All: v.All[:half]}}
			}
			late := w.late()
			for _, part := range parts {
				w.after(late+w.delay(), func() { o.give(func(in *Inputs) { in.Verdicts = append(in.Verdicts, part) }) })
			}
		})
	}
}

// checkBatch: a number stands for the same events forever, and none is left out.
func (o *owner) checkBatch(b *grab.Batch) {
	at := [2]uint64{uint64(b.Partition), b.Number}
	text := fmt.Sprint(b.Fence, b.Grabs, b.HandBacks, b.Polls, b.Stops)
	if was, again := o.sent[at]; again && was != text {
		o.w.t.Fatalf("batch %v was %s and is %s", at, was, text)
	} else if !again && b.Number != o.numbers[b.Partition]+1 {
		o.w.t.Fatalf("batch %v after %d", at, o.numbers[b.Partition])
	}
	if _, again := o.sent[at]; !again {
		o.checkPaused(b)
	}
	o.sent[at] = text
	o.numbers[b.Partition] = max(b.Number, o.numbers[b.Partition])
	if b.Number == 1 != b.Fence {
		o.w.t.Fatalf("batch %v is a fence: %v", at, b.Fence)
	}
	for n := uint64(1); n <= b.Delivered; n++ {
		key := [2]uint64{at[0], n}
		if o.outstanding[key] > 0 {
			o.w.t.Fatalf("batch %d is said to be delivered, %d grants of it are not", n, o.outstanding[key])
		}
		if sent, ok := o.sentAt[key]; ok && o.w.now-sent < grab.HeardAfter {
			o.w.t.Fatalf("batch %d is said to be delivered after %v", n, o.w.now-sent)
		}
	}
	for _, g := range b.Grabs {
		o.checkGrab(&g)
	}
}

// checkPaused: nothing is asked for of a group that its owner knows to be paused.
func (o *owner) checkPaused(b *grab.Batch) {
	for _, g := range b.Grabs {
		if t := o.w.tasks[g.Trigger.ID]; o.s.domains[t.domain].withheld[t.group] {
			o.w.t.Fatalf("a grab of group %s, which is paused", t.group)
		}
	}
	for _, s := range b.Stops {
		t := o.w.tasks[s.Trigger.ID]
		if d := o.s.domains[t.domain]; !s.Displace && (d.withheld[t.group] || o.s.list(table.Tasklist{Domain: t.domain, Name: t.list, Partition: t.part}).TypePath(t.typ).Pause != nil) {
			o.w.t.Fatalf("a reject of type %s and group %s, which is paused", t.typ, t.group)
		}
	}
}

// checkGrab: no grab without a slot.
func (o *owner) checkGrab(g *grab.Grab) {
	t := o.w.tasks[g.Trigger.ID]
	for _, ref := range g.Path {
		if l := o.s.domains[t.domain].Limit(ref); l != nil && (l.Of != nil && covers(&l.Of.Setting, t.list, t.typ) || covers(&l.Setting, t.list, t.typ)) && !l.Holds(limit.MemberOf(g.Trigger)) {
			o.w.t.Fatalf("a grab of %s without a slot", t.typ)
		}
	}
}

func (w *world) decide(o *owner, b *grab.Batch) grab.Verdicts {
	v := grab.Verdicts{Partition: b.Partition, Batch: b.Number}
	at := w.partitions[b.Partition]
	stale := o.epoch < at.fences[o.shard]
	if b.Fence {
		at.fences[o.shard] = max(at.fences[o.shard], o.epoch)
		return grab.Verdicts{Partition: b.Partition, Batch: b.Number, All: []grab.Verdict{{Fenced: stale}}}
	}
	for _, t := range w.tasks { // what has been delivered needs no second answer
		if t.shard == o.shard && t.id.Partition() == b.Partition && t.owner[0] == o.epoch && t.owner[1] <= b.Delivered {
			t.received = true
		}
	}
	for i := range b.Grabs {
		v.All = append(v.All, w.start(o, b, &b.Grabs[i], stale))
	}
	for i := range b.Stops {
		v.All = append(v.All, w.stop(&b.Stops[i], stale))
	}
	for _, h := range b.HandBacks {
		t := w.tasks[h.ID]
		if stale {
			v.All = append(v.All, grab.Verdict{Refused: string(fault.Stale), Fenced: true})
		} else if t.state == "running" && t.version == h.Version && t.nonce == h.Nonce {
			if t.worked {
				w.t.Fatalf("an attempt was handed back that a worker has")
			}
			o.outstanding[[2]uint64{uint64(b.Partition), t.owner[1]}]--
			w.over(t, "ready")
			w.trigger(t)
			v.All = append(v.All, grab.Verdict{})
		} else {
			v.All = append(v.All, grab.Verdict{Refused: string(fault.Stale)})
		}
	}
	return v
}

// start decides a grab.
func (w *world) start(o *owner, b *grab.Batch, g *grab.Grab, stale bool) grab.Verdict {
	t := w.tasks[g.Trigger.ID]
	switch {
	case stale:
		return grab.Verdict{Refused: string(fault.Stale), Fenced: true}
	case t.state == "running" && t.version == g.Trigger.Version && t.nonce == g.Nonce:
	case t.state != "ready" || t.version+1 != g.Trigger.Version:
		return grab.Verdict{Refused: string(fault.Stale)}
	default:
		poll := b.Polls[g.Poll]
		t.state, t.version, t.nonce, t.path = "running", t.version+1, g.Nonce, g.Path
		t.inbox, t.json, t.owner = poll.ReplyTo, poll.JSON, [2]uint64{o.epoch, b.Number}
		t.received, t.worked, t.shard = false, false, o.shard
		w.grantedN++
		o.outstanding[[2]uint64{uint64(b.Partition), b.Number}]++
		for _, key := range w.covering(t) {
			w.starts[key] += max(t.cost, 1)
			w.running[key]++
			w.checkBooked(key)
			w.peak[key] = max(w.peak[key], w.running[key])
		}
		version := t.version
		w.after(w.lease, func() {
			if t.state == "running" && t.version == version && !t.worked {
				o.outstanding[[2]uint64{uint64(b.Partition), b.Number}]--
				w.over(t, "ready")
				w.trigger(t)
			}
		})
	}
	return grab.Verdict{Task: t.encode(), DeadlineMS: epochMS + w.now.Milliseconds() + 60_000, Trace: traceOf(t)}
}

func traceOf(t *task) []byte {
	if t.typ == "mail" {
		return []byte("trace")
	}
	return nil
}

// over ends an attempt, and tells of its slot.
func (w *world) over(t *task, state string) {
	t.state, t.readyAt, t.leaving = state, w.now, false
	for _, key := range w.covering(t) {
		w.running[key]--
	}
	if len(t.path) > 0 {
		w.hint(t.shard, Hints{Releases: []Release{{
			Domain: t.domain, Type: t.typ, Path: t.path, Bookings: []byte(ids.Booking(t.id, t.version)),
		}}})
	}
	t.shard = w.shardOf(t.list, t.part)
}

// ran tells whether the attempt is over that a grab asks for: its slot is free, whatever the verdict.
func (w *world) ran(tr ids.Trigger) bool {
	t := w.tasks[tr.ID]
	return t != nil && (t.version > tr.Version || t.version == tr.Version && t.state != "running")
}

// poll has a worker poll; served tells whether an owner got it.
func (w *world) poll(inbox string, p waiting.Poll) (served bool) {
	p.ReplyTo = inbox
	shard := w.shardOf(p.Tasklist, p.Partition)
	for i := len(w.owners) - 1; i >= 0; i-- {
		o := w.owners[i]
		if o.shard != shard || o.dead {
			continue
		}
		w.count++
		p.ID = uint64(w.count)
		w.polls[inbox] = &pollSeen{id: p.ID, poll: p, until: w.now + p.For}
		o.live[inbox] = w.now
		o.give(func(in *Inputs) { in.Polls = append(in.Polls, p) })
		return true
	}
	return false
}

// end notes that a poll was answered.
func (w *world) end(o *owner, inbox string, id uint64) *pollSeen {
	p := w.polls[inbox]
	if p == nil {
		w.t.Fatalf("an answer to %q, which no one polls", inbox)
	}
	p.answered++
	p.at = w.now
	if p.id != id {
		w.t.Fatalf("poll %q has the number %d, its answer is for %d", inbox, p.id, id)
	}
	if _, ok := o.live[inbox]; !ok || p.answered > 1 && !p.again {
		w.t.Fatalf("poll %q was answered %d times", inbox, p.answered)
	}
	delete(o.live, inbox)
	return p
}

// answer has workers take what an answer holds. A poll gets one; what an owner sends again
// counts only where the poll waits still.
func (o *owner) answer(a grab.Answer) {
	w := o.w
	w.answers = append(w.answers, a)
	again := len(a.Tasks) > 0 && a.ID == 0
	if again {
		if a.Poll != 0 {
			w.t.Fatalf("what is sent again to %q names poll %d of this owner", a.ReplyTo, a.Poll)
		}
		p := w.polls[a.ReplyTo]
		if p == nil || p.answered > 0 {
			return
		}
		p.answered++
		p.tasks, p.at, p.again = len(a.Tasks), w.now, true
	} else if p := w.end(o, a.ReplyTo, a.Poll); p.answered == 1 {
		p.tasks = len(a.Tasks)
	}
	deaf := w.deaf(a.ReplyTo) || w.polls[a.ReplyTo].answered > 1
	for _, b := range a.Tasks {
		t := w.tasks[ids.TaskID(b[:16])]
		if !again && o.epoch == t.owner[0] {
			o.delivered(t, deaf)
		}
		if !deaf {
			w.works(t, b)
		}
	}
	if deaf && a.ID != 0 {
		w.after(w.delay(), func() { o.give(func(in *Inputs) { in.Bounced = append(in.Bounced, a.ID) }) })
	}
}

// delivered notes that a grant was answered.
func (o *owner) delivered(t *task, deaf bool) {
	if deaf {
		return
	}
	key := [2]uint64{uint64(t.id.Partition()), t.owner[1]}
	o.outstanding[key]--
	o.sentAt[key] = o.w.now
}

// works has a worker do a task.
func (w *world) works(t *task, encoded []byte) {
	if !bytes.Equal(encoded, t.encode()) || t.state != "running" {
		w.t.Fatalf("a worker got an attempt that is not current")
	}
	if t.worked {
		w.t.Fatalf("an attempt was given to two workers")
	}
	t.worked = true
	version := t.version
	if !w.ends {
		return
	}
	w.after(w.work(), func() {
		if t.state == "running" && t.version == version {
			w.over(t, "done")
		}
	})
}

// finish ends an attempt by hand.
func (w *world) finish(t *task) { w.over(t, "done") }

func (w *world) done() int {
	n := 0
	for _, t := range w.tasks {
		if t.state == "done" {
			n++
		}
	}
	return n
}
