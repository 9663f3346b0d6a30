// Package record turns the stored form of tasks and events (contracts/gen/logv1)
// into the core's values and back.
//
// Owns: the mapping. Never does: judge; a value that is out of range here was
// written by us and is taken as it is. On failure: an error for bytes that are
// no record of ours.
package record

import (
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Decoder reads records. It shares equal strings and policies between the
// tasks it makes, since a window holds tens of thousands of a few kinds. One
// decoder belongs to one goroutine.
type Decoder struct {
	strings  map[string]string
	policies map[taskstate.Policy]*taskstate.Policy
	batch    logv1.Batch
	events   logv1.EventBatch
}

// internedMax bounds what a decoder remembers; past it, it starts anew.
const internedMax = 4096

// NewDecoder makes a decoder.
func NewDecoder() *Decoder {
	return &Decoder{strings: map[string]string{}, policies: map[taskstate.Policy]*taskstate.Policy{}}
}

func (d *Decoder) intern(s string) string {
	if s == "" {
		return ""
	}
	if known, ok := d.strings[s]; ok {
		return known
	}
	if len(d.strings) >= internedMax {
		clear(d.strings)
	}
	own := string([]byte(s)) // s may lie in a message's buffer
	d.strings[own] = own
	return own
}

func (d *Decoder) policy(p *logv1.Policy) *taskstate.Policy {
	key := taskstate.Policy{
		MaxAttempts:       max(1, p.GetMaxAttempts()),
		InitialIntervalMS: p.GetInitialIntervalMs(),
		Backoff:           p.GetBackoff(),
		MaxIntervalMS:     p.GetMaxIntervalMs(),
		StartToCloseMS:    p.GetStartToCloseMs(),

		HeartbeatTimeoutMS: p.GetHeartbeatTimeoutMs(),
	}
	if known, ok := d.policies[key]; ok {
		return known
	}
	if len(d.policies) >= internedMax {
		clear(d.policies)
	}
	d.policies[key] = &key
	return &key
}

// Tasks decodes one submit message at pos into tasks that next hands out one by
// one: in a common block, one long-running task would keep the memory of a
// thousand finished ones. The tasks own their bytes.
func (d *Decoder) Tasks(data []byte, pos ids.Position, next func() *taskstate.Task) error {
	defer d.batch.ResetVT() // keeps its records for the next message
	if err := d.batch.UnmarshalVTUnsafe(data); err != nil {
		return fmt.Errorf("submit batch: %w", err)
	}
	for _, r := range d.batch.Tasks {
		t := next()
		if err := d.task(t, r); err != nil {
			return err
		}
		t.Position = pos
		t.State = taskstate.None
		// Kept records must not keep the message's buffer.
		r.Id, r.Payload, r.Trace, r.Result, r.Attempt = nil, nil, nil, nil, nil
	}
	return nil
}

// Task converts one record, keeping its state.
func (d *Decoder) Task(r *logv1.Record) (*taskstate.Task, error) {
	t := new(taskstate.Task)
	if err := d.task(t, r); err != nil {
		return nil, err
	}
	t.State = taskstate.State(r.State)
	t.Position = ids.Position(r.Position)
	return t, nil
}

func (d *Decoder) task(t *taskstate.Task, r *logv1.Record) error {
	id, err := ids.TaskIDFromBytes(r.Id)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	t.ID = id
	t.Domain, t.Tasklist, t.Type = d.intern(r.Domain), d.intern(r.Tasklist), d.intern(r.Type)
	t.Priority = r.Priority
	t.Payload = blob(r.Payload, r.PayloadEncoding)
	t.Policy = d.policy(r.Policy)
	t.Trace = clone(r.Trace)
	t.Version, t.Failures, t.Lost, t.Parkings = r.Version, r.Failures, r.Lost, r.Parkings
	t.DueAt, t.FinishedAt = r.DueAtMs, r.FinishedAtMs
	t.Result = blob(r.Result, r.ResultEncoding)
	t.ErrMessage, t.ErrType = string([]byte(r.ErrorMessage)), d.intern(r.ErrorType)
	t.CancelRequested, t.CancelReason = r.CancelRequested, string([]byte(r.CancelReason))
	if a := r.Attempt; a != nil {
		t.Attempt = taskstate.Attempt{
			Nonce: a.Nonce, Worker: d.intern(a.Worker), StartedAt: a.StartedAtMs, DeadlineAt: a.DeadlineMs,
			BeatBy: a.BeatDeadlineMs, Booked: a.Booked, Progress: blob(a.Progress, a.ProgressEncoding),
			Ended: taskstate.Kind(a.Ended),
		}
	}
	if len(r.Steps) > 0 {
		t.Steps = make([]taskstate.Step, len(r.Steps), len(r.Steps)+4)
		for i, s := range r.Steps {
			t.Steps[i] = taskstate.Step{
				Kind: taskstate.StepKind(s.Kind), At: s.AtMs, Grant: s.Grant, Worker: d.intern(s.Worker),
				Message: string([]byte(s.Message)), ErrType: d.intern(s.ErrorType), DueAt: s.DueAtMs,
			}
		}
	}
	return nil
}

// Events is one decoded event message.
type Events struct {
	ReplyTo   string
	RequestID uint64
	Events    []taskstate.Event
	// Carried holds, by index of Events, the states of carried tasks.
	Carried map[int]*CarriedTask
}

// CarriedTask is the state that the owner wrote for an old active task.
type CarriedTask struct {
	Task *taskstate.Task
	// AsOf is the last event that the state has seen.
	AsOf uint64
}

// Events decodes one event message. The events own their bytes.
func (d *Decoder) Events(data []byte) (*Events, error) {
	defer d.events.ResetVT() // keeps its events for the next message
	if err := d.events.UnmarshalVTUnsafe(data); err != nil {
		return nil, fmt.Errorf("event batch: %w", err)
	}
	out := &Events{
		ReplyTo: d.intern(d.events.ReplyTo), RequestID: d.events.RequestId,
		Events: make([]taskstate.Event, len(d.events.Events)),
	}
	for i, e := range d.events.Events {
		id, err := ids.TaskIDFromBytes(e.TaskId)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
		out.Events[i] = taskstate.Event{
			Kind: taskstate.Kind(e.Kind), ID: id,
			Fence:  ids.Token{Position: ids.Position(e.Position), Version: e.Version, Nonce: e.Nonce},
			Domain: d.intern(e.Domain), Worker: d.intern(e.Worker), Booked: e.Booked,
			Data: blob(e.Data, e.DataEncoding), Message: string([]byte(e.Message)), ErrType: d.intern(e.ErrorType),
			NonRetryable: e.NonRetryable, DelayMS: e.DelayMs,
		}
		if e.Carried != nil {
			t, err := d.Task(e.Carried)
			if err != nil {
				return nil, fmt.Errorf("event %d: %w", i, err)
			}
			if out.Carried == nil {
				out.Carried = map[int]*CarriedTask{}
			}
			out.Carried[i] = &CarriedTask{Task: t, AsOf: e.Carried.AsOf}
		}
		// Kept events must not keep the message's buffer.
		e.TaskId, e.Data, e.Carried = nil, nil, nil
	}
	return out, nil
}

func blob(data []byte, encoding int32) taskstate.Blob {
	return taskstate.Blob{Data: clone(data), Encoding: encoding}
}

func clone(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}
