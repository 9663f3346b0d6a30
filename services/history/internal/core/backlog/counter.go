package backlog

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

const (
	// ScanEvery is how often a lane is looked at that is read to its window.
	ScanEvery = 500 * time.Millisecond
	// RecountEvery is how often a lane is counted again since other tasklists have a cap.
	RecountEvery = 10 * time.Second
	// ReportMax bounds the tasklists of a report.
	ReportMax = 1000
	// earlyShare: a report is due early when a tasklist has changed by one of so many parts of its cap; a group among the earlyGroups
	// that are nearest to theirs also by earlyTasks at least.
	earlyShare  = 20
	earlyGroups = 100
	earlyTasks  = 20
	// farBelow: a group that has less here than one of so many parts of its cap is not in a report.
	farBelow = 1000
)

// Progress is how far the partition is read.
type Progress struct {
	// Read is up to where each lane is read. Paused: no more of it is, for want of room.
	Read   [ids.Lanes]uint64
	Paused [ids.Lanes]bool
	// Lagging are the places that are split off a lane.
	Lagging []Lagging
}

// Lagging is up to where the messages of a place are read that is split off a lane.
type Lagging struct {
	Lane ids.Lane
	At   ids.Place
	Read uint64
}

// Counter counts what is unread in all lanes but that of delayed tasks. Nothing is read for it while all lanes are read to
// their end, nor without a cap. The zero value is ready.
type Counter struct {
	caps  *Caps
	lanes [ids.Lanes]counted
	// scanning: a Scan is under way. last is the lane of the last one.
	scanning bool
	last     ids.Lane
	// known is what the last report knew of each tasklist, in it or not, and of the groups nearest to their cap.
	known map[Queue]Held
}

// Held is what a queue has in memory: queued tasks, and how many have come there since its owner took over.
type Held struct{ Tasks, Came int64 }

// Memory is what a partition has in memory.
type Memory interface {
	// Queued is what a queue has.
	Queued(Queue) Held
	// QueuedGroups are those of a tasklist that have queued tasks.
	QueuedGroups(Tasklist) iter.Seq2[string, Held]
	// WaitingDomains are those of some domains that have tasks which wait, and what waits.
	WaitingDomains(of map[string]bool) iter.Seq2[string, Amount]
}

type counted struct {
	*Lane
	// fresh counts more tasklists, and takes the place of Lane once it has been counted to the end.
	fresh *Lane
	// began is when the last of the two was, due when the next scan is.
	began, due time.Duration
}

// Scan asks for the tasks of messages of a lane, those that domains share and those of these domains, from one on.
type Scan struct {
	Lane    ids.Lane
	Domains []string
	From    uint64
	into    *Lane
}

// Found is tasks of one tasklist and group in a message that is filed at a place, of no group where that is empty.
type Found struct {
	Seq   uint64
	Of    Queue
	Filed ids.Place
	Amount
}

// Turn takes in how far the partition is read, and returns what is to be read next, or nil. One is under way at a time;
// Scanned or Failed ends it.
func (c *Counter) Turn(caps *Caps, at Progress, now time.Duration) *Scan {
	c.caps = caps
	for lane := ids.LaneFirst; lane < ids.Lanes; lane++ {
		if caps == nil {
			c.lanes[lane] = counted{}
		} else {
			c.pass(lane, at, now)
		}
	}
	for i := range ids.Lane(ids.Lanes) {
		lane := (c.last + 1 + i) % ids.Lanes
		l := &c.lanes[lane]
		if c.scanning || l.Lane == nil || now < l.due {
			continue
		}
		into := cmp.Or(l.fresh, l.Lane)
		c.scanning, c.last, l.due = true, lane, now+ScanEvery
		return &Scan{Lane: lane, Domains: into.of.Domains, From: into.Next(), into: into}
	}
	return nil
}

// pass forgets what has been read of a lane, or begins to count it.
func (c *Counter) pass(lane ids.Lane, at Progress, now time.Duration) {
	lags := map[ids.Place]uint64{}
	first := at.Read[lane]
	for _, q := range at.Lagging {
		if _, capped := slices.BinarySearch(c.caps.Domains, q.At.Domain()); capped && q.Lane == lane && q.Read < at.Read[lane] {
			lags[q.At] = q.Read
			first = min(first, q.Read)
		}
	}
	l := &c.lanes[lane]
	switch {
	case !at.Paused[lane] && len(lags) == 0:
		*l = counted{}
		return
	case l.Lane == nil:
		*l = counted{Lane: NewLane(c.caps, first), began: now}
	case l.fresh == nil && !l.Covers(c.caps) && now >= l.began+RecountEvery:
		l.fresh, l.began = NewLane(c.caps, first), now
	}
	read := func(filed ids.Place) uint64 {
		for ; len(lags) > 0 && filed != ""; filed = filed.Parent() {
			if level, ok := lags[filed]; ok {
				return level
			}
		}
		return at.Read[lane]
	}
	l.Pass(read)
	if l.fresh != nil {
		l.fresh.Pass(read)
	}
}

// Scanned takes in what a scan has found: all that there is up to a sequence. more: it was cut there.
func (c *Counter) Scanned(s *Scan, found []Found, upTo uint64, more bool) {
	c.scanning = false
	for _, f := range found {
		s.into.Add(f.Seq, f.Of, f.Filed, f.Amount)
	}
	s.into.Counted(upTo)
	l := &c.lanes[s.Lane]
	switch {
	case more:
		l.due = 0
	case l.fresh == s.into:
		l.Lane, l.fresh = l.fresh, nil
	}
}

