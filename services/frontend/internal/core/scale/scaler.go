// Package scale decides over how many partitions a tasklist is spread whose settings leave that to the engine (partitions_max).
//
// Owns: what the owners of the matching shards reported last of what comes into each partition, and since when that has been too much for
// the partitions that there are, or far too little.
//
// Never does: I/O, or reading a clock. It does not know whether a change was stored: all frontends hear the same reports and decide alike,
// and the one whose change is stored first wins.
//
// On failure: any number of partitions is correct. A partition that does not report is unknown, not idle: while there is one nothing
// changes. A decision that was not stored is made again, no sooner than the first time.
package scale

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

const (
	// Slack is how far below what fewer partitions would take the rate must be for there to be fewer: so a rate at a border changes nothing
	// back and forth (Cadence's adaptive scaler).
	Slack = 0.75
	// ReportedFor is for how long a report counts.
	ReportedFor = 5 * time.Second

	// rateMax bounds what is believed of a partition.
	rateMax = 1e9
)

// Config is by what a scaler decides.
type Config struct {
	// PerPartition is how many triggers in a second one partition is meant to take.
	PerPartition float64
	// UpAfter and DownAfter are how long it must have been too much, or too little.
	UpAfter, DownAfter time.Duration
}

// Tasklist is one whose number of partitions the engine sets.
type Tasklist struct{ Domain, Name string }

// Setting is what holds of a tasklist now.
type Setting struct {
	// Least and Most are what its settings allow, Partitions how many there are, from Least to Most.
	Least, Most, Partitions int
	// Revision is that of the record of Partitions; 0 = there is none.
	Revision int64
}

// Change is a number of partitions to be stored.
type Change struct {
	Of       Tasklist
	From, To int
	// PerSecond is how many triggers come in a second, about.
	PerSecond float64
	// Replaces is the revision of the record that it was decided by.
	Replaces int64
}

// Scaler knows the tasklists that report. It is not safe for concurrent use.
type Scaler struct {
	cfg   Config
	lists map[Tasklist]*list
}

// list is one tasklist.
type list struct {
	parts [ids.PartitionsMax]part
	// known is what held at the last look.
	known Setting
	// many and few are since when what comes has been too much and too little, at each look; zero = it is not.
	many, few time.Time
}

// part is one partition.
type part struct {
	// sum is of the rates reported since the last look, of so many reports; mean is theirs at that look.
	sum     float64
	reports int
	mean    float64
	// at is when it reported last; zero = never.
	at time.Time
}

// New makes a scaler that knows no tasklist.
func New(cfg Config) *Scaler { return &Scaler{cfg: cfg, lists: map[Tasklist]*list{}} }

// Report takes in how many triggers come into a partition in a second. Partitions that are no more count while something comes into them:
// it will come into the others.
func (s *Scaler) Report(of Tasklist, partition int, perSecond float64, now time.Time) {
	if partition < 0 || partition >= ids.PartitionsMax {
		return
	}
	l := s.lists[of]
	if l == nil {
		l = &list{}
		s.lists[of] = l
	}
	p := &l.parts[partition]
	if partition < l.known.Partitions && now.Sub(p.at) > ReportedFor {
		l.again() // it was unknown for a while between two looks
	}
	if math.IsNaN(perSecond) {
		perSecond = 0
	}
	p.sum += min(max(perSecond, 0), rateMax)
	p.reports++
	p.at = now
}

// Look tells what to change by now, sorted by tasklist, and forgets tasklists that setting does not know, or that do not report any more.
// A tasklist that is to be changed starts again, whether or not the change will be stored.
func (s *Scaler) Look(now time.Time, setting func(Tasklist) (Setting, bool)) []Change {
	var all []Change
	for of, l := range s.lists {
		is, known := setting(of)
		if !known || l.silent(now) {
			delete(s.lists, of)
			continue
		}
		if c, change := s.look(l, is, now); change {
			c.Of = of
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Of.Domain, b.Of.Domain), cmp.Compare(a.Of.Name, b.Of.Name))
	})
	return all
}

func (s *Scaler) look(l *list, is Setting, now time.Time) (Change, bool) {
	rate, known := l.rate(is.Partitions, now)
	if l.known != is {
		l.known = is
		l.again()
	}
	if !known { // its next report has the times start again
		return Change{}, false
	}
	most, least := float64(is.Partitions)*s.cfg.PerPartition, float64(is.Partitions-1)*s.cfg.PerPartition*Slack
	l.many = since(l.many, now, rate > most && is.Partitions < is.Most)
	l.few = since(l.few, now, rate < least && is.Partitions > is.Least)
	if !lasts(l.many, now, s.cfg.UpAfter) && !lasts(l.few, now, s.cfg.DownAfter) {
		return Change{}, false
	}
	l.again()
	to := min(max(int(math.Ceil(rate/s.cfg.PerPartition)), is.Least), is.Most)
	return Change{From: is.Partitions, To: to, PerSecond: rate, Replaces: is.Revision}, true
}

// again has both times start again.
func (l *list) again() { l.many, l.few = time.Time{}, time.Time{} }

// since is since when it is so.
func since(from, now time.Time, is bool) time.Time {
	switch {
	case !is:
		return time.Time{}
	case from.IsZero():
		return now
	}
	return from
}

// lasts tells whether it has been so for long enough.
func lasts(from, now time.Time, after time.Duration) bool {
	return !from.IsZero() && now.Sub(from) >= after
}

// rate is how many triggers come into all partitions in a second; known is false if one of the first n has not reported recently.
func (l *list) rate(n int, now time.Time) (rate float64, known bool) {
	known = true
	for i := range l.parts {
		p := &l.parts[i]
		if p.reports > 0 {
			p.mean, p.sum, p.reports = p.sum/float64(p.reports), 0, 0
		}
		switch fresh := p.fresh(now); {
		case fresh:
			rate += p.mean
		case i < n:
			known = false
		}
	}
	return rate, known
}

func (p *part) fresh(now time.Time) bool { return now.Sub(p.at) <= ReportedFor }

// silent tells whether no partition has reported recently.
func (l *list) silent(now time.Time) bool {
	for i := range l.parts {
		if l.parts[i].fresh(now) {
			return false
		}
	}
	return true
}
