package grab

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/doubles"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// ResendAfter is how long a verdict may take before its batch is sent again.
const ResendAfter = limit.UnusedMax

// Config of Lanes.
type Config struct {
	// Partitions is how many history partitions there are.
	Partitions int
	// InFlightMax is how many batches of grabs a partition may have under way, EventsMax how many events a batch has.
	InFlightMax, EventsMax int
	// AnswerBytesMax bounds the tasks of one answer, in encoded bytes.
	AnswerBytesMax int
	// Nonce returns the number from which the nonces of a batch are counted.
	Nonce func() uint64
}

// Lanes are the ways to the history partitions. L is a tasklist of the shard.
type Lanes[L any] struct {
	cfg    Config
	all    []*lane[L]
	now    time.Duration
	out    *Effects
	counts *Counts
	// last are the last grabs.
	last doubles.Set
	// fenced: a fence was applied, the first one at fencedAt.
	fenced   bool
	fencedAt time.Duration
	// draining: the shard is given up. forced: nothing is waited for any more.
	draining, forced bool
}

// New returns the ways of a new owner.
func New[L any](cfg Config) Lanes[L] {
	s := Lanes[L]{cfg: cfg, all: make([]*lane[L], cfg.Partitions)}
	for p := range s.all {
		s.all[p] = &lane[L]{partition: p, inFlightMax: cfg.InFlightMax, eventsMax: cfg.EventsMax}
	}
	return s
}

// Begin begins a turn. Its effects are added to out and counts.
func (s *Lanes[L]) Begin(now time.Duration, out *Effects, counts *Counts) {
	s.now, s.out, s.counts = now, out, counts
}

// SendFences announces this owner to every partition.
func (s *Lanes[L]) SendFences() {
	for _, l := range s.all {
		b := &batch[L]{left: 1}
		b.out.Fence = true
		l.add(b, s.now)
		s.publish(b)
	}
}

// FencedAt is when the first fence was applied; ok: one was.
func (s *Lanes[L]) FencedAt() (at time.Duration, ok bool) { return s.fencedAt, s.fenced }

// Asked is what became of a request at first.
type Asked uint8

// The results of Ask.
const (
	// Gathered: it goes with the next batch.
	Gathered Asked = iota
	// Malformed: its partition does not exist. Duplicate: it was made before.
	Malformed
	Duplicate
	// SetAside: its partition is silent, and its trigger is set aside. Dropped: there are too many, or it was made before.
	SetAside
	Dropped
)

// Ask has history asked for a trigger; packed is that trigger.
func (s *Lanes[L]) Ask(r Request[L], packed []byte) Asked {
	at := r.Trigger.ID.Partition()
	if at >= len(s.all) {
		return Malformed
	}
	print, l := doubles.Print(packed), s.all[at]
	switch {
	case l.budget() <= 0:
		if !s.last.Has(print) && l.keep(&r) {
			return SetAside
		}
		return Dropped
	case !s.last.Add(print):
		return Duplicate
	}
	l.gather = append(l.gather, r)
	return Gathered
}

// Made reports whether a grab of a packed trigger was made recently.
func (s *Lanes[L]) Made(packed []byte) bool { return s.last.Has(doubles.Print(packed)) }

// Silence is what follows from the silence of partitions, and from its end.
type Silence[L any] struct {
	Ends []End[L]
	// Back are triggers that were set aside, and are to be matched again. Lost are partitions of which some were forgotten.
	Back []table.Chunk
	Lost []int
}

// Listen finds out which partitions are silent.
func (s *Lanes[L]) Listen() (found Silence[L]) {
	for _, l := range s.all {
		l.silent = len(l.flight) > 0 && s.now >= l.silentAt()
		switch {
		case l.silent:
			found.Ends = s.silence(l, found.Ends)
		case l.open:
			found.Back = append(found.Back, l.aside...)
			l.aside, l.asideN = nil, 0
			if l.dropped {
				l.dropped = false
				found.Lost = append(found.Lost, l.partition)
			}
		}
	}
	return found
}

