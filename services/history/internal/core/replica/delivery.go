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

// shardBatch is a message of a matching shard.
type shardBatch struct {
	shard          *shard
	epoch, request uint64
	polls          []Poll
	// events is how many it has. free is room for its grants, which are made some at a time.
	events int
	free   []grant
}

// grant is an attempt that may not have reached its worker.
type grant struct {
	// of has it, among those of the other batches; its own is of number request.
	of      *deliveries
	request uint64
	poll    *Poll
	// before and after are its neighbours there.
	before, after *Entry
	// reported: its shard has asked for it, to send it again.
	reported bool
}

// deliveries are the attempts that one owner of a shard may not have delivered, in the order of the numbers of its batches. It is
// not part of what owners of the partition have to agree about: what follows from it is proposed to the log.
type deliveries struct {
	shard            *shard
	epoch, delivered uint64
	first, last      *Entry
}

// grantsMax is how many grants are made at a time, at most: one that stays keeps the memory of all of them.
const grantsMax = 16

// batchFrom is the message's batch, or nil if it is not of matching. Its reports about earlier ones are
// taken in.
func (r *Replica) batchFrom(in *Events) *shardBatch {
	if in.Shard == 0 {
		return nil
	}
	b := &shardBatch{shard: r.shardOf(in.Shard), epoch: in.Epoch, request: in.RequestID, polls: in.Polls, events: len(in.Events)}
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
	d := &deliveries{shard: s, epoch: epoch}
	s.owners = slices.Insert(s.owners, i, d)
	return d
}

// poll is the poll of a grab; nil if it names none.
func (b *shardBatch) poll(ev *taskstate.Event) *Poll {
	if ev.Poll == 0 || uint64(ev.Poll) > uint64(len(b.polls)) {
		return nil
	}
	return &b.polls[ev.Poll-1]
}

// granted notes that e was granted by a batch.
func (b *shardBatch) granted(e *Entry, poll *Poll) {
	d := b.shard.of(b.epoch)
	if b.request <= d.delivered {
		return
	}
	if len(b.free) == 0 {
		b.free = make([]grant, max(1, min(b.events, grantsMax)))
	}
	g := &b.free[0]
	b.free = b.free[1:]
	*g = grant{of: d, request: b.request, poll: poll, before: d.last}
	for g.before != nil && g.before.grant.request > b.request { // the log has a later batch first
		g.before, g.after = g.before.grant.before, g.before
	}
	e.grant = g
	d.link(g.before, e)
	d.link(e, g.after)
}

// link makes two attempts neighbours; nil stands for the end.
func (d *deliveries) link(before, after *Entry) {
	if before == nil {
		d.first = after
	} else {
		before.grant.after = after
	}
	if after == nil {
		d.last = before
	} else {
		after.grant.before = before
	}
}

// received notes that the attempt of e need not be delivered any more: its worker has been
// heard of, or it is over.
func (e *Entry) received() {
	if g := e.grant; g != nil {
		g.of.link(g.before, g.after)
		e.grant, *g = nil, grant{} // its neighbours in memory must not keep tasks that have left
	}
}

// deliveredUpTo takes in up to which batch all has been sent to its polls.
func (d *deliveries) deliveredUpTo(request uint64) {
	d.delivered = max(d.delivered, request)
	for d.first != nil && d.first.grant.request <= d.delivered {
		d.first.received()
	}
}

// burnsNothing tells whether the running attempt of e may never have reached its worker: its shard has not
// said so in time. It may have lost its owner a moment ago, and no newer one has fenced yet; or it is
// paused.
func (e *Entry) burnsNothing() bool {
	return e.grant != nil
}

// mayBeDelivered tells whether the shard that granted e's attempt may yet say that it was delivered.
func (e *Entry) mayBeDelivered() bool {
	return e.grant != nil && e.grant.of.epoch >= e.grant.of.shard.epoch
}

// grantedBy is what a snapshot says of the running attempt of e; nil = it has been received.
func (e *Entry) grantedBy() *Granted {
	if e.grant == nil {
		return nil
	}
	g := e.grant
	return &Granted{Shard: g.of.shard.number, Epoch: g.of.epoch, Request: g.request, Poll: g.poll}
}

// grantedBefore takes in what a snapshot says of the running attempt of e.
func (r *Replica) grantedBefore(e *Entry, g *Granted) {
	if g != nil && e.State == taskstate.Running {
		b := &shardBatch{shard: r.shardOf(g.Shard), epoch: g.Epoch, request: g.Request}
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
	var all []*Entry
	for _, d := range s.owners {
		if d.epoch >= epoch {
			break
		}
		for e := d.first; e != nil; e = e.grant.after {
			if e.again(after) {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Entry) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for _, e := range all {
		if !take(&Undelivered{Poll: *e.grant.poll, Grant: e.granted()}) {
			return
		}
		e.grant.reported = true
	}
}

// again tells whether the grant of e, behind a task, can be sent again.
func (e *Entry) again(after ids.TaskID) bool {
	const over = 1<<taskstate.Released | 1<<taskstate.Expired
	return e.grant.poll != nil && e.proposed&over == 0 && bytes.Compare(e.ID[:], after[:]) > 0
}

// granted is the running attempt of e as its worker gets it.
func (e *Entry) granted() Grant {
	return Grant{Task: &e.Task, Token: e.Token(), DeadlineAt: e.Attempt.DeadlineAt}
}
