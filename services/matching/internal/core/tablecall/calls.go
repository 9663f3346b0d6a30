package tablecall

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// TurnLooksMax is how many tasklists one turn looks at for triggers to take, and one domain more: all others wait meanwhile.
const TurnLooksMax = 1024

// List is a tasklist L: what calls ask of it, and what it learns of them.
type List interface {
	arrival.List
	// Called: a call that took its triggers has ended. Changed: its tables contain something else.
	Called()
	Changed()
	// Reconsider: there is nothing to wait for, for polls whose time is over.
	Reconsider()
}

// Config of Calls.
type Config[L List] struct {
	// Shard is the number of the shard, Shards how many there are, Epoch is that of its owner.
	Shard, Shards int
	Epoch         uint64
	// AnswerBytesMax bounds the tasks of one answer, PopMax the triggers that a call takes of a tasklist.
	AnswerBytesMax, PopMax int
	// Strict reports whether of a tasklist a more urgent priority goes first, however long others wait.
	Strict func(domain, tasklist string) bool
	// Last is the number of the poll that came last.
	Last func() uint64
	// Of is the tasklist that limits see, Source that of a tasklist.
	Of     func(l *limit.List) *Source[L]
	Source func(l L) *Source[L]
	// Retrigger has history send all triggers of a domain again.
	Retrigger func(domain string)
	// Policies is the turn as the policies of limits see it that are full.
	Policies *overflow.Turn
}

// Calls are those to the tables of all domains of a shard. Use NewCalls.
type Calls[L List] struct {
	cfg      Config[L]
	limits   *limit.Limits
	arrivals *arrival.Arrivals[L]
	now      time.Duration
	out      *Requests
	counts   *CallCounts
	// last counts the calls. busy are tables that may have something to be called for.
	last uint64
	busy []*Tables[L]
	// leaving: the shard is given up, so nothing more is taken.
	leaving bool
	// Taken are the triggers that came out of the tables in this turn.
	Taken []Taken[L]
}

// Requests go to the tables.
type Requests struct {
	// Calls come back as outcomes. At most one of a domain is under way. Until its outcome is an input, what a call refers to does not change.
	Calls []table.Call
	// Opens are domains to be opened.
	Opens []string
}

// Reset empties requests and keeps their memory.
func (r *Requests) Reset() {
	clear(r.Calls)
	*r = Requests{Calls: r.Calls[:0], Opens: r.Opens[:0]}
}

// CallCounts is what a turn has done with tables, for metrics.
type CallCounts struct {
	// Matches counts triggers that came out of the tables, Losses how often tables had lost their memory.
	Matches, Losses int64
	// Looks counts tasklists that were looked at for triggers to take.
	Looks int64
}

// Taken is triggers that came out of a table.
type Taken[L List] struct {
	List  L
	Chunk table.Chunk
	// Path is the limits of which slots were booked for them.
	Path *limit.Path
}

// NewCalls returns no calls.
func NewCalls[L List](cfg Config[L], limits *limit.Limits, arrivals *arrival.Arrivals[L]) Calls[L] {
	return Calls[L]{cfg: cfg, limits: limits, arrivals: arrivals}
}

// Begin begins a turn. Its effects are added to out and counts.
func (s *Calls[L]) Begin(now time.Duration, out *Requests, counts *CallCounts) {
	s.now, s.out, s.counts = now, out, counts
}

// Leave gives the shard up: nothing more is taken.
func (s *Calls[L]) Leave() { s.leaving = true }

// Busy counts the tables that may have something to be called for: the next turn is due at once.
func (s *Calls[L]) Busy() int { return len(s.busy) }

// CallAll calls the tables that need it, as far as one turn may look at tasklists. The others come first in the next one, which is due at once.
func (s *Calls[L]) CallAll() {
	i := 0
	for n := len(s.busy); i < n && s.counts.Looks < TurnLooksMax; i++ {
		t := s.busy[i]
		t.busy = false
		if t.call == nil && t.Open && !t.Forgotten {
			s.begin(t)
		}
	}
	s.busy = slices.Delete(s.busy, 0, i)
}

// begin makes one call out of everything that there is to say.
func (s *Calls[L]) begin(t *Tables[L]) {
	c := &Call[L]{calls: s, life: t.Life}
	n := min(len(t.clears), CallCandidatesMax)
	c.out.Clear = slices.Clone(t.clears[:n])
	if t.clears = slices.Delete(t.clears, 0, n); len(t.clears) == 0 { // or what is stored now would be forgotten
		n = min(len(t.puts), putChunksMax)
		c.puts = slices.Clone(t.puts[:n])
		t.puts = slices.Delete(t.puts, 0, n)
		for i := range c.puts { // the call takes after it stores
			l := s.cfg.Source(c.puts[i].List)
			l.stored(&c.puts[i])
			l.Of.Changed()
		}
		c.join()
	}
	t.StandDue(&c.Call)
	for _, l := range t.want(c) {
		l.Of.Reconsider()
		l.Of.Changed() // but polls, perhaps
	}
	s.counts.Looks += int64(c.looks)
	c.spills = t.Policies.Wants(*s.cfg.Policies, &c.Call, CallCandidatesMax-c.candidates)
	for i := range c.spills {
		c.out.Wants = append(c.out.Wants, c.spills[i].Want)
	}
	if len(c.out.Clear)+len(c.out.Put)+len(c.Limits)+len(c.out.Wants) == 0 {
		if c.cut {
			t.work()
		}
		return
	}
	c.out.Stances = s.limits.Stances(&c.Call)
	s.last++
	c.out.Domain, c.out.Epoch = t.Name, t.epoch
	c.out.Shard, c.out.Shards = s.cfg.Shard, s.cfg.Shards
	c.out.Seq = table.Seq{Epoch: s.cfg.Epoch, Call: s.last}
	t.call, t.Call = c, &c.Call
	s.out.Calls = append(s.out.Calls, c.out)
}

