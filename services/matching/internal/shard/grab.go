package shard

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// lane is the way of grabs to one history partition: a few batches under way, the
// next one gathering.
type lane struct {
	partition int
	gather    []grab
	inFlight  int
	// events is the frame of the batch being encoded; kept, since it is large.
	events   []logv1.Event
	pointers []*logv1.Event
}

// grab is a trigger on its way to a poll.
type grab struct {
	trigger  ids.Trigger
	poll     *poll // nil once it is decided
	typ      string
	priority int
	readyAt  int64
	// takenAt is when it was matched and, where it is booked, no later than that.
	takenAt time.Time
	// life is the domain's when the booking was made.
	life   uint64
	booked bool
}

// batch is one message of events until history has answered it.
type batch struct {
	id    uint64
	lane  *lane
	data  []byte
	grabs []grab // none in a batch of hand-backs
	// undone are the given-up grabs among the hand-backs.
	undone []undone
	nonce  uint64
	// left counts grabs without a verdict.
	left    int
	firstAt time.Time
	sentAt  time.Time
}

// gather files grabs for a poll, to be sent when there is room on their way.
func (s *Shard) gather(p *poll, c table.Chunk, triggers []byte, booked bool) {
	for i := range len(triggers) / ids.TriggerBytes {
		t := ids.TriggerAt(triggers, i)
		at := t.ID.Partition()
		if at >= len(s.lanes) {
			s.Log.Warn("a trigger of a partition that does not exist was dropped", "task", t.ID.String())
			continue
		}
		s.lanes[at].gather = append(s.lanes[at].gather, grab{
			trigger: t, poll: p, typ: c.Type, priority: c.Priority, readyAt: c.ReadyAt,
			takenAt: s.now, life: p.list.domain.life, booked: booked,
		})
		p.pending++
	}
}

// sendGrabs sends what has gathered, where there is room.
func (s *Shard) sendGrabs() {
	for _, l := range s.lanes {
		for l.inFlight < s.Config.GrabsInFlight && len(l.gather) > 0 {
			s.sendBatch(l)
		}
	}
}

func (s *Shard) sendBatch(l *lane) {
	n := min(len(l.gather), s.Config.GrabEventsMax)
	now := time.Now() // calls to the tables may have taken long since the turn began
	b := &batch{lane: l, nonce: rand.Uint64(), firstAt: s.now, sentAt: s.now, grabs: make([]grab, 0, n)}
	for i := range l.gather[:n] {
		g := &l.gather[i]
		// A poll that is gone, or a booking too old to be sure of: not sent.
		if g.poll.answered || g.booked && now.Sub(g.takenAt) > bookingFresh {
			s.unsend(g)
			continue
		}
		g.poll.list.polls.remove(g.poll)
		b.grabs = append(b.grabs, *g)
	}
	rest := copy(l.gather, l.gather[n:])
	clear(l.gather[rest:])
	l.gather = l.gather[:rest]
	if len(b.grabs) == 0 {
		return
	}
	b.left = len(b.grabs)
	b.data = s.encodeGrabs(l, b)
	s.batches[b.id] = b
	l.inFlight++
	s.Metrics.GrabBatches.Add(1)
	s.publish(b)
}

// encodeGrabs writes the batch's events; the i-th has the i-th nonce.
func (s *Shard) encodeGrabs(l *lane, b *batch) []byte {
	for len(l.events) < len(b.grabs) {
		l.events = make([]logv1.Event, max(64, 2*len(l.events), len(b.grabs)))
		l.pointers = make([]*logv1.Event, len(l.events))
		for i := range l.events {
			l.pointers[i] = &l.events[i]
		}
	}
	for i := range b.grabs {
		g, e := &b.grabs[i], &l.events[i]
		e.Kind = logv1.EventKind_EVENT_KIND_STARTED
		e.TaskId = g.trigger.ID[:]
		e.Position = uint64(g.trigger.Position)
		e.Version = g.trigger.Version
		e.Nonce = b.nonce + uint64(i)
		e.Worker = g.poll.worker
		e.Booked = g.booked
	}
	m := s.newEvents()
	b.id = m.RequestId
	m.Events = l.pointers[:len(b.grabs)]
	return encode(&m)
}

func encode(m *logv1.EventBatch) []byte {
	data, err := m.MarshalVT()
	if err != nil {
		panic("shard: " + err.Error()) // only strings and numbers inside
	}
	return data
}

// publish sends a batch. Where that fails the missing verdict brings it up again.
func (s *Shard) publish(b *batch) {
	b.sentAt = s.now
	if err := s.Outbox.Events(b.lane.partition, b.data); err != nil {
		s.Log.Debug("send events", "partition", b.lane.partition, "error", err)
	}
	s.housekeepSoon()
}

// unsend takes back a grab that history has not heard of.
func (s *Shard) unsend(g *grab) {
	s.release(g)
	s.returnTrigger(g)
	s.undecided(g)
	s.again = !s.draining // the booking is released and the trigger stored by the next turn
}

// returnTrigger puts a grab's trigger back into the table, in its place.
func (s *Shard) returnTrigger(g *grab) { s.putBack = append(s.putBack, g.chunk()) }

func (g *grab) chunk() table.Chunk {
	return table.Chunk{
		Tasklist: g.poll.list.Tasklist, Column: table.Column{Priority: g.priority, Type: g.typ},
		ReadyAt: g.readyAt, Triggers: ids.AppendTrigger(nil, g.trigger),
	}
}

// undecided ends a grab without a verdict.
func (s *Shard) undecided(g *grab) {
	p := g.poll
	g.poll = nil
	p.pending--
	s.touch(p)
}

