package match

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Partitions of a tasklist form a tree. Only polls travel in it, through the frontend that each came from: up, where they find nothing, and
// down, where they are wanted. See contracts/decisions, number 30.
const (
	// upAfter is after how long without a trigger a partition is quiet: polls go up at once, but those that another partition gave up wait
	// as long, lest they go round. upBusyAfter is how long a poll waits in another one, and where triggers wait for slots: their
	// partition has a place in a line, which it keeps with it. upDownAfter is when it is looked at
	// again where the tables do not answer: triggers meet polls of their own partition only. upBackAfter is how long one stays that came back.
	upAfter     = 10 * time.Millisecond
	upBusyAfter = 100 * time.Millisecond
	upDownAfter = time.Second
	upBackAfter = time.Second
	// newsEvery bounds how often a partition tells its parent of news, newsManyEvery while polls are wanted for newsMany triggers, which one
	// message is enough for. newsAgain is when it repeats them. They count for newsFor.
	newsEvery     = 10 * time.Millisecond
	newsManyEvery = 100 * time.Millisecond
	newsMany      = 100
	newsAgain     = time.Second
	newsFor       = 2500 * time.Millisecond
	// loadEvery is how often frontends hear what waits.
	loadEvery = time.Second
	// wantedMax is how many types one message names as wanted, half of them in turn; wantedLooksMax how many a partition looks at for that.
	wantedMax, wantedLooksMax = 16, 1024
	// loadTypesMax is how many types frontends hear of.
	loadTypesMax = 16
	// sparedLooksMax is how many polls of a line are looked at for one that may be sent down.
	sparedLooksMax = 32
	// movedFor is for how long it may turn out that no frontend took a poll that was given up, where no round trip shows that one did.
	movedFor = grab.RepeatWithin
)

// Move is a poll that is given up to its frontend, to be sent to another partition of its tasklist.
type Move struct {
	// Poll is the poll's ID.
	Poll      uint64
	Partition int
}

// Branch is what a partition other than the first tells its parent.
type Branch struct {
	table.Tasklist
	// Present are types that it or a partition below it holds, presentMax of them at most.
	Present []string
	// Wanted is what polls are wanted for, most urgent first, wantedMax at most.
	Wanted []Wanted
}

// Wanted is triggers of one column that wait for a poll.
type Wanted struct {
	table.Column
	// ReadyAt is when the first became ready, Unix µs.
	ReadyAt int64
	// Limited: they need slots or starts too, which they may not get: one poll is enough.
	Limited bool
	// Triggers is how many there are, as far as is known, at least 1.
	Triggers int
}

func (w Wanted) compare(o Wanted) int {
	return cmp.Or(cmp.Compare(w.Priority, o.Priority), cmp.Compare(w.ReadyAt, o.ReadyAt))
}

// Load is what frontends hear of a partition of a tasklist that has several, or may get them.
type Load struct {
	table.Tasklist
	// Triggers wait, of Types and perhaps of others. PerSecond came in a second since the last time.
	Triggers  int
	Types     []string
	PerSecond float64
}

// tree is what a tasklist's partition knows of those above and below it.
type tree struct {
	// cameAt is when triggers came last, came counts those since loadAt, when frontends last heard.
	cameAt, loadAt time.Duration
	came           int
	// below are the partitions that have said something within newsFor, in the order of their numbers.
	below []below
	// spread: the tasklist has several partitions, or may get them. kept: it is not to be forgotten.
	spread, kept bool
	// watched: frontends hear what waits. remains: a poll was answered that has left some of it, which they have not heard.
	watched, remains bool
	// asks is what the call under way takes, and asked the last poll that it takes it for.
	asks  []table.Want
	asked uint64
	// namedAt is where the turn of the less urgent types is that polls are wanted for.
	namedAt int
	// news: in Shard.news. saidAt is when its parent last heard, wanted that polls were wanted then. passes: in turn.passing.
	news, wanted, passes bool
	saidAt               time.Duration
	// said is for how many triggers polls were wanted then.
	said int
}

// below is a partition below another one.
type below struct {
	Branch
	at time.Duration
}

// watchMove has a new poll of a partition below another looked at, in this turn already.
func (s *Shard) watchMove(p *poll) {
	if p.List.Partition > 0 && p.ID != 0 {
		s.polls.Look(p, min(p.Until, s.now.Mono))
	}
	s.offer(p.List)
}