// silence has polls wait no more for a silent partition.
func (s *Lanes[L]) silence(l *lane[L], ends []End[L]) []End[L] {
	for _, b := range l.flight {
		if b.detached || s.now < b.firstAt+DetachAfter {
			continue
		}
		b.detached = true
		for i := range b.grabs {
			if r := &b.grabs[i]; !r.decided {
				r.detached = true
				ends = append(ends, End[L]{Request: *r, Detach: true})
			}
		}
	}
	for i := range l.gather { // behind batches that are not answered, or at rest
		end := s.unsent(&l.gather[i])
		end.Aside = l.keep(&l.gather[i])
		ends = append(ends, end)
	}
	clear(l.gather)
	l.gather = l.gather[:0]
	return ends
}

// unsent ends a request that history has not received.
func (s *Lanes[L]) unsent(r *Request[L]) End[L] {
	s.last.Forget(r.Trigger)
	return End[L]{Request: *r, Detach: true, Over: true, Free: true}
}

// Send sends the grabs that have gathered, where a batch more may be under way. It returns those of polls that were answered meanwhile.
func (s *Lanes[L]) Send() (ends []End[L]) {
	for _, l := range s.all {
		for l.open && l.grabs < l.inFlightMax && len(l.gather) > 0 && l.rested(s.now) {
			ends = s.sendGrabs(l, ends)
		}
	}
	return ends
}

// sendGrabs sends one batch of grabs.
func (s *Lanes[L]) sendGrabs(l *lane[L], ends []End[L]) []End[L] {
	n := min(len(l.gather), l.eventsMax)
	b := &batch[L]{nonce: s.cfg.Nonce(), grabs: make([]Request[L], 0, n)}
	b.out.Grabs = make([]Grab, 0, n)
	at := map[*Poll[L]]int{}
	for i := range l.gather[:n] {
		r := &l.gather[i]
		if r.Poll.Answered { // it got something else meanwhile
			end := s.unsent(r)
			end.Again = true
			ends = append(ends, end)
			continue
		}
		r.Poll.LeaveLine()
		ref := b.ref(r, at)
		b.out.Polls[ref].BytesMax += pairing.AnswerBytes(r.Poll.JSON, s.cfg.AnswerBytesMax) / r.Poll.Asked
		b.grabs = append(b.grabs, *r)
		b.out.Grabs = append(b.out.Grabs, Grab{Trigger: r.Trigger, Nonce: b.nonceOf(len(b.grabs) - 1), Path: r.From.Path, Poll: ref})
	}
	l.gather = slices.Delete(l.gather, 0, n)
	if len(b.grabs) == 0 {
		return ends
	}
	b.left = len(b.grabs)
	l.grabs++
	l.undecided += b.left
	s.counts.GrabBatches++
	l.add(b, s.now)
	s.publish(b)
	return ends
}

// ref is the index of a request's poll among the batch's, of which at has those that it names.
func (b *batch[L]) ref(r *Request[L], at map[*Poll[L]]int) int {
	p := r.Poll
	i, ok := at[p]
	if !ok {
		i = len(b.out.Polls)
		at[p] = i
		b.out.Polls = append(b.out.Polls, PollRef{Domain: r.From.Domain, Worker: p.Worker, WorkerID: p.WorkerID, ReplyTo: p.ReplyTo, JSON: p.JSON, Max: p.Max})
	}
	return i
}

// publish sends a batch, for the first time or again.
func (s *Lanes[L]) publish(b *batch[L]) {
	l := b.lane
	b.sentAt = s.now
	b.copies++
	out := b.out
	out.Delivered = l.delivered
	l.reportedAt, l.unreported = s.now, false
	s.out.Batches = append(s.out.Batches, out)
}

// Resend repeats what history has not answered. It is never given up: what became of
// a batch must be known, or what it granted would be lost.
func (s *Lanes[L]) Resend() {
	for _, l := range s.all {
		for _, b := range l.flight {
			if s.now-b.sentAt >= ResendAfter {
				s.publish(b)
			}
		}
	}
}

