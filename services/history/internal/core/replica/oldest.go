package replica

import "time"

const (
	// oldestEvery is how often the oldest task is looked for, oldestPerTask how much later for each task that was looked
	// at: it costs some nanoseconds of each, and a backlog has as many as the windows hold.
	oldestEvery   = time.Second
	oldestPerTask = 50 * time.Microsecond
)

// longestWait is since when the task is ready that has waited longest for a grant, Unix ms; 0 = none waits. next is when it is
// looked for again.
type longestWait struct {
	readyAt int64
	next    time.Duration
}

// findOldest looks at all tasks in memory that wait for a grant.
func (r *Replica) findOldest(now Now) {
	if now.Mono < r.longest.next {
		return
	}
	readyAt, looks := int64(0), 0
	for _, l := range r.order {
		for e := l.sent.first; e != nil; e = e.after {
			if looks++; readyAt == 0 || e.inLineSince() < readyAt {
				readyAt = e.inLineSince()
			}
		}
	}
	r.longest = longestWait{readyAt, now.Mono + max(oldestEvery, time.Duration(looks)*oldestPerTask)}
}

// OldestReady is for how long the oldest ready task had to wait for a grant so far, as of a moment ago; 0 = none waits. A task that is not
// read is left out: it is younger than what is read of its domain and lane.
func (r *Replica) OldestReady(now Now) time.Duration {
	if r.longest.readyAt == 0 {
		return 0
	}
	return time.Duration(max(0, now.MS-r.longest.readyAt)) * time.Millisecond
}
