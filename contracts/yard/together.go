package yard

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

const (
	// groupsMax bounds the requests of gathered tasks that are under way. One is the rule: what comes meanwhile
	// gathers, and a burst goes together.
	groupsMax = 16
	// groupPatience is how long a request holds up the next one. A partition of the log that does not answer must
	// not hold up tasks that others would take.
	groupPatience = 20 * time.Millisecond
	// aloneBytes is the size from which a task goes in a request of its own: little is gained by gathering it.
	aloneBytes = 32 << 10
)

// together gathers the tasks that goroutines submit one by one into requests: while one is under way, the next
// one fills (group commit). Each task has the context and the error of its own caller.
type together struct {
	mu      sync.Mutex
	waiting []*single
	// flying counts the groups under way, holding those that hold up the next.
	flying, holding int
}

// single is one task of one caller.
type single struct {
	task   *yardv1.NewTask
	size   int
	until  time.Time
	answer chan submitted
	// fate is that of the request that it goes with, once it goes.
	fate *fate
	// gone: its caller has given up, with what was known then.
	gone bool
}

type submitted struct {
	id  string
	err error
}

// group is some tasks in one request.
type group struct {
	singles []*single
	// holds: the next group waits for it.
	holds bool
}

// fate is what is known of a request that is not answered yet.
type fate struct {
	mu sync.Mutex
	// flying: a try is under way. unsure: one has ended without saying whether it stored anything.
	flying, unsure bool
	last           error
}

// flies notes that a try begins. A nil fate is no one's.
func (f *fate) flies() { f.note(true, false, nil) }

// landed notes how a try ended.
func (f *fate) landed(err error) { f.note(false, fault.CodeOf(err) == fault.Unknown, err) }

func (f *fate) note(flying, unsure bool, last error) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying, f.unsure, f.last = flying, f.unsure || unsure, last
}

// soFar is the error of a caller that waits no longer.
func (f *fate) soFar() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.flying || f.unsure:
		return fault.New(fault.Unknown, "no answer in time")
	case f.last == nil:
		return fault.New(fault.Unavailable, "the task was not sent in time")
	}
	return f.last
}

// submitOne submits a task together with those of other callers.
func (c *Client) submitOne(ctx context.Context, task Task) (string, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	w := &yardv1.NewTask{}
	if err := task.fill(w); err != nil {
		return "", fillFault(taskPath(0), err)
	}
	if w.Traceparent == "" {
		w.Traceparent = traceOf(ctx)
	}
	until, _ := ctx.Deadline()
	s := &single{task: w, size: w.SizeVT() + taskOverhead, until: until, answer: make(chan submitted, 1)}
	if s.size > aloneBytes {
		s.fate = &fate{}
		go c.fly([]*single{s}, s.fate)
	} else {
		c.together.add(c, s)
	}
	select {
	case a := <-s.answer:
		return a.id, endedIf(ctx, a.err)
	case <-ctx.Done():
		a := c.together.leave(s)
		return a.id, endedIf(ctx, a.err)
	}
}

// endedIf is ended for an error.
func endedIf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return ended(ctx, err)
}

// add lets s wait for the next group, or begins one.
func (t *together) add(c *Client, s *single) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, s)
	t.next(c)
}

// next sends what waits, unless it is to go on gathering. t.mu is held.
func (t *together) next(c *Client) {
	for len(t.waiting) > 0 && t.holding == 0 && t.flying < groupsMax {
		n, size := 0, 0
		for n < len(t.waiting) && n < requestTasksMax && (n == 0 || size+t.waiting[n].size <= c.bytesMax()) {
			size += t.waiting[n].size
			n++
		}
		g, fate := &group{singles: slices.Clone(t.waiting[:n]), holds: true}, &fate{}
		clear(t.waiting[:n])
		if t.waiting = t.waiting[n:]; len(t.waiting) == 0 {
			t.waiting = nil
		}
		for _, s := range g.singles {
			s.fate = fate
		}
		t.flying++
		t.holding++
		patience := time.AfterFunc(groupPatience, func() { t.release(c, g) })
		go func() {
			c.fly(g.singles, fate)
			patience.Stop()
			t.release(c, g)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.flying--
			t.next(c)
		}()
	}
}

