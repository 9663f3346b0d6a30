package waiting

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
)

const (
	// GrantedWait is how long a poll with a grant waits for the verdicts on its other grabs, whose partition is not silent.
	GrantedWait = time.Second
	// PollGrace is how long past its time a poll waits for what is under way.
	PollGrace = 2 * time.Second
	// WastedRounds is how often a poll whose time is over tries again after all its grabs were refused.
	WastedRounds = 3
)

// Tasklist is what a poll asks of its tasklist L.
type Tasklist[L any] interface {
	// Resume looks for triggers for a poll that waits, or waits again.
	Resume()
	// MayStillGet reports whether the tables have yet to be asked for a poll whose time is over, once.
	MayStillGet(p *grab.Poll[L]) bool
	// UpAt is when a poll goes to the parent partition if it finds nothing until then; ok is false if it does not go there, and
	// need not be looked at. MoveUp sends it there.
	UpAt(p *grab.Poll[L]) (at time.Duration, ok bool)
	MoveUp(p *grab.Poll[L])
	// Left notes that a poll does not wait here any more.
	Left()
}

// HandBacks has attempts handed back to history. confirms: then their grants count as received.
type HandBacks interface {
	TakeAllBack(all []grab.Grant, confirms bool)
}

// Config of Waiting.
type Config struct {
	// PollsMax is how many polls may wait.
	PollsMax int
	// AnswerBytesMax bounds the tasks of one answer, in encoded bytes.
	AnswerBytesMax int
}

// Waiting is the polls of a shard that are not answered, and the answers that may turn out to be undelivered. Use New.
type Waiting[L Tasklist[L]] struct {
	cfg       Config
	now       time.Duration
	out       *Replies
	counts    *PollCounts
	handBacks HandBacks
	polls     pairing.Polls[L, grab.Grant]
	pollers   report.Pollers
	answers
	// leaving: the shard is given up, so no poll waits for anything but its grabs.
	leaving bool
}

// New returns no polls. The IDs of answers follow last.
func New[L Tasklist[L]](cfg Config, last uint64, now time.Duration, handBacks HandBacks) Waiting[L] {
	return Waiting[L]{
		cfg: cfg, now: now, handBacks: handBacks, polls: pairing.NewPolls[L, grab.Grant](),
		pollers: report.NewPollers(now),
		answers: answers{lastID: last, byID: map[uint64]*sent{}, byInbox: map[string]*sent{}, found: map[string]*sent{}},
	}
}

// Begin begins a turn. Its effects are added to out and counts. If the shard was stopped before, the report that there was no subscriber may only come now.
func (s *Waiting[L]) Begin(now time.Duration, out *Replies, counts *PollCounts) {
	if now-s.now >= StoppedAfter {
		for _, one := range s.queue[s.confirmed:] {
			one.at = now
		}
	}
	s.now, s.out, s.counts = now, out, counts
}

// Len counts the polls that are not answered.
func (s *Waiting[L]) Len() int { return s.polls.Len() }

// Last is the number of the poll that came last.
func (s *Waiting[L]) Last() uint64 { return s.polls.Last() }

// Pollers are up to limit workers that polled a tasklist, behind the one called after; from the first, if that is empty.
func (s *Waiting[L]) Pollers(domain, tasklist, after string, limit int, now time.Duration) report.Page {
	return s.pollers.Page(domain, tasklist, after, limit, now)
}

// Serving is who polled a tasklist recently for tasks of a type.
func (s *Waiting[L]) Serving(domain, tasklist, typ string, now time.Duration) report.Serving {
	return s.pollers.Serving(domain, tasklist, typ, now)
}

// Watchful reports whether something may become due before long.
func (s *Waiting[L]) Watchful() bool { return s.polls.Len() > 0 || len(s.byID) > 0 }

// UnderWay reports whether a poll is not answered, or an answer does not count as received.
func (s *Waiting[L]) UnderWay() bool { return s.polls.Len() > 0 || s.unconfirmed() }

// Wake is when something is due that no message brings about.
func (s *Waiting[L]) Wake(w time.Duration) time.Duration {
	if s.unconfirmed() && s.now < s.provableAt() { // where a round trip is under way, its end is a turn
		w = min(w, s.provableAt())
	}
	if p, ok := s.polls.Next(); ok {
		w = min(w, p.At())
	}
	return w
}