// Failed tells that a scan has found nothing, for an error. It is tried again.
func (c *Counter) Failed() { c.scanning = false }

// To is up to where the tasks of a lane are counted, if it is read up to a sequence.
func (c *Counter) To(lane ids.Lane, read uint64) uint64 {
	if l := c.lanes[lane].Lane; l != nil {
		return max(read, l.To())
	}
	return read
}

// Queued is what a queue has queued.
type Queued struct {
	Queue
	Tasks int64
}

// Report is what the tasklists with a cap have queued, if it is any: what is in memory, and what is unread; and the same of the groups of
// those with a cap per group. Of more than ReportMax of either it is those that are nearest to their cap.
func (c *Counter) Report(memory Memory) (lists, groups []Queued) {
	c.known = nil
	if c.caps == nil {
		return nil, nil
	}
	c.known = make(map[Queue]Held, len(c.caps.Of))
	all := nearest{caps: c.caps.Of}
	for of := range c.caps.Of {
		q := Queue{Tasklist: of}
		held := memory.Queued(q)
		c.known[q] = held
		if n := held.Tasks + c.unread(q); n > 0 {
			all.add(Queued{q, n})
		}
	}
	groups = c.groups(memory)
	for _, q := range groups[:min(len(groups), earlyGroups)] {
		c.known[q.Queue] = memory.Queued(q.Queue)
	}
	return all.first(), groups
}

// Domains is what the domains with a quota of what waits have, if it is any: what is in memory, and what is unread.
func (c *Counter) Domains(memory Memory) map[string]Amount {
	all := map[string]Amount{}
	if c.caps == nil || len(c.caps.Bounded) == 0 {
		return all
	}
	for i := range c.lanes {
		if l := c.lanes[i].Lane; l != nil {
			l.ByDomain(all)
		}
	}
	for domain, some := range memory.WaitingDomains(c.caps.Bounded) {
		some.add(all[domain], 1)
		all[domain] = some
	}
	return all
}

// groups are what the groups of tasklists with a cap per group have queued.
func (c *Counter) groups(memory Memory) []Queued {
	if len(c.caps.PerGroup) == 0 {
		return nil
	}
	unread := map[Queue]int64{}
	for i := range c.lanes {
		if l := c.lanes[i].Lane; l != nil {
			l.ByGroup(unread)
		}
	}
	all := nearest{caps: c.caps.PerGroup}
	tell := func(q Queue, n int64) {
		if most := c.caps.PerGroup[q.Tasklist]; most > 0 && n*farBelow >= most {
			all.add(Queued{q, n})
		}
	}
	for of := range c.caps.PerGroup {
		for group, held := range memory.QueuedGroups(of) {
			q := Queue{of, group}
			tell(q, held.Tasks+unread[q])
			delete(unread, q)
		}
	}
	for q, n := range unread {
		tell(q, n)
	}
	return all.first()
}

// nearest are the ReportMax queues that are nearest to their cap, of each domain in turn: one that has many leaves the others theirs (I14).
type nearest struct {
	caps map[Tasklist]int64
	all  []Queued
}

func (n *nearest) add(q Queued) {
	if n.all = append(n.all, q); len(n.all) >= 4*ReportMax {
		n.all = n.first()
	}
}

func (n *nearest) first() []Queued {
	fill := func(q Queued) float64 { return float64(q.Tasks) / float64(n.caps[q.Tasklist]) }
	slices.SortFunc(n.all, func(a, b Queued) int {
		return cmp.Or(cmp.Compare(fill(b), fill(a)), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
	})
	inTurn(n.all, func(q Queued) string { return q.Domain })
	return n.all[:min(len(n.all), ReportMax)]
}

// unread is how many tasks of a queue have been counted and are not read.
func (c *Counter) unread(of Queue) (n int64) {
	for i := range c.lanes {
		if l := c.lanes[i].Lane; l != nil {
			n += l.Tasks(of)
		}
	}
	return n
}

// Early tells whether so much has come of a tasklist since the last report, or of a group near its cap, or gone, that the next one is due
// now: frontends count what they have sent since as queued, and do not know what others have sent.
func (c *Counter) Early(memory Memory) bool {
	for of, then := range c.known {
		now, part := memory.Queued(of), max(1, c.caps.Of[of.Tasklist]/earlyShare)
		if of.Group != "" {
			part = max(earlyTasks, c.caps.PerGroup[of.Tasklist]/earlyShare)
		}
		if abs(now.Tasks-then.Tasks) >= part || abs(now.Came-then.Came) >= part {
			return true
		}
	}
	return false
}

func abs(n int64) int64 { return max(n, -n) }

// inTurn puts the first of each domain in front, then the second of each, and so on. Of the same place they stay in order.
func inTurn[T any](all []T, domain func(T) string) {
	type placed struct {
		T     T
		place int
	}
	seen, some := map[string]int{}, make([]placed, len(all))
	for i, one := range all {
		some[i] = placed{one, seen[domain(one)]}
		seen[domain(one)]++
	}
	if len(seen) < 2 {
		return
	}
	slices.SortStableFunc(some, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	for i, one := range some {
		all[i] = one.T
	}
}