// moveUp gives a poll up that has found nothing here for long enough; its parent may know of more. It returns false where it
// is not to be moved, nor looked at before its end.
func (s *Shard) moveUp(p *poll) bool {
	l, now := p.List, s.now.Mono
	if l.Partition == 0 || p.ID == 0 || len(p.Granted) > 0 || now >= p.Until || s.drain.on {
		return false
	}
	due := p.Since + upBusyAfter
	switch {
	case l.domain.down:
		due = now + upDownAfter
	case !p.Movable(now):
		due = now + upAfter
	case p.Back:
		due = p.Since + upBackAfter
	case l.WaitsForSlot():
	default:
		due = min(due, l.quietFor(p))
	}
	if due <= now && l.mayGet(p) {
		due = now + upAfter
	}
	if due > now {
		s.polls.Look(p, min(due, p.Until))
		return true
	}
	s.fx.Counts.PollsUp++
	s.move(p, ids.ParentPartition(l.Partition), table.Column{})
	return true
}

// quietFor is when a poll goes up, if no trigger comes.
func (l *list) quietFor(p *poll) time.Duration {
	at := p.Since
	if p.Moved {
		at += upAfter
	}
	if l.cameAt > 0 {
		at = max(at, l.cameAt+upAfter)
	}
	return at
}

// mayGet tells whether a poll may yet get something of its own partition: a call to the tables that is under way, or the next one, takes
// what it accepts.
func (l *list) mayGet(p *poll) bool {
	return l.domain.state == opening || l.asksFor(p) ||
		l.dirty && len(l.index.CandidatesOf(p.Types, 0, 1, l.Unavailable)) > 0
}

// asksFor tells whether the call under way takes triggers that a poll accepts.
func (l *list) asksFor(p *poll) bool {
	return l.asking && slices.ContainsFunc(l.asks, func(w table.Want) bool {
		return slices.ContainsFunc(w.Candidates, func(c table.Candidate) bool { return p.Accepts(c.Type) })
	})
}

// move gives a poll up to its frontend, which sends it to another partition: to one below for triggers of a column.
func (s *Shard) move(p *poll, to int, wanted table.Column) {
	s.end(p)
	s.fx.Moves = append(s.fx.Moves, Move{Poll: p.ID, Partition: to})
	s.moved = append(s.moved, movedPoll{p, s.now.Mono, to, wanted})
}

// movedPoll is a poll that was given up.
type movedPoll struct {
	poll   *poll
	at     time.Duration
	to     int
	wanted table.Column
}

// takeMoved is a poll that was given up just now, and is not remembered any more; or nil.
func (s *Shard) takeMoved(id uint64) *movedPoll {
	i := slices.IndexFunc(s.moved, func(m movedPoll) bool { return m.poll.ID == id })
	if i < 0 {
		return nil
	}
	m := s.moved[i]
	s.moved = slices.Delete(s.moved, i, i+1)
	return &m
}

// unmoved takes a poll back that no frontend took. It stays, and has no one to be given up to.
func (s *Shard) unmoved(id uint64) {
	m := s.takeMoved(id)
	if m == nil {
		return
	}
	old := m.poll
	for i := range old.List.below {
		if w := old.List.below[i].wanted(m.wanted); w != nil && old.List.below[i].Partition == m.to { // another one is wanted
			w.Triggers += old.Max
		}
	}
	s.arrivePoll(&Poll{
		Domain: old.List.Domain, Tasklist: old.List.Name, Partition: old.List.Partition, Max: old.Max, Types: old.Types,
		Worker: old.Worker, WorkerID: old.WorkerID, Version: old.By.Version(), ReplyTo: old.ReplyTo, JSON: old.JSON, For: old.Until - s.now.Mono, Moved: true,
	})
}

// unprovenMoves tells whether a round trip would show that polls were taken that were given up, or that the connection broke.
func (s *Shard) unprovenMoves() bool {
	return len(s.moved) > 0 && s.now.Mono-s.moved[0].at >= grab.HeardAfter
}

// forgetMoved forgets the polls that were taken.
func (s *Shard) forgetMoved() {
	n := 0
	for n < len(s.moved) && (s.answers.Proven()-s.moved[n].at >= grab.HeardAfter || s.now.Mono-s.moved[n].at >= movedFor) {
		n++
	}
	s.moved = slices.Delete(s.moved, 0, n)
}

// wanted is what is wanted of a column, or nil.
func (b *Branch) wanted(at table.Column) *Wanted {
	if i := slices.IndexFunc(b.Wanted, func(w Wanted) bool { return w.Column == at }); i >= 0 {
		return &b.Wanted[i]
	}
	return nil
}

// heard takes in what a partition below one of this shard's tells.
func (s *Shard) heard(b *Branch) {
	if b.Domain == "" || b.Name == "" || b.Partition < 1 || b.Partition >= ids.PartitionsMax {
		s.fx.Counts.Malformed++
		return
	}
	parent := table.Tasklist{Domain: b.Domain, Name: b.Name, Partition: ids.ParentPartition(b.Partition)}
	if s.drain.on {
		return
	}
	l := s.list(parent)
	i, found := slices.BinarySearchFunc(l.below, b.Partition, func(o below, p int) int { return cmp.Compare(o.Partition, p) })
	if !found {
		l.below = slices.Insert(l.below, i, below{})
	}
	l.below[i] = below{Branch: *b, at: s.now.Mono}
	s.offer(l)
	s.tellUp(l)
}