// Grant adds an attempt to the poll that it was asked for, or hands it back.
func (s *Waiting[L]) Grant(p *grab.Poll[L], g grab.Grant) {
	if p.Answered || len(p.Granted) >= p.Max {
		s.handBacks.TakeAllBack([]grab.Grant{g}, true)
		return
	}
	p.Granted = append(p.Granted, g)
	if len(p.Granted) == 1 {
		s.polls.Look(p, min(s.now+GrantedWait, p.Until+PollGrace))
	}
	s.polls.Touch(p)
}

// Detach notes that a poll waits for one grab less.
func (s *Waiting[L]) Detach(p *grab.Poll[L]) {
	p.Pending--
	s.polls.Touch(p)
}

// Finish answers the polls whose grabs have all been decided, or are not waited for, or has them wait again.
func (s *Waiting[L]) Finish() {
	s.polls.EachTouched(func(p *grab.Poll[L]) {
		switch {
		case p.Answered || p.Pending > 0:
		case len(p.Granted) > 0 || s.leaving:
			s.answer(p)
		case p.Until > s.now:
			s.resume(p)
		case p.Rounds < WastedRounds: // the tables are asked once more, then it ends
			p.Rounds++
			s.resume(p)
			s.polls.Look(p, s.now)
		default:
			s.answer(p)
		}
	})
}

// resume puts a poll that got nothing back into its place.
func (s *Waiting[L]) resume(p *grab.Poll[L]) {
	p.LookBy, p.Asked = 0, 0
	p.EnterLine()
	p.List.Resume()
}

// Expire looks at the polls that have waited for long enough.
func (s *Waiting[L]) Expire() {
	for {
		p, ok := s.polls.Next()
		if !ok || p.At() > s.now {
			return
		}
		if !s.moveUp(p) {
			s.expire(p)
		}
	}
}

// expire looks at a poll whose time is over, or whose first grant has waited for the verdicts on its other grabs for long enough. Those of a silent
// partition are not waited for.
func (s *Waiting[L]) expire(p *grab.Poll[L]) {
	switch {
	case s.now >= p.Until+PollGrace, len(p.Granted) > 0:
		s.answer(p)
	case p.Pending > 0:
		s.polls.Look(p, p.Until+PollGrace)
	case !s.leaving && p.List.MayStillGet(p):
		p.Overdue()
		s.polls.Look(p, p.Until+PollGrace)
	default:
		s.answer(p)
	}
}

// moveUp sends a poll that has found nothing here for long enough to the parent partition. It returns false where it is not
// to be moved, nor looked at before its end.
func (s *Waiting[L]) moveUp(p *grab.Poll[L]) bool {
	at, ok := p.List.UpAt(p)
	switch {
	case !ok || s.leaving:
		return false
	case at > s.now:
		s.polls.Look(p, at)
		return true
	}
	s.counts.PollsUp++
	s.End(p)
	p.List.MoveUp(p)
	return true
}

// Reconsider looks at the polls of a tasklist whose time is over, and that only waited for the tables to be asked once more.
func (s *Waiting[L]) Reconsider(q *pairing.Queue[L, grab.Grant]) {
	q.EachOverdue(func(p *grab.Poll[L]) {
		if !p.Answered && p.Pending == 0 {
			s.polls.Look(p, s.now)
		}
	})
}

// End forgets a poll that is about to be answered, or given up.
func (s *Waiting[L]) End(p *grab.Poll[L]) {
	p.LeaveTasklist()
	p.By.Wait(-1)
	s.polls.Remove(p)
	p.List.Left()
}

// Silence ends the polls of workers that send no more signs of life, so that no more tasks are granted to them. One whose grabs are under
// way is answered, too: what they bring is handed back. A worker that lives polls again.
func (s *Waiting[L]) Silence(all []SilentWorker) {
	if len(all) == 0 {
		return
	}
	silent := make(map[SilentWorker]bool, len(all))
	for _, w := range all {
		silent[w] = true
	}
	var ended []*grab.Poll[L]
	for _, p := range s.polls.All() {
		if p.WorkerID != "" && silent[SilentWorker{p.Domain(), p.WorkerID}] {
			ended = append(ended, p)
		}
	}
	slices.SortFunc(ended, pairing.Compare[L, grab.Grant])
	for _, p := range ended {
		s.answer(p)
	}
}

// Leave gives the shard up: polls wait for nothing but the grabs that are under way.
func (s *Waiting[L]) Leave() {
	s.leaving = true
	for _, p := range s.polls.All() {
		s.polls.Touch(p)
	}
	s.Finish()
}

// Force answers all polls.
func (s *Waiting[L]) Force() {
	for p, ok := s.polls.Next(); ok; p, ok = s.polls.Next() {
		s.answer(p)
	}
}
