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
	// underWay counts the groups under way, holding those that hold up the next.
	underWay, holding int
}

// single is one task of one caller.
type single struct {
	task   *yardv1.NewTask
	size   int
	until  time.Time
	answer chan submitted
	// request is the state of the request that has it, once there is one.
	request *requestState
	// abandoned: its caller has given up, with what was known then.
	abandoned bool
}

type submitted struct {
	id  string
	err error
}

// requestState is what is known of a request that is not answered yet.
type requestState struct {
	mu sync.Mutex
	// underWay: a try is under way. unsure: one has ended without saying whether it stored anything.
	underWay, unsure bool
	last             error
}

// begin notes that a try begins. A nil state is of a request that has no callers to report it to.
func (f *requestState) begin() { f.note(true, false, nil) }

// finish notes how a try ended.
func (f *requestState) finish(err error) { f.note(false, fault.CodeOf(err) == fault.Unknown, err) }

func (f *requestState) note(underWay, unsure bool, last error) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underWay, f.unsure, f.last = underWay, f.unsure || unsure, last
}

// soFar is the error of a caller that waits no longer.
func (f *requestState) soFar() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.underWay || f.unsure:
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
		s.request = &requestState{}
		go c.send([]*single{s}, s.request)
	} else {
		c.together.add(c, s)
	}
	select {
	case a := <-s.answer:
		return a.id, ended(ctx, a.err)
	case <-ctx.Done():
		a := c.together.leave(s)
		return a.id, ended(ctx, a.err)
	}
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
	for len(t.waiting) > 0 && t.holding == 0 && t.underWay < groupsMax {
		n := fitting(len(t.waiting), c.bytesMax(), func(i int) int { return t.waiting[i].size })
		group, state := slices.Clone(t.waiting[:n]), &requestState{}
		clear(t.waiting[:n])
		if t.waiting = t.waiting[n:]; len(t.waiting) == 0 {
			t.waiting = nil
		}
		for _, s := range group {
			s.request = state
		}
		t.underWay++
		t.holding++
		release := sync.OnceFunc(func() { // lets the next group go
			t.mu.Lock()
			defer t.mu.Unlock()
			t.holding--
			t.next(c)
		})
		patience := time.AfterFunc(groupPatience, release)
		go func() {
			c.send(group, state)
			patience.Stop()
			release()
			t.mu.Lock()
			defer t.mu.Unlock()
			t.underWay--
			t.next(c)
		}()
	}
}

// leave ends the wait of s, whose context has ended, and says what is known of its task: its own answer, if there is one
// by now. The state of its request may be that of the others already, whose request is sent again without it.
func (t *together) leave(s *single) submitted {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.abandoned = true
	if i := slices.Index(t.waiting, s); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return submitted{err: (&requestState{}).soFar()}
	}
	known := s.request.soFar() // read first: an answer is sent before the state of what is left changes
	select {
	case a := <-s.answer:
		return a
	default:
		return submitted{err: known}
	}
}

// send sends some tasks as one request and answers their callers. A refused task is taken out, and the others are sent
// again: nothing of the request was stored.
func (c *Client) send(left []*single, f *requestState) {
	for len(left) > 0 {
		resp, err := c.sendOnce(left, f)
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
			c.send(slices.Clone(left[:half]), f)
			left = left[half:]
			continue
		}
		answerAll(left, resp, err)
		return
	}
}

// sendOnce sends tasks as one request, until it is answered or the last of their callers gives up.
func (c *Client) sendOnce(all []*single, f *requestState) (*yardv1.SubmitResponse, error) {
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
