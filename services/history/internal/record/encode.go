package record

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Encoder writes tasks in their stored form, reusing its messages: a finished
// task costs no allocation but the bytes it becomes. One encoder belongs to one goroutine.
type Encoder struct {
	// Tokens print the tokens of granted attempts; only Polled needs them.
	Tokens *ids.Tokens
	// NowMS is the time of the log, Unix ms: what is left of an attempt's time is as of then.
	NowMS int64

	record  logv1.Record
	policy  logv1.Policy
	attempt logv1.Attempt
	steps   []logv1.Step
	stepRef []*logv1.Step
	polled  yardv1.PolledTask
	payload yardv1.Payload
}

// AppendTask appends t behind a batch under construction: since protobuf
// lists are concatenated, a batch can grow task by task.
func (e *Encoder) AppendTask(batch []byte, t *taskstate.Task) []byte {
	return appendMessage(batch, fieldTasks, e.Record(t))
}

// appendMessage appends a message as a field of another one.
func appendMessage(to []byte, field protowire.Number, m interface {
	SizeVT() int
	MarshalToSizedBufferVT(data []byte) (int, error)
},
) []byte {
	size := m.SizeVT()
	to = protowire.AppendVarint(protowire.AppendTag(to, field, protowire.BytesType), uint64(size))
	at := len(to)
	to = append(to, make([]byte, size)...)
	if _, err := m.MarshalToSizedBufferVT(to[at:]); err != nil {
		panic("record: " + err.Error()) // only a wrong size could be the cause
	}
	return to
}

// Size is about how many bytes AppendTask appends.
func (e *Encoder) Size(t *taskstate.Task) int { return e.Record(t).SizeVT() + 8 }

// AppendStamp ends a batch for the timer store: its log version and the epoch of the owner
// that writes it.
func AppendStamp(batch []byte, version uint32, epoch uint64) []byte {
	batch = protowire.AppendTag(batch, 3, protowire.VarintType) // Batch.log_version
	batch = protowire.AppendVarint(batch, uint64(version))
	batch = protowire.AppendTag(batch, 4, protowire.VarintType) // Batch.epoch
	return protowire.AppendVarint(batch, epoch)
}

// Record converts t; the result is good until the next call.
func (e *Encoder) Record(t *taskstate.Task) *logv1.Record {
	r := &e.record
	r.Reset()
	r.Id = t.ID[:]
	r.Domain, r.Tasklist, r.Type, r.Priority = t.Domain, t.Tasklist, t.Type, t.Priority
	r.Payload, r.PayloadEncoding = t.Payload.Data, t.Payload.Encoding
	fillPolicy(&e.policy, t.Policy)
	r.Policy = &e.policy
	r.DueAtMs, r.Trace = t.DueAt, []byte(t.Trace)
	r.Headers, r.Expiry, r.Group = storedHeaders(t.HeaderList()), storedExpiry(t.Expiry()), t.Group()
	r.Cost, r.HandedBack, r.Unique = t.Cost(), t.HandedBack, storedUnique(t.Unique())
	r.Updates, r.Redriven, r.Order = storedUpdates(t.Extra), storedRedriven(t.Extra), storedOrder(t.Order())
	if b := t.Batch(); b != nil {
		r.BatchId, r.BatchMadeMs = b.ID, b.Made
	}
	r.State, r.Version, r.Failures, r.Lost = int32(t.State), t.Version, t.Failures, int32(t.Lost)
	r.Result, r.ResultEncoding = t.Result.Data, t.Result.Encoding
	r.ErrorMessage, r.ErrorType, r.FinishedAtMs = t.ErrMessage, t.ErrType, t.FinishedAt
	r.Parkings, r.CancelRequested, r.CancelReason = t.Parkings, t.CancelRequested, t.CancelReason
	r.Position, r.ReadyAtMs, r.StepsDropped = uint64(t.Position), t.ReadyAt, t.StepsDropped
	if t.Version > 0 {
		a := &e.attempt
		a.Reset()
		a.Nonce, a.Worker, a.StartedAtMs, a.DeadlineMs = t.Attempt.Nonce, t.Attempt.Worker.Name(), t.Attempt.StartedAt, t.Attempt.DeadlineAt
		a.WorkerId, a.SignsEveryMs = t.Attempt.Worker.ID(), t.Attempt.Worker.SignsEvery()
		a.BeatDeadlineMs, a.Limits, a.Ended = t.Attempt.BeatBy, t.Attempt.Limits.Refs(), int32(t.Attempt.Ended)
		a.Progress, a.ProgressEncoding = t.Attempt.Progress.Data, t.Attempt.Progress.Encoding
		r.Attempt = a
	}
	e.fillSteps(r, t.Steps)
	return r
}

func (e *Encoder) fillSteps(r *logv1.Record, steps []taskstate.Step) {
	if len(e.steps) < len(steps) {
		e.steps = make([]logv1.Step, 2*len(steps))
		e.stepRef = make([]*logv1.Step, len(e.steps))
		for i := range e.steps {
			e.stepRef[i] = &e.steps[i]
		}
	}
	r.Steps = e.stepRef[:len(steps)]
	for i, s := range steps {
		m := r.Steps[i]
		m.Kind, m.AtMs, m.Grant, m.Worker = int32(s.Kind), s.At, s.Grant, s.Worker
		m.Message, m.ErrorType, m.DueAtMs = s.Message, s.ErrType, s.DueAt
	}
}
