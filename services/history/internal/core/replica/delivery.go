package replica

import (
	"bytes"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Poll is the poll that matching has grabbed for.
type Poll struct {
	// Domain is whose tasks it gets.
	Domain string
	Worker *taskstate.Worker
	// ReplyTo is the inbox in which it waits.
	ReplyTo string
	JSON    bool
}

// Granted says which batch of a matching shard granted an attempt that may not have reached its
// worker. Shard is as in the log; Poll is nil if it is not known.
type Granted struct {
	Shard          uint32
	Epoch, Request uint64
	Poll           *Poll
}

// batch is a message of a matching shard, with what it was granted.
type batch struct {
	shard          *shard
	epoch, request uint64
	polls          []Poll
	// events is how many it has.
	events int
	// grants are those that may not have been received; live counts those that still may
	// not. Entries point into it.
	grants []grant
	live   int
	// queued: it is in the deliveries of its owner.
	queued bool
}

// grant is an attempt that may not have reached its worker.
type grant struct {
	// entry is nil once that is known, or does not matter any more.
	entry *Entry
	poll  *Poll
	batch *batch
	// reported: its shard has asked for it, to send it again.
	told bool
}

// deliveries are what one owner of a shard may not have delivered: its batches, in the order of
// their numbers. It is not part of what owners of the partition have to agree about: what follows
// from it is proposed to the log.
type deliveries struct {
	epoch     uint64
	delivered uint64
	queue     []*batch
	head      int
	// slots is the room of the grants of all batches, live counts those that are in use.
	slots, live int
}

const (
	// slotsFirst is how many slots a batch gets at first, at most.
	slotsFirst = 128
	// slotsSpare is how many slots may be without use, besides as many as are in use, before those are
	// moved together.
	slotsSpare = 4096
)

// batchFrom is the message's batch, or nil if it is not of matching. Its reports about earlier ones are
// taken in.
func (r *Replica) batchFrom(in *Events) *batch {
	if in.Shard == 0 {
		return nil
	}
	b := &batch{shard: r.shardOf(in.Shard), epoch: in.Epoch, request: in.RequestID, polls: in.Polls, events: len(in.Events)}
	if in.Delivered > 0 {
		b.shard.of(b.epoch).deliveredUpTo(in.Delivered)
	}
	return b
}

// of are the deliveries of an owner.
func (s *shard) of(epoch uint64) *deliveries {
	i := len(s.owners)
	for i > 0 && s.owners[i-1].epoch > epoch {
		i--
	}
	if i > 0 && s.owners[i-1].epoch == epoch {
		return s.owners[i-1]
	}
	d := &deliveries{epoch: epoch}
	s.owners = slices.Insert(s.owners, i, d)
	return d
}

// poll is the poll of a grab; nil if it names none.
func (b *batch) poll(ev *taskstate.Event) *Poll {
	if ev.Poll == 0 || uint64(ev.Poll) > uint64(len(b.polls)) {
		return nil
	}
	return &b.polls[ev.Poll-1]
}

// granted notes that e was granted by a batch.
func (b *batch) granted(e *Entry, poll *Poll) {
	d := b.shard.of(b.epoch)
	if b.request <= d.delivered {
		return
	}
	if !b.queued {
		d.add(b)
	}
	if len(b.grants) == cap(b.grants) {
		d.move(b, max(min(b.events, slotsFirst), 2*b.live, 1))
	}
	b.grants = append(b.grants, grant{entry: e, poll: poll, batch: b})
	e.grant = &b.grants[len(b.grants)-1]
	b.live++
	d.live++
	d.compact()
}

// received notes that the attempt of e need not be delivered any more: its worker has been
// heard of, or it is over.
func (e *Entry) received() {
	if e.grant == nil {
		return
	}
	b := e.grant.batch
	*e.grant = grant{}
	e.grant = nil
	d := b.shard.of(b.epoch)
	b.live--
	d.live--
	for d.head < len(d.queue) && d.queue[d.head].live == 0 {
		d.pop()
	}
	d.compact()
}

// deliveredUpTo takes in up to which batch all has been sent to its polls.
func (d *deliveries) deliveredUpTo(request uint64) {
	d.delivered = max(d.delivered, request)
	for d.head < len(d.queue) && d.queue[d.head].request <= d.delivered {
		b := d.pop()
		for i := range b.grants {
			if e := b.grants[i].entry; e != nil {
				e.grant = nil
				d.live--
			}
		}
		b.grants, b.live = nil, 0
	}
}

// add puts a batch in its place.
func (d *deliveries) add(b *batch) {
	i := len(d.queue)
	for i > d.head && d.queue[i-1].request > b.request {
		i-- // a grab of it has waited for its task
	}
	d.queue = slices.Insert(d.queue, i, b)
	d.slots += cap(b.grants)
	b.queued = true
}

// pop takes the first batch out.
func (d *deliveries) pop() *batch {
	b := d.queue[d.head]
	d.queue[d.head] = nil
	d.head++
	d.slots -= cap(b.grants)
	b.queued = false
	switch {
	case d.head == len(d.queue):
		d.queue, d.head = d.queue[:0], 0
	case d.head > 1024 && d.head > len(d.queue)/2:
		d.queue = append(d.queue[:0:0], d.queue[d.head:]...)
		d.head = 0
	}
	return b
}

// move gives the grants of a queued batch that are in use slots of their own.
func (d *deliveries) move(b *batch, slots int) {
	to := make([]grant, 0, slots)
	for _, g := range b.grants {
		if g.entry != nil {
			to = append(to, g)
			g.entry.grant = &to[len(to)-1]
		}
	}
	d.slots += cap(to) - cap(b.grants)
	b.grants = to
}

// compact gives up the slots that are not in use, if they are too many.
func (d *deliveries) compact() {
	if d.slots <= 2*d.live+slotsSpare {
		return
	}
	kept := d.queue[:0]
	for _, b := range d.queue[d.head:] {
		if b.live == 0 {
			b.queued, b.grants = false, nil
			continue
		}
		d.move(b, b.live)
		kept = append(kept, b)
	}
	clear(d.queue[len(kept):])
	d.queue, d.head, d.slots = kept, 0, d.live
}

// burnsNothing tells whether the running attempt of e may never have reached its worker: its shard has not
// said so in time. It may have lost its owner a moment ago, and no newer one has fenced yet; or it is
// paused.
func (e *Entry) burnsNothing() bool {
	return e.grant != nil
}

// mayBeDelivered tells whether the shard that granted e's attempt may yet say that it was delivered.
func (e *Entry) mayBeDelivered() bool {
	return e.grant != nil && e.grant.batch.epoch >= e.grant.batch.shard.epoch
}

// grantedBy is what a snapshot says of the running attempt of e; nil = it has been received.
func (e *Entry) grantedBy() *Granted {
	if e.grant == nil {
		return nil
	}
	b := e.grant.batch
	return &Granted{Shard: b.shard.number, Epoch: b.epoch, Request: b.request, Poll: e.grant.poll}
}

// grantedBefore takes in what a snapshot says of the running attempt of e.
func (r *Replica) grantedBefore(e *Entry, g *Granted) {
	if g != nil && e.State == taskstate.Running {
		b := &batch{shard: r.shardOf(g.Shard), epoch: g.Epoch, request: g.Request}
		b.granted(e, g.Poll)
	}
}

// Undelivered is a grant that may not have reached its poll.
type Undelivered struct {
	Poll  Poll
	Grant Grant
}

// Undelivered hands out what the owners before epoch of a matching shard (by number) were granted and
// may not have delivered: ordered by task, those behind after, until take returns false, which says
// that it has not taken this one. An attempt that is on its way to be taken back is not among them, and
// what is taken here is not taken back because its verdict was not delivered.
func (r *Replica) Undelivered(number int, epoch uint64, after ids.TaskID, take func(*Undelivered) bool) {
	s := r.shards[uint32(number)+1]
	if s == nil {
		return
	}
	var all []*grant
	for _, d := range s.owners {
		if d.epoch >= epoch {
			break
		}
		for _, b := range d.queue[d.head:] {
			for i := range b.grants {
				if g := &b.grants[i]; g.entry != nil && g.again(after) {
					all = append(all, g)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b *grant) int { return bytes.Compare(a.entry.ID[:], b.entry.ID[:]) })
	for _, g := range all {
		if !take(&Undelivered{Poll: *g.poll, Grant: g.entry.granted()}) {
			return
		}
		g.told = true
	}
}

// again tells whether a grant behind a task can be sent again.
func (g *grant) again(after ids.TaskID) bool {
	const over = 1<<taskstate.Released | 1<<taskstate.Expired
	return g.poll != nil && g.entry.proposed&over == 0 && bytes.Compare(g.entry.ID[:], after[:]) > 0
}

// granted is the running attempt of e as its worker gets it.
func (e *Entry) granted() Grant {
	return Grant{Task: &e.Task, Token: e.Token(), DeadlineAt: e.Attempt.DeadlineAt}
}
