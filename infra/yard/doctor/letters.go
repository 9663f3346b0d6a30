package doctor

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// letter is a dead letter.
type letter struct {
	seq    uint64
	at     time.Time
	domain string
}

// letters are all dead letters, by partition.
type letters struct {
	byPartition map[int]map[ids.TaskID]letter
	// archiveUpTo are the last sequences of the archives before the letters were read: a letter is stored before its end.
	archiveUpTo map[int]uint64
	// holes are when letters were stored that are not there any more: after from, up to to.
	holes   []hole
	lastSeq uint64
	lastAt  time.Time
	n       int64
	domains map[string]string
}

type hole struct{ from, to time.Time }

func newDeadLetters() *letters {
	return &letters{byPartition: map[int]map[ids.TaskID]letter{}, archiveUpTo: map[int]uint64{}, domains: map[string]string{}}
}

func (l *letters) of(partition int) map[ids.TaskID]letter { return l.byPartition[partition] }

// take takes a dead letter. False = its subject names no task.
func (l *letters) take(r natslog.Record) bool {
	if r.Seq > l.lastSeq+1 {
		l.holes = append(l.holes, hole{l.lastAt, r.Time})
	}
	l.lastSeq, l.lastAt = r.Seq, r.Time
	domain, id, ok := topology.DeadOfSubject(r.Subject)
	if !ok {
		return false
	}
	if name, known := l.domains[domain]; known { // one text for all letters of a domain
		domain = name
	} else {
		l.domains[domain] = domain
	}
	p := id.Partition()
	if l.byPartition[p] == nil {
		l.byPartition[p] = map[ids.TaskID]letter{}
	}
	l.byPartition[p][id] = letter{r.Seq, r.Time, domain}
	l.n++
	return true
}

// end takes the last sequence of the stream, whatever lies there.
func (l *letters) end(lastSeq uint64, now time.Time) {
	if lastSeq > l.lastSeq {
		l.holes = append(l.holes, hole{l.lastAt, now})
	}
}

// removed tells whether a letter that was stored in a span of time may have been redriven, purged or deleted.
func (l *letters) removed(from, to time.Time) bool {
	const slack = time.Minute
	for _, h := range l.holes {
		if h.from.Before(to.Add(slack)) && h.to.After(from.Add(-slack)) {
			return true
		}
	}
	return false
}

// retentions are for how long domains keep their finished tasks, and since when.
type retentions map[string]retention

type retention struct {
	kept  time.Duration
	since time.Time
}

// of is for how long what a domain filed then is kept at least.
func (r retentions) of(domain string, at time.Time) time.Duration {
	const told = time.Minute // by then each node knows of a change
	k, ok := r[domain]
	if !ok || at.Before(k.since.Add(told)) {
		return topology.RetentionMin
	}
	return max(k.kept, topology.RetentionMin)
}
