package dispatch

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Granted says which batch of a matching shard granted an attempt that may not have reached its worker. Shard is as in
// the log; Poll is nil if it is not known.
type Granted struct {
	Shard          uint32
	Epoch, Request uint64
	Poll           *Poll
}

// Batch is a message of a matching shard to the owner of a partition.
type Batch struct {
	shard          *shard
	epoch, request uint64
	polls          []Poll
	// took is how many bytes were granted to each of them; nil = none.
	took []int64
	// events is how many it has. free is room for its grants, which are made some at a time.
	events int
	free   []grant
}

// grantsMax is how many grants are made at a time, at most: one that stays keeps the memory of all of them.
const grantsMax = 16

// Batch is a batch of a matching shard, by its number in the log, that has so many events. The grants of batches up to
// delivered have been sent to their polls.
func (x *Shards) Batch(number uint32, epoch, request, delivered uint64, polls []Poll, events int) *Batch {
	b := &Batch{shard: x.shardOf(number), epoch: epoch, request: request, polls: polls, events: events}
	if delivered > 0 {
		b.shard.deliveriesOf(b.epoch).deliveredUpTo(delivered)
	}
	return b
}

// deliveriesOf are the deliveries of an owner.
func (s *shard) deliveriesOf(epoch uint64) *deliveries {
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
func (b *Batch) poll(ev *taskstate.Event) *Poll {
	if ev.Poll == 0 || uint64(ev.Poll) > uint64(len(b.polls)) {
		return nil
	}
	return &b.polls[ev.Poll-1]
}

// Fits tells whether a task of so many bytes fits into what the batch may yet grant to the poll of a grab.
func (b *Batch) Fits(ev *taskstate.Event, bytes int64) bool {
	p := b.poll(ev)
	if p == nil || p.BytesMax == 0 || b.took == nil {
		return true
	}
	took := b.took[ev.Poll-1]
	return took == 0 || took+bytes <= p.BytesMax
}

// Took notes that a task of so many bytes was granted to the poll of a grab, now or before.
func (b *Batch) Took(ev *taskstate.Event, bytes int64) {
	if b.poll(ev) == nil {
		return
	}
	if b.took == nil {
		b.took = make([]int64, len(b.polls))
	}
	b.took[ev.Poll-1] += bytes
}

// Granted notes that e was granted by a batch, to the poll that its event names.
func (x *Lists) Granted(e *Entry, b *Batch, ev *taskstate.Event) {
	x.GrantedTo(e, b.shard.number)
	b.granted(e, b.poll(ev))
}

func (b *Batch) granted(e *Entry, poll *Poll) {
	d := b.shard.deliveriesOf(b.epoch)
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

// Received notes that the attempt of e need not be delivered any more: its worker has been heard of, or it is over.
func (e *Entry) Received() {
	if g := e.grant; g != nil {
		g.of.link(g.before, g.after)
		e.grant, *g = nil, grant{} // its neighbours in memory must not keep tasks that have left
	}
}

// deliveredUpTo takes in up to which batch all has been sent to its polls.
func (d *deliveries) deliveredUpTo(request uint64) {
	d.delivered = max(d.delivered, request)
	for d.first != nil && d.first.grant.request <= d.delivered {
		d.first.Received()
	}
}

// BurnsNothing tells whether the running attempt of e may never have reached its worker: its shard has not said so in
// time. It may have lost its owner a moment ago, and no newer one has fenced yet; or it is paused.
func (e *Entry) BurnsNothing() bool {
	return e.grant != nil
}

// MayBeDelivered tells whether the shard that granted e's attempt may yet say that it was delivered.
func (e *Entry) MayBeDelivered() bool {
	return e.grant != nil && e.grant.of.epoch >= e.grant.of.shard.epoch
}

// SentAgain tells whether the grant of e has been asked for, to be sent again.
func (e *Entry) SentAgain() bool { return e.grant != nil && e.grant.reported }

// GrantedBy is what a snapshot says of the running attempt of e; nil = it has been received.
func (e *Entry) GrantedBy() *Granted {
	if e.grant == nil {
		return nil
	}
	g := e.grant
	return &Granted{Shard: g.of.shard.number, Epoch: g.of.epoch, Request: g.request, Poll: g.poll}
}

// GrantedBefore takes in what a snapshot says of the running attempt of e.
func (x *Shards) GrantedBefore(e *Entry, g *Granted) {
	if g != nil && e.State == taskstate.Running {
		b := &Batch{shard: x.shardOf(g.Shard), epoch: g.Epoch, request: g.Request}
		b.granted(e, g.Poll)
	}
}

// Undelivered hands out what the owners before epoch of a matching shard (by number) were granted and may not have
// delivered: ordered by task, those behind after, until take returns false, which says that it has not taken this one.
// An attempt that ends, as it says, is not among them, and what is taken here is not taken back because its verdict was
// not delivered.
func (x *Shards) Undelivered(number int, epoch uint64, after ids.TaskID, ends func(*taskstate.Task) bool, take func(*Poll, *taskstate.Task) bool) {
	s := x.by[uint32(number)+1]
	if s == nil {
		return
	}
	var all []*Entry
	for _, d := range s.owners {
		if d.epoch >= epoch {
			break
		}
		for e := d.first; e != nil; e = e.grant.after {
			if e.grant.poll != nil && bytes.Compare(e.ID[:], after[:]) > 0 && !ends(e.Task) {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Entry) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	for _, e := range all {
		if !take(e.grant.poll, e.Task) {
			return
		}
		e.grant.reported = true
	}
}

// NoteStart notes that e was granted by a trigger of a batch; nil = by none. A task that was ready well before it, and
// is not granted, has been passed over.
func (x *Lists) NoteStart(e *Entry, b *Batch) {
	if b == nil || int(b.shard.number) == e.column.pack.shard+1 { // else its trigger was in another partition before
		e.column.grantedReadyAt = max(e.column.grantedReadyAt, e.ReadySince())
	}
}

// ShardFence is the epoch below which what the owners of a matching shard say is void. Shard is its number plus one, as
// in the log.
type ShardFence struct {
	Shard uint32
	Epoch uint64
}

// shardOf is the shard with a number of the log.
func (x *Shards) shardOf(number uint32) *shard {
	s := x.by[number]
	if s == nil {
		s = &shard{number: number}
		x.by[number] = s
	}
	return s
}

// Superseded tells whether a newer owner of the shard has fenced the one that sent the batch.
func (b *Batch) Superseded() bool { return b.epoch < b.shard.epoch }

// Fence makes void what owners of the shard before that of the batch say, unless a newer one was there before. A fence
// of the present epoch is a repetition.
func (b *Batch) Fence() {
	if b.epoch > b.shard.epoch {
		b.shard.raise(b.epoch)
	}
}

func (s *shard) raise(epoch uint64) {
	s.epoch = epoch
	if len(s.owners) > ownersMax {
		s.owners = slices.DeleteFunc(s.owners, func(d *deliveries) bool { return d.first == nil && d.epoch < epoch })
	}
}

// ownersMax is how many owners of a shard are remembered that have delivered everything.
const ownersMax = 16

// Superseded tells whether a newer owner of a matching shard, by its number, has fenced the one of an epoch.
func (x *Shards) Superseded(number int, epoch uint64) bool {
	s := x.by[uint32(number)+1]
	return s != nil && s.epoch > epoch
}

// Fences are the newest fences of the matching shards, by shard.
func (x *Shards) Fences() (all []ShardFence) {
	for _, s := range x.by {
		if s.epoch > 0 {
			all = append(all, ShardFence{s.number, s.epoch})
		}
	}
	slices.SortFunc(all, func(a, b ShardFence) int { return cmp.Compare(a.Shard, b.Shard) })
	return all
}

// Raise takes in a fence that a snapshot has.
func (x *Shards) Raise(f ShardFence) { x.shardOf(f.Shard).raise(f.Epoch) }
