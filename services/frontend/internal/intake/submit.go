package intake

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/tries"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// Submit accepts tasks (tasks.submit).
func (in *Intake) Submit(c call.Call, req *yardv1.SubmitRequest, answer call.Answer) {
	s, err := in.submission(c, req, answer)
	switch {
	case err != nil:
		answer(nil, err)
	case s.batch() != "":
		in.joinBatch(s)
	default:
		in.route(s)
	}
}

// submission checks a request.
func (in *Intake) submission(c call.Call, req *yardv1.SubmitRequest, answer call.Answer) (*submission, error) {
	if err := in.Run.Domain(&c); err != nil {
		return nil, err
	}
	s := &submission{call: c, answer: answer, seed: rand.Uint64(), waitFor: waitFor{wait: -1}}
	s.Made = c.Now
	if err := in.named(s, req); err != nil {
		return nil, err
	}
	judged := c.Now
	if s.Made.Before(judged) {
		judged = s.Made // or a repeat could be refused for its age
	}
	if err := validate.Submit(req, judged, c.Form()); err != nil {
		return nil, err
	}
	if s.refusal = in.Drained(c, req); s.refusal != nil && !s.Repeats() {
		return nil, s.refusal
	}
	if req.Wait {
		s.wait, s.headers = validate.SubmitWaitDefault, req.Tasks[0].Headers
		if req.WaitMs > 0 {
			s.wait = time.Duration(req.WaitMs) * time.Millisecond
		}
	}
	var requestTrace []byte
	s.span, requestTrace = in.startSubmit(c)
	s.conflicts = conflictsOf(req.Tasks)
	terms := call.Terms(in.Catalog, c.Domain, c.Now)
	terms.Trace, terms.RequestTrace = telemetry.ParseTraceparent, requestTrace
	s.accepted = validate.Accept(req, terms)
	in.startTasks(s, requestTrace)
	if s.HasID {
		s.date(tries.AliveFor)
	}
	s.place(0) // so that sizes are right
	if s.batch() != "" {
		s.joins(c.Now.UnixMilli())
	}
	if err := s.measure(in.Log.MessageBytesMax(), in.LogVersion()); err != nil {
		s.endSpans(err)
		return nil, err
	}
	s.charge = in.Quotas.Charge(c.Domain, s.tasks(), s.bytes)
	return s, nil
}

// named takes the request's id into s, if it has one.
func (in *Intake) named(s *submission, req *yardv1.SubmitRequest) error {
	id, named, err := validate.RequestID(req)
	if err != nil || !named {
		return err
	}
	if refused := s.badTime(s.call.Now.Sub(id.Time()), req.Tries); refused != nil {
		return refused
	}
	// The number of tasks is part of it, so that no other number is answered for. Only this cluster can make the
	// seed: a client that could make one up could submit a task under the id of another domain's.
	seal := in.Tokens.Seal(s.call.Domain, append([]byte("request\x00"+strconv.Itoa(len(req.Tasks))+"\x00"), id[:]...))
	s.message, s.home = messageID(seal), int(binary.BigEndian.Uint64(seal[8:])%uint64(in.Partitioning.History))
	s.seed = binary.BigEndian.Uint64(seal[:])
	s.Made, s.Tries, s.HasID = id.Time(), req.Tries, true
	return nil
}

// badTime is the refusal of a request for its age, or nil. It reports the server's clock to a repeat only if no other
// server can have taken an earlier try.
func (s *submission) badTime(age time.Duration, try int32) error {
	bad, alone := tries.Check(age, try)
	var text string
	code := fault.FailedPrecondition
	switch bad {
	case tries.Fine:
		return nil
	case tries.Ahead:
		code, text = fault.InvalidTime, fmt.Sprintf("its time is %v ahead of the server's clock", -age.Truncate(time.Millisecond))
	case tries.Forgotten:
		text = fmt.Sprintf("was made %v ago, and is known for %v", age.Truncate(time.Second), tries.RepeatMax)
	case tries.FirstOld:
		text = fmt.Sprintf("its time is %v behind the server's clock, and a first try may be up to %v", age.Truncate(time.Millisecond), tries.AppendUntil)
	}
	refused := fault.At(code, "/request_id", "%s", text)
	if alone {
		refused = s.otherClock(refused)
	}
	return refused
}

// route brings s into the log, by its keys.
func (in *Intake) route(s *submission) {
	switch {
	case s.unique():
		in.storeKeyed(s)
	case s.ordered():
		in.storeOrdered(s)
	default:
		in.store(s)
	}
}

// joinBatch stores the tasks of s in their batch, if it is open. It answers s.
func (in *Intake) joinBatch(s *submission) {
	made, known, first := in.openBatches.find(s)
	if known {
		s.joins(made)
		in.route(s)
		return
	}
	if !first {
		return
	}
	of := s.batchRef()
	var all []*submission
	failed := func(_ codec.Message, err error) {
		if err == nil {
			return
		}
		for _, s := range append(all, in.openBatches.read(of)...) {
			in.end(s, err)
		}
	}
	in.Run.Query(of.domain, time.Now().Add(in.AppendTimeout), failed, func(ctx context.Context) (codec.Message, error) {
		home, _, err := in.Homes.Home(ctx, of.domain, of.id)
		if err == nil && home.GetClosedAtMs() == 0 && home != nil {
			in.openBatches.learn(of, home.CreatedAtMs)
		}
		all = in.openBatches.read(of)
		if err == nil && home.GetClosedAtMs() != 0 && slices.ContainsFunc(all, func(s *submission) bool { return s.Repeats() }) { // what is not stored by now never will be
			err = in.Homes.CloseMembers(ctx, of.domain, home)
		}
		for len(all) > 0 {
			s := all[0]
			all = all[1:]
			in.joinHome(s, home, err)
		}
		return nil, nil
	})
}

// joinHome stores the tasks of s in a batch, if it is open; nil = there is none. It answers s.
func (in *Intake) joinHome(s *submission, home *logv1.BatchHome, err error) {
	refused := batchRefusal(s.batch(), home)
	switch {
	case err != nil && s.Repeats():
		in.unknown(s)
		return
	case err != nil:
		in.end(s, err)
		return
	case refused == nil:
		s.joins(home.CreatedAtMs)
	case !s.Repeats():
		in.end(s, refused)
		return
	default:
		s.refusal, s.Closed = refused, true
	}
	in.route(s)
}
