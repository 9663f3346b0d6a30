package outcome

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/groupcommit"
)

// noSuchTask is the one text of NOT_FOUND, no matter which service finds out: an unknown task, another
// domain's, and a forged token are not to be distinguished.
const noSuchTask = "there is no such task, or it finished long ago"

// Complete tells of attempts that succeeded (tasks.complete).
func (o *Outcomes) Complete(c call.Call, req *yardv1.CompleteRequest, answer call.Answer) {
	entries, bad := validate.Complete(req, c.Domain, o.Tokens, c.Form())
	o.Send(c, true, entries, bad, answer)
}

// Fail tells of attempts that did not (tasks.fail).
func (o *Outcomes) Fail(c call.Call, req *yardv1.FailRequest, answer call.Answer) {
	entries, bad := validate.Fail(req, c.Domain, o.Tokens)
	o.Send(c, true, entries, bad, answer)
}

// Heartbeat keeps attempts alive (tasks.heartbeat).
func (o *Outcomes) Heartbeat(c call.Call, req *yardv1.HeartbeatRequest, answer call.Answer) {
	entries, bad := validate.Heartbeat(req, c.Domain, o.Tokens, c.Form())
	o.Send(c, false, entries, bad, answer)
}

// Cancel asks for tasks to end (tasks.cancel).
func (o *Outcomes) Cancel(c call.Call, req *yardv1.CancelRequest, answer call.Answer) {
	entries, bad := validate.Cancel(req, c.Domain)
	o.Send(c, false, entries, bad, answer)
}

// Update changes tasks (tasks.update).
func (o *Outcomes) Update(c call.Call, req *yardv1.UpdateRequest, answer call.Answer) {
	entries, bad := validate.Update(req, c.Domain, c.Now, c.Form())
	if bad == nil {
		bad = o.drained(c, req)
	}
	if bad == nil {
		bad = Date(c, req, entries)
	}
	o.Send(c, false, entries, bad, answer)
}

// End ends tasks by hand (tasks.end).
func (o *Outcomes) End(c call.Call, req *yardv1.EndTasksRequest, answer call.Answer) {
	entries, bad := validate.EndTasks(req, c.Domain, c.Form())
	if bad == nil {
		bad = Date(c, req, entries)
	}
	o.Send(c, false, entries, bad, answer)
}

// drained refuses an update that moves a task to a tasklist that takes no new ones. A repeat may have been made before the drain.
func (o *Outcomes) drained(c call.Call, req *yardv1.UpdateRequest) error {
	for i, t := range req.Tasks {
		if t.Tasklist == "" || req.Tries > 1 {
			continue
		}
		if p := catalog.Drains.Tasklists.Of(o.Catalog, c.Domain, t.Tasklist); catalog.Paused(p, c.Now.UnixMilli()) {
			return fault.At(fault.FailedPrecondition, "/tasks/"+strconv.Itoa(i)+"/tasklist", "nothing was changed, the tasklist %q takes no new tasks: it is %s",
				t.Tasklist, validate.ReasonOf("drained", p.By, p.Reason))
		}
	}
	return nil
}

// Send sends each entry of a request to the partition of its task, unless the request is bad.
// Traced are those that end an attempt.
func (o *Outcomes) Send(c call.Call, traced bool, entries []validate.Outcome, bad error, answer call.Answer) {
	if o.Run.Rejects(&c, bad, answer) {
		return
	}
	r := &outcomeRequest{of: o, call: c, answer: answer, traced: traced, hints: hinted(entries), verdicts: make([]*yardv1.Verdict, len(entries)), left: len(entries)}
	slab := make([]yardv1.Verdict, len(entries))
	for i := range entries {
		slab[i].TaskId = entries[i].ID.String()
		r.verdicts[i] = &slab[i]
	}
	r.left++ // our own hold: an answer must not leave before all are on their way
	shares, foreign := r.split(entries)
	for _, i := range foreign {
		r.decide(i, &logv1.EventVerdict{Code: string(fault.NotFound)})
	}
	for _, s := range shares {
		switch err := o.enqueue(s); {
		case err == nil:
		case errors.Is(err, errCancelsWait):
			s.fail(fault.ResourceExhausted, "too many cancels and updates wait for tasks that cannot be looked up now: repeat the entry later")
		case errors.Is(err, natslog.ErrFull):
			s.fail(fault.ResourceExhausted, "the log's storage is full, and takes no new payloads: repeat the entry later")
		default:
			s.fail(fault.ResourceExhausted, "too many outcomes wait for the log")
		}
	}
	r.count(1)
}

