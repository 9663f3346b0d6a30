package doctor

import (
	"time"
	"unique"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// letter is a dead letter.
type deadLetter struct {
	seq    uint64
	at     time.Time
	domain unique.Handle[string]
}

// letters are all dead letters, by partition.
type deadLetters struct {
	byPartition map[int]map[ids.TaskID]deadLetter
	// archiveUpTo are the last sequences of the archives before the dead letters were read: a dead letter is stored before its end.
	archiveUpTo map[int]uint64
	// holes are the times at which dead letters were stored that are not there any more: after from, up to to.
	holes   []hole
	lastSeq uint64
	lastAt  time.Time
	n       int64
}

type hole struct{ from, to time.Time }

func newDeadLetters() *deadLetters {
	return &deadLetters{byPartition: map[int]map[ids.TaskID]deadLetter{}, archiveUpTo: map[int]uint64{}}
}

func (l *deadLetters) of(partition int) map[ids.TaskID]deadLetter { return l.byPartition[partition] }

// take takes a dead letter. False = its subject names no task.
func (l *deadLetters) take(r natslog.Record) bool {
	if r.Seq > l.lastSeq+1 {
		l.holes = append(l.holes, hole{l.lastAt, r.Time})
	}
	l.lastSeq, l.lastAt = r.Seq, r.Time
	domain, id, ok := topology.DeadOfSubject(r.Subject)
	if !ok {
		return false
	}
	p := id.Partition()
	if l.byPartition[p] == nil {
		l.byPartition[p] = map[ids.TaskID]deadLetter{}
	}
	l.byPartition[p][id] = deadLetter{r.Seq, r.Time, unique.Make(domain)}
	l.n++
	return true
}

// end takes the last sequence of the stream, whatever lies there.
func (l *deadLetters) end(lastSeq uint64, now time.Time) {
	if lastSeq > l.lastSeq {
		l.holes = append(l.holes, hole{l.lastAt, now})
	}
}

// removed reports whether a dead letter that was stored in a span of time may have been redriven, purged or deleted.
func (l *deadLetters) removed(from, to time.Time) bool {
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
	const known = time.Minute // by then each node knows of a change
	k, ok := r[domain]
	if !ok || at.Before(k.since.Add(known)) {
		return topology.RetentionMin
	}
	return max(k.kept, topology.RetentionMin)
}