// Undecided calls f with the requests that may come to run.
func (s *Lanes[L]) Undecided(f func(r *Request[L])) {
	for _, l := range s.all {
		for i := range l.gather {
			f(&l.gather[i])
		}
		for _, b := range l.flight {
			for i := range b.grabs {
				if !b.grabs[i].decided {
					f(&b.grabs[i])
				}
			}
		}
	}
}

// Withdraw ends the requests that gather and for which out is true.
func (s *Lanes[L]) Withdraw(out func(r *Request[L]) bool) (ends []End[L]) {
	for _, l := range s.all {
		l.gather = slices.DeleteFunc(l.gather, func(r Request[L]) bool {
			if !out(&r) {
				return false
			}
			ends = append(ends, s.unsent(&r))
			return true
		})
	}
	return ends
}

// ForgetAside forgets the triggers of a domain that are set aside.
func (s *Lanes[L]) ForgetAside(domain string) {
	for _, l := range s.all {
		l.aside = slices.DeleteFunc(l.aside, func(c table.Chunk) bool {
			if c.Domain == domain {
				l.asideN -= c.Len()
			}
			return c.Domain == domain
		})
	}
}

// MayAsk reports whether a partition is fenced, and has decided the batches of grabs up to a number.
func (s *Lanes[L]) MayAsk(partition int, after uint64) bool {
	l := s.all[partition]
	return l.open && (after == 0 || !slices.ContainsFunc(l.flight, func(b *batch[L]) bool { return b.out.Number <= after && len(b.grabs) > 0 }))
}

// LastBatch is the number of the last batch of a partition.
func (s *Lanes[L]) LastBatch(partition int) uint64 { return s.all[partition].number }

// Busy reports whether something is under way, or about to be.
func (s *Lanes[L]) Busy() bool { return slices.ContainsFunc(s.all, (*lane[L]).busy) }

// Wake is when something is due that no message brings about.
func (s *Lanes[L]) Wake(w time.Duration) time.Duration {
	for _, l := range s.all {
		w = l.wake(w)
	}
	return w
}

// Census counts what Lanes hold: grabs that are gathered or undecided, hand-backs that history does not know of, triggers that are set aside,
// and batches of which some grants may not have been received.
func (s *Lanes[L]) Census() (grabs, handBacks, aside, receipts int) {
	for _, l := range s.all {
		grabs += len(l.gather) + l.undecided
		handBacks += len(l.handBacks) + l.backs
		aside += l.asideN
		receipts += len(l.receipts)
	}
	return grabs, handBacks, aside, receipts
}

// Leave gives the shard up: it returns the requests that history has not received, and the triggers and stops that are to go back.
func (s *Lanes[L]) Leave() (ends []End[L], aside []table.Chunk, stops []StopRequest) {
	s.draining = true
	ends = s.Withdraw(func(*Request[L]) bool { return true })
	for i := range ends {
		ends[i].Again = true
	}
	for _, l := range s.all {
		aside = append(aside, l.aside...)
		l.aside, l.asideN = nil, 0
		stops = append(stops, l.stops...)
		l.stops, l.stopsOf = nil, nil
	}
	return ends, aside, stops
}

// UnderWay reports whether something may still come of waiting.
func (s *Lanes[L]) UnderWay() bool {
	return slices.ContainsFunc(s.all, func(l *lane[L]) bool {
		return l.undecided > 0 || l.backs > 0 || len(l.handBacks) > 0 || l.stopping > 0
	})
}

// GrantedBefore is an attempt that an owner before was granted: as if this one had been, but history waits for no receipt of it.
func (s *Lanes[L]) GrantedBefore(g *Undelivered) (Grant, bool) {
	t := g.Trigger
	if t.ID.Partition() >= len(s.all) {
		return Grant{}, false
	}
	return Grant{Task: g.Task, of: &receipt{unconfirmed: 1}, attempt: HandBack{
		ID: t.ID, Version: t.Version, Position: t.Position, Nonce: g.Nonce, Domain: g.Domain,
	}}, true
}