// release frees a grab's booking, which nobody else uses. Where the memory was lost
// since it was made, the booking of that name may be the attempt's own, restored
// from history; it is left alone.
func (s *Shard) release(g *grab) {
	d := g.poll.list.domain
	if !g.booked || d.life != g.life {
		return
	}
	a := s.account(d, g.typ)
	a.Release = append(a.Release, g.trigger.Booking()...)
}

// fence identifies the attempt that the i-th grab asks for.
func (b *batch) fence(i int) fence {
	g := &b.grabs[i]
	return fence{
		id: g.trigger.ID, version: g.trigger.Version, position: g.trigger.Position,
		nonce: b.nonce + uint64(i), domain: g.poll.list.domain,
	}
}

// close forgets a batch that is done with.
func (s *Shard) close(b *batch) {
	delete(s.batches, b.id)
	if len(b.grabs) > 0 {
		b.lane.inFlight--
	}
}

// resend repeats what history has not answered, or gives it up.
func (s *Shard) resend() {
	for _, b := range s.batches {
		if s.now.Sub(b.sentAt) < resendAfter {
			continue
		}
		switch {
		case len(b.grabs) == 0:
			if s.now.Sub(b.firstAt) >= handBackTimeout {
				s.handedBack(b, false)
				s.again = true
			} else {
				s.publish(b)
			}
		case s.now.Sub(b.firstAt) >= grabTimeout || !s.rebook(b):
			s.giveUp(b)
		default:
			s.publish(b)
		}
	}
}

// rebook makes sure that the bookings of a batch still count before it is sent
// again: a grab that arrives without one would break its limit.
func (s *Shard) rebook(b *batch) bool {
	byType := map[account]*table.Settlement{}
	until := s.now.Add(bookingTTL).UnixMilli()
	for i := range b.grabs {
		g := &b.grabs[i]
		if g.poll == nil || !g.booked {
			continue
		}
		at := account{g.poll.list.domain, g.typ}
		if byType[at] == nil {
			byType[at] = &table.Settlement{Domain: at.domain.name, Type: g.typ}
		}
		byType[at].Extend = append(byType[at].Extend, table.Extension{Member: g.trigger.Booking(), Until: until})
	}
	if len(byType) == 0 {
		return true
	}
	if !s.tablesUsable() {
		return false
	}
	all := make([]table.Settlement, 0, len(byType))
	for _, one := range byType {
		all = append(all, *one)
	}
	ctx, cancel := s.callContext()
	settled, err := s.Tables.Settle(ctx, all)
	cancel()
	if !s.called("rebook", err) {
		return false
	}
	for _, one := range settled {
		if len(one.Missing) > 0 {
			return false
		}
	}
	return true
}

// undone is a grab that was given up. Only when history has answered its hand-back
// is it sure that the grab itself, sent before, cannot be granted any more.
type undone struct {
	chunk  table.Chunk
	domain *domain
	life   uint64
	booked bool
}

// giveUp hands back whatever of a batch is undecided: if history grants it yet,
// nobody takes it.
func (s *Shard) giveUp(b *batch) {
	s.Log.Warn("history gave no verdict; grabs given up", "partition", b.lane.partition, "grabs", b.left)
	for i := range b.grabs {
		g := &b.grabs[i]
		if g.poll == nil {
			continue
		}
		s.handBack = append(s.handBack, handBack{
			fence: b.fence(i), undone: &undone{g.chunk(), g.poll.list.domain, g.life, g.booked},
		})
		s.undecided(g)
	}
	s.close(b)
	s.again = true
}

// handedBack ends a batch of hand-backs: what was never granted is ready still, and
// its trigger goes back into the table. Unless history has answered, bookings are
// left to lapse.
func (s *Shard) handedBack(b *batch, answered bool) {
	for _, u := range b.undone {
		s.putBack = append(s.putBack, u.chunk)
		if u.booked && answered && u.domain.life == u.life {
			a := s.account(u.domain, u.chunk.Type)
			a.Release = append(a.Release, u.chunk.Triggers[:ids.BookingBytes]...)
		}
	}
	s.close(b)
}

// handBack is an attempt that nobody holds.
type handBack struct {
	fence
	// undone is set where it may never have been granted.
	undone *undone
}

// sendHandBacks tells history of attempts that nobody holds.
func (s *Shard) sendHandBacks() {
	if len(s.handBack) == 0 {
		return
	}
	s.Metrics.HandedBack.Add(int64(len(s.handBack)))
	byLane := map[*lane][]handBack{}
	for _, h := range s.handBack {
		l := s.lanes[h.id.Partition()]
		byLane[l] = append(byLane[l], h)
	}
	clear(s.handBack)
	s.handBack = s.handBack[:0]
	for l, all := range byLane {
		for part := range slices.Chunk(all, s.Config.GrabEventsMax) {
			s.sendHandBack(l, part)
		}
	}
}

func (s *Shard) sendHandBack(l *lane, all []handBack) {
	m := s.newEvents()
	b := &batch{id: m.RequestId, lane: l, firstAt: s.now}
	for i := range all {
		h := &all[i]
		m.Events = append(m.Events, &logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_RELEASED, TaskId: h.id[:], Position: uint64(h.position),
			Version: h.version, Nonce: h.nonce, Domain: h.domain.name, Message: "no worker received it",
		})
		if h.undone != nil {
			b.undone = append(b.undone, *h.undone)
		}
	}
	b.data = encode(&m)
	s.batches[b.id] = b
	s.publish(b)
}
