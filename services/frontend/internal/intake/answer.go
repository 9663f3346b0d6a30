package intake

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/intake"
)

// finish answers a request of one share, which has ended, or reports the end of a share.
func (in *Intake) finish(s *submission, end core.End) {
	switch {
	case end.Kind != core.Stored:
		s.counted.resolve(false, s.partition)
	case s.Guard == core.Named && !end.Wrote && end.Certain: // another request has stored it
		s.charge.Return(s.tasks())
		fallthrough
	default:
		s.counted.resolve(true, s.partition)
		in.metrics.countStored(s.call.Domain, s.accepted.Records, time.Since(s.call.Received))
	}
	switch {
	case s.ended != nil:
		if end.Kind == core.NotStored {
			s.charge.Return(s.tasks())
		}
		s.ended(end)
	case end.Kind == core.Stored:
		in.answer(s)
	case end.Kind == core.Unknown:
		in.unknown(s)
	default:
		in.refuse(s, s, end)
	}
}

// failed ends s if what stores it has failed; else that has answered.
func (in *Intake) failed(s *submission) call.Answer {
	return func(_ codec.Message, err error) {
		if s.failure = err; err != nil {
			in.finish(s, core.End{Kind: core.NotStored, Why: core.Failed, Certain: true})
		}
	}
}

// join answers s, whose shares have ended; of is the one with the reason. It calls stored before, if what became of each task is known.
func (in *Intake) join(s *submission, ends []core.End, of func(i int) *submission, stored func()) {
	answer, i := core.Join(ends)
	switch answer {
	case core.Results:
		stored()
		in.answer(s)
	case core.RestRefused:
		if !s.decided() {
			in.refuse(s, of(i), ends[i])
			return
		}
		for i, r := range s.results {
			if r == nil {
				s.results[i] = &yardv1.SubmitResult{Outcome: yardv1.SubmitOutcome_SUBMIT_OUTCOME_REFUSED}
			}
		}
		stored()
		in.answer(s)
	case core.NotKnown:
		in.unknown(s)
	case core.SomeStored:
		in.metrics.unknown.Add(1)
		in.end(s, fault.New(fault.Unknown, "some of the tasks are stored, and some are not: repeat the request with its request_id; those that are not: %v",
			in.why(of(i), ends[i])).After(call.AwayRetryAfter))
	case core.None:
		in.refuse(s, of(i), ends[i])
	}
}

// answer answers s: what became of each task is known.
func (in *Intake) answer(s *submission) {
	in.traceStored(s, s.began, time.Now())
	results := s.outcomes()
	if s.wait < 0 || results[0].Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_REJECTED || results[0].Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_REFUSED {
		s.answer(&yardv1.SubmitResponse{Results: results, NowMs: s.nowMs()}, nil)
		return
	}
	in.waitForResult(s, results)
}

// refuse answers s: it was not stored, since one of its shares, or the only one, was not.
func (in *Intake) refuse(s, share *submission, end core.End) {
	err := in.why(share, end)
	switch end.Why {
	case core.OverCap:
		in.metrics.submitsRefused.full(err)
	case core.StorageFull:
		in.metrics.submitsRefused.storage.Add(1)
	default:
	}
	in.end(s, err)
}

// why is what refuses a share that ended so.
func (in *Intake) why(s *submission, end core.End) error {
	switch end.Why {
	case core.TakenLate:
		return unavailable("the log took it too late")
	case core.TooOld:
		return s.otherClock(fault.At(fault.FailedPrecondition, "/request_id",
			"its time is %v ago: no try was stored, and after %v none is any more: submit the tasks with a new id", s.age().Truncate(time.Second), tries.AppendUntil))
	case core.OverCap:
		return s.over
	case core.StorageFull:
		return call.StorageFull()
	case core.Refusal:
		return s.refusal
	case core.Failed:
		return s.failure
	case core.Late, core.NotTried:
	}
	if in.Run.Base().Err() != nil {
		return unavailable("the frontend is stopping")
	}
	return unavailable("no partition of the log took it in time")
}

func unavailable(why string) error {
	return fault.New(fault.Unavailable, "nothing was stored: %s", why).After(call.AwayRetryAfter)
}

// end answers s with an error.
func (in *Intake) end(s *submission, err error) {
	s.counted.resolve(false, s.partition)
	s.charge.Failed(s.tasks(), err)
	s.endSpans(err)
	s.answer(nil, err)
}

// unknown answers s: its outcome is not known.
func (in *Intake) unknown(s *submission) {
	in.metrics.unknown.Add(1)
	what := "repeat the request with its request_id"
	if !s.HasID {
		what = "without a request_id a repeat may store them twice"
	}
	in.end(s, fault.New(fault.Unknown, "the log did not say whether the tasks were stored: %s", what).After(call.AwayRetryAfter))
}

// waitForResult answers an accepted submit of one task with its end.
func (in *Intake) waitForResult(s *submission, results []*yardv1.SubmitResult) {
	r := s.accepted.Records[0]
	id, _ := ids.ParseTaskID(results[0].TaskId) // it is ours
	until := s.call.Received.Add(s.wait)
	resp := &yardv1.SubmitResponse{Results: results, NowMs: s.nowMs()}
	// Known without asking: the log has it.
	resp.Task = &yardv1.Task{
		TaskId: resp.Results[0].TaskId, Domain: r.Domain, Tasklist: r.Tasklist, Type: r.Type, Priority: r.Priority,
		State: yardv1.TaskState_TASK_STATE_QUEUED, CreatedAtMs: s.Made.UnixMilli(), DueAtMs: r.DueAtMs, Headers: s.headers,
		Group: r.Group, Cost: r.Cost, UniqueKey: r.Unique.GetKey(), UniqueForMs: r.Unique.GetForMs(), OrderKey: r.Order.GetKey(), BatchId: r.BatchId,
	}
	if results[0].Outcome != yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED {
		resp.Task = &yardv1.Task{TaskId: results[0].TaskId, Domain: r.Domain, UniqueKey: r.Unique.GetKey()}
	}
	in.Run.Wait(s.call.Domain, until.Add(call.WaitGrace), func(_ codec.Message, err error) {
		// The task is accepted, so whatever became of the wait is no error.
		if e := fault.From(err); e != nil {
			resp.WaitCode, resp.WaitRetryAfterMs = string(e.Code), e.RetryAfter.Milliseconds()
		}
		s.answer(resp, nil)
	}, func(ctx context.Context) (codec.Message, error) {
		task, err := in.Tasks.Finished(ctx, s.call.Domain, id, resp.Task, until)
		if err == nil {
			resp.Task = task
		}
		return nil, err
	})
}
