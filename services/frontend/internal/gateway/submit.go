package gateway

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/polls"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// submission is one submit on its way into the log.
type submission struct {
	call     Call
	answer   Answer
	accepted validate.Accepted
	// at and seed make the ids: with the partition they give the same ids again. If the client has named the
	// request (hasID), its id makes them, and message, home and tries; alone says that it does not go with the
	// group commit, within how long after at the log may take it, certain that no try of ours may have been stored.
	at                    time.Time
	seed                  uint64
	message               messageID
	home                  int
	tries                 int32
	hasID, alone, certain bool
	within                time.Duration
	held                  held
	// refusal refuses it, unless an earlier try was stored: its batch takes no tasks, or what it is for is drained. closed: it is for its batch, so what is
	// not stored by now never will be.
	refusal error
	closed  bool
	// starts is what it starts with its append; nil = nothing.
	starts *polls.Submit
	// pinned: it goes to its home partition only.
	pinned bool
	// partition is where it is now; ids tell it too. Tasks with unique keys may be in several: in[i] is that of task i then. Results are what
	// became of these, one by one.
	partition int
	in        []int
	results   []*yardv1.SubmitResult
	// conflicts are what tasks ask for where their key is taken, by task.
	conflicts map[int]yardv1.OnConflict
	size
	waitFor

	span trace.Span // of the request; never nil
	// spans are those of the tasks with a trace of their own, by task; nil at the
	// others, and as a whole where there is none.
	spans []trace.Span
}

// waitFor is what a submission waits for before it is answered.
type waitFor struct {
	wait time.Duration // for the result; negative = not asked for
	// headers are those of the task whose result is waited for.
	headers map[string]string
}

// size is what a submission takes.
type size struct {
	// weight is what it takes up of a group commit, in bytes; bytes is what it takes in the log.
	weight, bytes int
	// charge is what its domain's quota counts.
	charge *quotas.Charge
}

func (s *submission) tasks() int { return len(s.accepted.Records) }

// Submit accepts tasks (tasks.submit).
func (g *Gateway) Submit(c Call, req *yardv1.SubmitRequest, answer Answer) {
	s, err := g.submission(c, req, answer)
	switch {
	case err != nil:
		answer(nil, err)
	case s.batch() != "":
		g.joinBatch(s)
	default:
		g.route(s)
	}
}

// route brings s into the log, by its keys.
func (g *Gateway) route(s *submission) {
	switch {
	case s.unique():
		g.query(s.call.Domain, s.call.Deadline, s.failed, s.eachOnce(g))
	case s.ordered():
		g.submitOrdered(s)
	default:
		g.store(s)
	}
}

// store brings s into the log as one message. It answers s, now or later.
func (g *Gateway) store(s *submission) {
	if s.alone {
		g.query(s.call.Domain, s.call.Deadline, s.failed, s.once(g))
		return
	}
	if err := g.admit(s); err != nil {
		g.metrics.submitsRefused.full(err)
		s.refuse(err)
		return
	}
	g.appender.place(s)
}

// submission checks a request.
func (g *Gateway) submission(c Call, req *yardv1.SubmitRequest, answer Answer) (*submission, error) {
	if err := g.domain(&c); err != nil {
		return nil, err
	}
	s := &submission{call: c, answer: answer, at: c.Now, seed: rand.Uint64(), waitFor: waitFor{wait: -1}, certain: true}
	if err := s.named(g, req); err != nil {
		return nil, err
	}
	judged := c.Now
	if s.at.Before(judged) {
		judged = s.at // or a repeat could be refused for its age
	}
	if err := validate.Submit(req, judged, c.form()); err != nil {
		return nil, err
	}
	if s.refusal = g.drained(c, req); s.refusal != nil && !s.repeats() {
		return nil, s.refusal
	}
	if req.Wait {
		s.wait, s.headers = validate.SubmitWaitDefault, req.Tasks[0].Headers
		if req.WaitMs > 0 {
			s.wait = time.Duration(req.WaitMs) * time.Millisecond
		}
	}
	var requestTrace []byte
	s.span, requestTrace = g.startSubmit(c)
	s.conflicts = conflicts(req.Tasks)
	s.accepted = validate.Accept(req, validate.Terms{
		Domain: c.Domain, Now: c.Now, Trace: telemetry.ParseTraceparent, RequestTrace: requestTrace,
		Type:     func(name string) *yardv1.TaskType { return catalog.Types.Of(g.Catalog, c.Domain, name) },
		Tasklist: func(name string) *yardv1.Tasklist { return catalog.Tasklists.Of(g.Catalog, c.Domain, name) },
	})
	g.startTasks(s, requestTrace)
	s.date()
	s.place(0) // so that sizes are right
	if s.batch() != "" {
		s.joins(c.Now.UnixMilli())
	}
	if err := s.measure(g.History.MessageBytesMax(), g.LogVersion()); err != nil {
		s.endSpans(err)
		return nil, err
	}
	s.charge = g.Quotas.Charge(c.Domain, s.tasks(), s.bytes)
	return s, nil
}

// date tells the log until when it may take s.
func (s *submission) date() {
	for _, r := range s.accepted.Records {
		r.WithinMs = s.within.Milliseconds()
	}
}

