package yard

import (
	"context"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// A tasklist may have a cap on its queue (Tasklist.MaxQueued), and on what it has of each group (MaxQueuedPerGroup). A submit of one program to a full one
// waits by itself, in front of nothing else, and goes as there is room. How many goroutines and requests that takes is bounded by the callers that wait. (An
// order key has a cap, too. Its tasks do not travel with those of other callers.)

// fullQueue is the first task of n whose queue is at its cap, as a refusal says, or -1.
func fullQueue(err error, n int) int {
	if e := fault.From(err); e != nil && e.Code == fault.ResourceExhausted {
		return taskOf(e.Path, n)
	}
	return -1
}

// queue is a tasklist, or what it has of one group.
type queue struct{ tasklist, group string }

// queueOf is the queue that is at its cap, as a refusal says of a task.
func queueOf(err error, s *single) queue {
	q := queue{tasklist: s.task.Tasklist}
	if strings.HasSuffix(fault.From(err).Path, "/group") {
		q.group = s.task.Group
	}
	return q
}

func (q queue) has(s *single) bool {
	return s.task.Tasklist == q.tasklist && (q.group == "" || s.task.Group == q.group)
}

// queueUp lets the tasks of a queue at its cap go on by themselves, and returns the others. Nothing of all was stored.
func (c *Client) queueUp(all []*single, of queue, why error) (others []*single) {
	var full []*single
	own := &requestState{last: why}
	c.together.mu.Lock()
	defer c.together.mu.Unlock()
	for _, s := range all {
		if !of.has(s) {
			others = append(others, s)
			continue
		}
		full = append(full, s)
		s.request = own
	}
	go c.trickle(full, of)
	return others
}

// trickle sends the tasks of a queue at its cap, as many at once as there is room for: half as many where there is none,
// twice as many where there was. It waits where there is none for a single one.
func (c *Client) trickle(left []*single, of queue) {
	size := max(1, len(left)/2)
	for try := 0; ; {
		now, f := c.together.depart(&left, size)
		if len(now) == 0 {
			return
		}
		resp, err := c.sendOnce(now, f)
		refused, _ := culprit(err, len(now))
		full := fullQueue(err, len(now))
		switch {
		case full >= 0:
			f.note(false, false, err)
			if q := queueOf(err, now[full]); q.group != of.group && q.group != "" { // other groups of the tasklist go on
				left = c.queueUp(left, q, err)
				continue
			}
			if len(now) > 1 {
				size = len(now) / 2
				continue
			}
			ctx, cancel := context.WithDeadline(context.Background(), latest(left))
			again := pause(ctx, backoff(try, fault.From(err).RetryAfter))
			cancel()
			if !again {
				answerAll(left, nil, err)
				return
			}
			try++
		case refused >= 0:
			now[refused].answer <- submitted{err: offsetPath(err, -refused)}
			c.together.mu.Lock()
			now[refused].abandoned = true
			c.together.mu.Unlock()
		case err != nil:
			answerAll(now, nil, err)
			left = left[len(now):]
		default:
			answerAll(now, resp, nil)
			left, size, try = left[len(now):], 2*size, 0
		}
	}
}

// depart drops those whose callers have given up and takes the first n of the others, whose request goes now.
func (t *together) depart(left *[]*single, n int) (now []*single, f *requestState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	here := make([]*single, 0, len(*left))
	for _, s := range *left {
		if !s.abandoned {
			here = append(here, s)
		}
	}
	*left, now, f = here, here[:min(n, len(here))], &requestState{}
	f.begin() // before anybody else may give up
	for _, s := range now {
		s.request = f
	}
	return now, f
}