// release lets the next group go.
func (t *together) release(c *Client, g *group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.holds {
		g.holds = false
		t.holding--
		t.next(c)
	}
}

// leave ends the wait of s, whose context has ended, and says what is known of its task: its own answer, if there is one
// by now. The fate of its request may be that of others already, who go again without it.
func (t *together) leave(s *single) submitted {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.gone = true
	if i := slices.Index(t.waiting, s); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return submitted{err: (&fate{}).soFar()}
	}
	known := s.fate.soFar() // before the look: an answer comes first, and then the fate of what is left
	select {
	case a := <-s.answer:
		return a
	default:
		return submitted{err: known}
	}
}

// fly sends some tasks as one request and answers their callers. One that is refused is taken out, and the others go
// again: nothing of the request was stored.
func (c *Client) fly(left []*single, f *fate) {
	for len(left) > 0 {
		resp, err := c.flyOnce(left, f)
		refused, tooLarge := culprit(err, len(left))
		full := fullQueue(err, len(left))
		switch {
		case full >= 0:
			left = c.queueUp(left, queueOf(err, left[full]), err)
			f.note(false, false, nil) // the refusal is not of the others
			continue
		case refused >= 0:
			left[refused].answer <- submitted{err: offsetPath(err, -refused)}
			left = slices.Delete(left, refused, refused+1)
			f.note(false, false, nil) // the refusal is not of the others
			continue
		case tooLarge:
			half := len(left) / 2
			f.note(false, false, nil)
			c.fly(slices.Clone(left[:half]), f)
			left = left[half:]
			continue
		}
		answerAll(left, resp, err)
		return
	}
}

// flyOnce sends tasks as one request, until it is answered or the last of their callers gives up.
func (c *Client) flyOnce(all []*single, f *fate) (*yardv1.SubmitResponse, error) {
	ctx, cancel := context.WithDeadline(context.Background(), latest(all))
	defer cancel()
	req := &yardv1.SubmitRequest{Tasks: make([]*yardv1.NewTask, len(all))}
	for i, s := range all {
		req.Tasks[i] = s.task
	}
	resp, err := c.submit(ctx, req, f)
	if err == nil && len(resp.Results) != len(all) {
		err = fault.New(fault.Internal, "%d results were answered for %d tasks", len(resp.Results), len(all))
	}
	return resp, err
}

// answerAll answers callers with how their request ended.
func answerAll(all []*single, resp *yardv1.SubmitResponse, err error) {
	for i, s := range all {
		if err != nil {
			s.answer <- submitted{err: err}
			continue
		}
		s.answer <- submitted{id: resp.Results[i].TaskId}
	}
}

// latest is when the last of the callers gives up.
func latest(all []*single) (at time.Time) {
	for _, s := range all {
		if s.until.After(at) {
			at = s.until
		}
	}
	return at
}

// culprit is the task of n that a request was refused for, or -1. TooLarge says that it was refused for all together.
func culprit(err error, n int) (i int, tooLarge bool) {
	e := fault.From(err)
	if e == nil || e.Code != fault.InvalidArgument && e.Code != fault.InvalidTime && e.Code != fault.FailedPrecondition {
		return -1, false
	}
	if e.Path == "/tasks" || e.Path == "" && e.Code == fault.InvalidArgument {
		return -1, n > 1
	}
	return taskOf(e.Path, n), false
}

// taskOf is the task of n that a path names, or -1.
func taskOf(path string, n int) int {
	rest, ok := strings.CutPrefix(path, "/tasks/")
	number, _, _ := strings.Cut(rest, "/")
	if i, err := strconv.Atoi(number); ok && err == nil && i >= 0 && i < n {
		return i
	}
	return -1
}