// outdated forgets what partitions have said that is not known to be so any more.
func (l *list) outdated(now time.Duration) {
	l.below = slices.DeleteFunc(l.below, func(b below) bool { return now-b.at >= newsFor })
}

// offer has the polls of a tasklist looked at that partitions below may want.
func (s *Shard) offer(l *list) {
	if len(l.below) > 0 && l.queue.Len() > 0 && !l.passes {
		l.passes = true
		s.passing = append(s.passing, l)
	}
}

// passAll sends polls down to where they are wanted, the most urgent first.
func (s *Shard) passAll() {
	for _, l := range s.passing {
		l.passes = false
		l.outdated(s.now.Mono)
		s.passDown(l)
	}
	clear(s.passing)
	s.passing = s.passing[:0]
}

// passDown sends polls of a tasklist down.
func (s *Shard) passDown(l *list) {
	all := l.wantedBelow()
	spares := s.spares(l, all)
	for _, w := range all {
		for w.Triggers > 0 && len(spares[w.Type]) > 0 {
			p := s.spared(l, w, spares[w.Type])
			if p == nil {
				delete(spares, w.Type) // nor for what is less urgent
				break
			}
			w.Triggers -= p.Max
			s.fx.Counts.PollsDown++
			s.move(p, w.to, w.Column)
			if w.Limited {
				break
			}
		}
	}
}

// wantedFrom is what a partition below wants a poll for.
type wantedFrom struct {
	*Wanted
	to int
}

// wantedBelow is what polls are wanted for below, the most urgent and oldest first.
func (l *list) wantedBelow() []wantedFrom {
	var all []wantedFrom
	for i := range l.below {
		for j := range l.below[i].Wanted {
			if w := &l.below[i].Wanted[j]; w.Triggers > 0 {
				all = append(all, wantedFrom{w, l.below[i].Partition})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b wantedFrom) int { return a.compare(*b.Wanted) })
	return all
}

// spare is a line of polls, and what the tasklist has for them itself.
type spare struct {
	line *pairing.Line[*list, grab.Grant]
	own  []table.Candidate
}

// spares are the lines of polls that accept what is wanted, by type. It looks at each line once.
func (s *Shard) spares(l *list, all []wantedFrom) map[string][]*spare {
	by := map[string][]*spare{}
	for _, w := range all {
		if l.queue.Takes(w.Type) {
			by[w.Type] = nil
		}
	}
	if len(by) == 0 {
		return by
	}
	for _, line := range l.queue.Lines() {
		types := line.First().Types
		if len(types) == 0 || len(types) > len(by) {
			types = slices.Collect(maps.Keys(by))
		}
		var one *spare
		for _, typ := range types {
			if _, wanted := by[typ]; !wanted || line.First().ID == 0 || !line.First().Accepts(typ) {
				continue
			}
			if one == nil {
				one = &spare{line, l.index.CandidatesOf(line.First().Types, 0, 1, func(at table.Column) bool { return l.Lacks(at) })}
			}
			by[typ] = append(by[typ], one)
		}
	}
	return by
}

// spared is a poll for a trigger of a partition below, or nil: the first of some lines, unless the tasklist has something for it
// that is as urgent: frontends send that partition polls of its own, and a flood below that came first is not to have all of these. For a partition
// that is no more what is older comes first. While the tables are asked for such, only polls that came since are looked at.
func (s *Shard) spared(l *list, w wantedFrom, lines []*spare) *poll {
	polled := w.to < s.catalog.Partitions(l.Domain, l.Name)
	var found *poll
	for _, one := range lines {
		if len(one.own) > 0 && (polled && one.own[0].Priority <= w.Priority || (Wanted{Column: one.own[0].Column, ReadyAt: one.own[0].Head}).compare(*w.Wanted) <= 0) {
			continue
		}
		if p := s.idle(l, one.line); p != nil && (found == nil || p.Before(found)) {
			found = p
		}
	}
	return found
}

// idle is the first poll of a line that may be sent down, as far as is looked at. The line may be empty by now.
func (s *Shard) idle(l *list, line *pairing.Line[*list, grab.Grant]) *poll {
	p := line.First()
	if p != nil && l.asksFor(p) {
		if p = line.Last(); !p.After(l.asked) {
			return nil
		}
	}
	for looks := 0; p != nil && looks < sparedLooksMax; looks++ {
		if p.Movable(s.now.Mono) {
			return p
		}
		p = p.Next()
	}
	return nil
}
