package dispatch

import "time"

const (
	// oldestEvery is how often the oldest task is looked for, oldestPerTask how much later for each task that was
	// looked at: it costs some nanoseconds of each, and a backlog has as many as the windows hold.
	oldestEvery   = time.Second
	oldestPerTask = 50 * time.Microsecond
)

// FindOldest looks at all tasks that wait for a grant, now and then; mono is a clock that never jumps.
func (x *Lists) FindOldest(mono time.Duration) {
	if mono < x.longest.next {
		return
	}
	readyAt, looks := int64(0), 0
	for _, l := range x.order {
		for e := l.sent.first; e != nil; e = e.after {
			if looks++; readyAt == 0 || e.ReadySince() < readyAt {
				readyAt = e.ReadySince()
			}
		}
	}
	x.longest = longestWait{readyAt, mono + max(oldestEvery, time.Duration(looks)*oldestPerTask)}
}

// OldestReady is for how long the oldest ready task had to wait for a grant so far, as of a moment ago; 0 = none waits.
// A task that is not read is left out: it is younger than what is read of its domain and lane.
func (x *Lists) OldestReady(nowMS int64) time.Duration {
	if x.longest.readyAt == 0 {
		return 0
	}
	return time.Duration(max(0, nowMS-x.longest.readyAt)) * time.Millisecond
}