// place gives every task its id in partition p.
func (s *submission) place(p int) {
	s.partition = p
	slab := make([]byte, 0, len(ids.TaskID{})*s.tasks())
	for i, r := range s.accepted.Records {
		id := s.id(i)
		slab = append(slab, id[:]...)
		r.Id = slab[len(slab)-len(id):]
	}
}

// id is that of task i.
func (s *submission) id(i int) ids.TaskID {
	p := s.partition
	if s.in != nil {
		p = s.in[i]
	}
	return ids.NewTaskID(s.at, p, mix(s.seed, i))
}

// mix is the i-th number of the SplitMix64 sequence that starts at seed: one
// number names all tasks of a request.
func mix(seed uint64, i int) uint64 {
	z := seed + uint64(i)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// measure works out the weight, and refuses what no log message can hold.
func (s *submission) measure(messageBytesMax int, version uint32) error {
	s.bytes = merged([]*submission{s}, version).SizeVT()
	if s.bytes > messageBytesMax {
		return fault.At(fault.InvalidArgument, "/tasks", "take %d bytes together, the log takes %d in one message: send fewer at once", s.bytes, messageBytesMax)
	}
	// A batch is bounded in bytes and in tasks; the heavier one counts.
	s.weight = max(s.bytes, s.tasks()*(batchBytesMax/validate.BatchMax))
	return nil
}

// outcomes tells of every task that it is stored, or what became of those with unique keys.
func (s *submission) outcomes() []*yardv1.SubmitResult {
	if s.results != nil {
		return s.results
	}
	slab := make([]yardv1.SubmitResult, s.tasks()) // one allocation for all
	out := make([]*yardv1.SubmitResult, len(slab))
	for i := range slab {
		slab[i].TaskId, slab[i].Outcome = s.id(i).String(), yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED
		out[i] = &slab[i]
	}
	return out
}

// stored answers s: it is in the log. sent and acked are when it was appended.
func (g *Gateway) stored(s *submission, sent, acked time.Time) {
	s.held.resolve(true, s.partition)
	g.metrics.accepted(s.call.Domain, s.accepted.Records, acked.Sub(s.call.Received))
	g.answerSubmit(s, sent, acked)
}

// answerSubmit answers s: what became of each task is known.
func (g *Gateway) answerSubmit(s *submission, sent, acked time.Time) {
	g.traceStored(s, sent, acked)
	results := s.outcomes()
	if s.wait < 0 || results[0].Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_REJECTED || results[0].Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_REFUSED {
		s.answer(&yardv1.SubmitResponse{Results: results, NowMs: s.nowMs()}, nil)
		return
	}
	g.waitForResult(s, results)
}

// refuse answers s: it was not stored, or this is unknown.
func (s *submission) refuse(err error) {
	s.held.resolve(false, s.partition)
	s.charge.Failed(s.tasks(), err)
	s.endSpans(err)
	s.answer(nil, err)
}

// decided reports whether some tasks of s have a result.
func (s *submission) decided() bool {
	return slices.ContainsFunc(s.results, func(r *yardv1.SubmitResult) bool { return r != nil })
}

// refuseRest answers s, of whose tasks those without a result were refused for good.
func (s *submission) refuseRest(refused error, answer func()) {
	if !s.decided() {
		s.refuse(refused)
		return
	}
	for i, r := range s.results {
		if r == nil {
			s.results[i] = &yardv1.SubmitResult{Outcome: yardv1.SubmitOutcome_SUBMIT_OUTCOME_REFUSED}
		}
	}
	answer()
}

// failed answers s if what stores it has failed; else that has answered.
func (s *submission) failed(_ codec.Message, err error) {
	if err != nil {
		s.refuse(err)
	}
}

// refuseFull answers s: there is no room for it to wait.
func (g *Gateway) refuseFull(s *submission) {
	g.metrics.submitsRefused.busy.Add(1)
	s.refuse(fault.New(fault.ResourceExhausted, "too many tasks wait for the log").After(fullRetryAfter))
}

// unavailable answers s: it is certain that it was not stored.
func (s *submission) unavailable(why string) {
	s.refuse(fault.New(fault.Unavailable, "nothing was stored: %s", why).After(awayRetryAfter))
}

// unknown answers s: its outcome is not known.
func (g *Gateway) unknown(s *submission) {
	g.metrics.unknown.Add(1)
	what := "repeat the request with its request_id"
	if !s.hasID {
		what = "without a request_id a repeat may store them twice"
	}
	s.refuse(fault.New(fault.Unknown, "the log did not say whether the tasks were stored: %s", what).After(awayRetryAfter))
}

func newMessageID() messageID {
	var id messageID
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	return id
}

// refuseStorageFull answers s: no partition has room, one that is set aside included. It does not wait for
// room, which takes a person or the end of a retention.
func (g *Gateway) refuseStorageFull(s *submission) {
	g.metrics.submitsRefused.storage.Add(1)
	s.refuse(errStorageFull())
}

func errStorageFull() *fault.Error {
	return fault.New(fault.ResourceExhausted,
		"the log's storage is full: nothing was stored; give JetStream more room, or wait until finished tasks are forgotten, and repeat the request").After(storageRetryAfter)
}

// Warn is a warning if partitions accept no tasks for lack of space, or if appends to some are slow.
func (g *Gateway) Warn() error {
	if n := g.placement.Full(time.Now()); n > 0 {
		return fmt.Errorf("the log's storage is full in %d of %d partitions: submits are refused there", n, g.Partitioning.History)
	}
	return g.placement.Slow()
}