// Called takes in what became of a call; failed: it is not known whether it was carried out. A trigger that a failed call was to store meets a
// poll, or is released: should it have been stored too, the second of the two is a duplicate. Of the limits in freed other
// shards may try again, of those in restore they are to set their entries.
func (t *Tables[L]) Called(failed bool, o *table.Outcome) (freed, restore []table.Ref) {
	s, c := t.calls, t.call
	if c == nil {
		return nil, nil
	}
	t.call, t.Call = nil, nil
	c.over()
	for _, l := range c.sources {
		l.Of.Called()
	}
	switch {
	case failed:
		s.limits.NotMade(&c.Call)
		if c.life == t.Life {
			s.arrivals.All = append(s.arrivals.All, c.puts...)
		} else {
			s.arrivals.FinishAll(c.puts)
		}
		t.lost = true
		t.Fail()
	case o.Overtaken: // what it was to store is for the newer owner
		s.limits.NotMade(&c.Call)
		t.lost = true
		t.Fail()
	case o.Lost:
		s.counts.Losses++
		s.limits.NotMade(&c.Call)
		s.arrivals.FinishAll(c.puts) // the next life begins with asking for all
		t.open()
	default:
		s.arrivals.FinishAll(c.puts)
		c.learn(o)
		freed, restore = s.limits.Learn(&c.Call, o.Limits)
		for i := range o.Taken {
			if n := len(c.sources); c.life != t.Life {
				t.void(c, i, &o.Taken[i])
			} else if i < n {
				t.took(c, i, o)
			} else {
				t.spilled(c, &c.spills[i-n], &o.Taken[i], o.Limits)
			}
		}
		c.GiveUp()
	}
	for _, l := range c.sources {
		l.Of.Reconsider()
	}
	t.work()
	return freed, restore
}

// took keeps what a want got for the turn, and learns from it about the table.
func (t *Tables[L]) took(c *Call[L], i int, o *table.Outcome) {
	s, l, got := t.calls, c.sources[i], &o.Taken[i]
	progress := len(got.Blocked) > 0
	if len(got.Batches) > 0 {
		l.Index.EndTurn()
	}
	for _, b := range got.Batches {
		one := Taken[L]{List: l.Of, Chunk: b.Chunk, Path: limit.Unlimited}
		l.Ranks.Taken(&one.Chunk, l.Index.Shift(one.Chunk.Column))
		if b.Booked {
			one.Path = c.pathOf(i, &b)
		}
		s.Taken = append(s.Taken, one)
		s.counts.Matches += int64(one.Chunk.Len())
		if len(b.Ahead) > 0 {
			if rest := b.Rest(); !l.KeepAhead(c.FullOf(one.Path, o.Limits), rest) {
				s.arrivals.PutBack(l.Of, rest)
			}
		}
		progress = true
	}
	for _, b := range got.Blocked {
		lim := t.Limits[b.By]
		if lim != nil && !slices.ContainsFunc(got.Batches, func(one table.Batch) bool { return c.pathOf(i, &one).WaitsFor(lim) }) { // it keeps its place
			lim.KeepPlace(l.List)
		}
	}
	for j, h := range got.Heads {
		l.Saw(h)
		progress = progress || h.Empty
		if !h.Empty {
			s.limits.ParkBehind(c.paths[i][j], l.List, h.Column)
		}
	}
	if progress && !l.Index.Empty() { // there may be more for its polls
		t.Mark(l)
	}
	l.Of.Changed()
}

// void releases what a want got before the domain started over. Starts of rates that were taken for it come back.
func (t *Tables[L]) void(c *Call[L], i int, got *table.Taken) {
	for _, b := range got.Batches {
		t.calls.limits.Unstart(c.pathOf(i, &b).Rates, b.Len()*b.Starts(), t.calls.now)
	}
}

// spilled has what a want got rejected, or puts it back.
func (t *Tables[L]) spilled(c *Call[L], w *overflow.Want, got *table.Taken, states []table.LimitState) {
	s := t.calls
	l := s.cfg.Of(w.List)
	var chunks []table.Chunk
	for _, b := range got.Batches {
		chunks = append(chunks, b.Chunk)
	}
	for _, chunk := range t.Policies.Reject(*s.cfg.Policies, w.Limit, &c.Call, states, chunks) {
		s.arrivals.PutBack(l.Of, chunk)
	}
	for _, h := range got.Heads {
		l.Saw(h)
	}
	l.Of.Reconsider()
	l.Of.Changed()
}