// Decide returns the verdicts on entries of a request that does more than that.
func (o *Outcomes) Decide(c call.Call, entries []validate.Outcome) ([]*yardv1.Verdict, error) {
	type answered struct {
		resp codec.Message
		err  error
	}
	done := make(chan answered, 1)
	o.Send(c, false, entries, nil, func(resp codec.Message, err error) { done <- answered{resp, err} })
	is := <-done // by the call's deadline
	if is.err != nil {
		return nil, is.err
	}
	return is.resp.(*yardv1.OutcomeResponse).Verdicts, nil
}

// DecideOne is the verdict on an entry of a request that does more than that. An error other than that of ctx says that the entry was not sent.
func (o *Outcomes) DecideOne(ctx context.Context, c call.Call, entry validate.Outcome) (*yardv1.Verdict, error) {
	done := make(chan *yardv1.Verdict, 1)
	r := &outcomeRequest{
		of: o, call: c, verdicts: []*yardv1.Verdict{{TaskId: entry.ID.String()}}, left: 1,
		answer: func(m codec.Message, _ error) { done <- m.(*yardv1.OutcomeResponse).Verdicts[0] },
	}
	shares, foreign := r.split([]validate.Outcome{entry})
	if len(foreign) > 0 {
		return nil, fault.New(fault.Internal, "task %s is not of this cluster", entry.ID)
	}
	if err := o.enqueue(shares[0]); err != nil {
		return nil, err
	}
	select {
	case v := <-done:
		return v, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// outcomeRequest gathers the verdicts of one request.
type outcomeRequest struct {
	of     *Outcomes
	call   call.Call
	answer call.Answer
	traced bool
	// hints are the entries of which workers are to hear at once, if their tasks run; nil = none.
	hints []bool

	mu       sync.Mutex
	verdicts []*yardv1.Verdict // by entry
	left     int               // entries without a verdict
}

// share is the entries of one request that go to one partition in one batch.
type share struct {
	request   *outcomeRequest
	partition int
	entries   []int // indexes into the request
	events    []*logv1.Event
	bytes     int
}

// urgent tells whether some of it frees slots that others may wait for.
func (s *share) urgent() bool {
	return slices.ContainsFunc(s.events, func(e *logv1.Event) bool {
		return e.Kind != logv1.EventKind_EVENT_KIND_HEARTBEAT && ids.Scarce(e.Nonce)
	})
}

// split groups entries by partition, in order, and cuts what is too large for
// one message. Foreign are entries that cannot be of any task of ours,
// or whose token is forged; nothing is appended for them.
func (r *outcomeRequest) split(entries []validate.Outcome) (shares []*share, foreign []int) {
	open := map[int]*share{}
	for i, e := range entries {
		p := e.ID.Partition()
		if e.Forged || r.of.Tasks.Foreign(e.ID, r.call.Now) {
			foreign = append(foreign, i)
			continue
		}
		size := e.Event.SizeVT() + eventOverhead
		s := open[p]
		if s == nil || s.bytes+size > groupcommit.MessageBytesMax {
			s = &share{request: r, partition: p}
			open[p] = s
			shares = append(shares, s)
		}
		s.entries = append(s.entries, i)
		s.events = append(s.events, e.Event)
		s.bytes += size
	}
	return shares, foreign
}

// eventOverhead is the most that an event takes in its batch besides itself.
const eventOverhead = 5

// decide writes down the verdict of entry i.
func (r *outcomeRequest) decide(i int, v *logv1.EventVerdict) {
	r.write(i, v)
	r.count(1)
}

func (r *outcomeRequest) write(i int, v *logv1.EventVerdict) {
	out := r.verdicts[i]
	out.Code, out.Message = v.Code, v.Message
	switch out.Code {
	case "":
		out.Code = CodeOK
	case string(fault.NotFound):
		out.Message = noSuchTask
	}
	out.CancelRequested = v.CancelRequested
	if v.LeaseUntilMs > 0 {
		out.LeaseMs = max(v.LeaseUntilMs-r.call.ServerNow().UnixMilli(), 1) // never 0, which would say nothing
	}
	if v.DeadlineMs > 0 {
		out.TimeoutMs = max(v.DeadlineMs-r.call.ServerNow().UnixMilli(), 1)
	}
	out.Revision, out.Final = int64(v.Revision), v.Final
}

// count counts n verdicts in; the last one answers the request. The verdicts
// themselves need no lock: each is written by the one who has its entry.
func (r *outcomeRequest) count(n int) {
	r.mu.Lock()
	r.left -= n
	done := r.left == 0
	r.mu.Unlock()
	if !done {
		return
	}
	r.of.metrics.verdicts.Add(int64(len(r.verdicts)))
	if r.hints != nil {
		r.hint()
	}
	r.answer(&yardv1.OutcomeResponse{Verdicts: r.verdicts}, nil)
}

// hinted are the entries that workers are to hear of: cancels, ends by hand, and updates that change when an attempt must end.
func hinted(entries []validate.Outcome) []bool {
	var hints []bool
	for i := range entries {
		e := entries[i].Event
		if e.Kind != logv1.EventKind_EVENT_KIND_CANCEL && e.Kind != logv1.EventKind_EVENT_KIND_ENDED && !e.CancelRunning && e.Update.GetPolicy().GetStartToCloseMs() == 0 && e.Update.GetExpiry().GetFinishWithinMs() == 0 {
			continue
		}
		if hints == nil {
			hints = make([]bool, len(entries))
		}
		hints[i] = true
	}
	return hints
}

// hint tells the workers which of the tasks run. They would hear of it with their next heartbeat.
func (r *outcomeRequest) hint() {
	hint := &yardv1.CancelHint{}
	for i, v := range r.verdicts {
		if r.hints[i] && (v.CancelRequested || v.Revision > 0 && v.Code == CodeOK) {
			hint.TaskIds = append(hint.TaskIds, v.TaskId)
		}
	}
	if len(hint.TaskIds) == 0 {
		return
	}
	data, err := codec.Marshal(codec.JSON, hint)
	if err == nil {
		err = r.of.Bus.PublishCancelHint(r.call.Domain, data)
	}
	if err != nil {
		r.of.Log.Debug("workers were not notified of a cancel", "domain", r.call.Domain, "tasks", len(hint.TaskIds), "error", err)
	}
}

// conclude hands the share its verdicts, in order.
func (s *share) conclude(verdicts []*logv1.EventVerdict) {
	for k, i := range s.entries {
		s.request.write(i, verdicts[k])
	}
	s.request.of.traceOutcomes(s, verdicts)
	s.request.count(len(s.entries))
}

// fail gives all entries of the share the same code.
func (s *share) fail(code fault.Code, why string) {
	for _, i := range s.entries {
		s.request.write(i, &logv1.EventVerdict{Code: string(code), Message: why})
	}
	s.request.count(len(s.entries))
}

// weight is what the share takes up of a group commit, in bytes.
func (s *share) weight() int { return max(s.bytes, len(s.events)*eventBytesMin) }

// Load implements groupcommit.Item.
func (s *share) Load() (domain string, weight int) { return s.request.call.Domain, s.weight() }

// cancels tells whether these are cancels, or updates, redrives, ends by hand, or commands about order keys, which are like them in all here: a request is of one
// kind.
func (s *share) cancels() bool {
	switch s.events[0].Kind {
	case logv1.EventKind_EVENT_KIND_CANCEL, logv1.EventKind_EVENT_KIND_UPDATE, logv1.EventKind_EVENT_KIND_REDRIVEN,
		logv1.EventKind_EVENT_KIND_SKIPPED, logv1.EventKind_EVENT_KIND_UNBLOCKED, logv1.EventKind_EVENT_KIND_ENDED:
		return true
	}
	return false
}

// brings tells whether these are updates with payloads, or ends by hand with results, which may be as large as those of tasks.
func (s *share) brings() bool {
	return slices.ContainsFunc(s.events, func(e *logv1.Event) bool { return e.Update.GetHasPayload() })
}

// cancelBytes is how many bytes weigh as much as a cancel.
const cancelBytes = 4096

// asCancels is as how many cancels the share counts while it waits in history.
func (s *share) asCancels() int { return len(s.events) + s.bytes/cancelBytes }
