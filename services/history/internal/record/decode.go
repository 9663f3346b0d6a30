// Package record turns the stored form of tasks and events (contracts/gen/logv1)
// into the core's values and back.
//
// Owns: the mapping. Never does: check limits; a value that is out of range here was
// written by us and is taken as it is, but for those that a task cannot live with: a name that
// no subject can hold, a priority that has no lane. On failure: an error for bytes that
// are no record of ours.
package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Decoder reads records. It shares equal strings and policies between the
// tasks it makes, since a window holds tens of thousands of a few kinds. One
// decoder belongs to one goroutine.
type Decoder struct {
	strings  map[string]string
	names    map[string]string // of domains and tasklists, checked
	types    map[string]string // checked
	workers  map[workerKey]*taskstate.Worker
	policies map[taskstate.Policy]*taskstate.Policy
	rules    map[string]*taskstate.Rules
	terms    map[taskstate.TypeName]*taskstate.Terms
	// lastPolicy is the last one: most often the next task has the same.
	lastPolicy *taskstate.Policy
	paths      map[string]*taskstate.Path
	key        []byte // of what is looked up in paths and rules
	batch      logv1.Batch
	events     logv1.EventBatch
}

// internedMax bounds what a decoder remembers; past it, it starts again.
const internedMax = 4096

// NewDecoder makes a decoder.
func NewDecoder() *Decoder {
	return &Decoder{
		strings: map[string]string{}, names: map[string]string{}, types: map[string]string{}, workers: map[workerKey]*taskstate.Worker{},
		policies: map[taskstate.Policy]*taskstate.Policy{}, rules: map[string]*taskstate.Rules{}, paths: map[string]*taskstate.Path{},
		terms: map[taskstate.TypeName]*taskstate.Terms{},
	}
}

func (d *Decoder) intern(s string) string {
	if s == "" {
		return ""
	}
	known, _ := interned(d.strings, s, nil)
	return known
}

// interned is s as it is kept in a map, where it comes once it is checked.
func interned(all map[string]string, s string, check func(string) error) (string, error) {
	if known, ok := all[s]; ok {
		return known, nil
	}
	if check != nil {
		if err := check(s); err != nil {
			return "", err
		}
	}
	if len(all) >= internedMax {
		clear(all)
	}
	own := string([]byte(s)) // s may lie in a message's buffer
	all[own] = own
	return own, nil
}

type workerKey struct {
	name, id   string
	signsEvery int64
}

// worker is the one with a name and an id, which gives signs of life so often; nil if nothing is known of it.
func (d *Decoder) worker(name, id string, signsEvery int64) *taskstate.Worker {
	if name == "" && id == "" {
		return nil
	}
	if known := d.workers[workerKey{name, id, signsEvery}]; known != nil {
		return known
	}
	if len(d.workers) >= internedMax {
		clear(d.workers)
	}
	own := workerKey{d.intern(name), string([]byte(id)), signsEvery}
	d.workers[own] = taskstate.NewWorker(own.name, own.id, signsEvery)
	return d.workers[own]
}

// labels fills in what a task is filed by. A record whose labels no request can have
// would never be finished: no subject holds a bad name, and no lane another priority.
func (d *Decoder) labels(t *taskstate.Task, r *logv1.Record) (err error) {
	if t.Domain, err = interned(d.names, r.Domain, ids.CheckName); err != nil {
		return fmt.Errorf("record: its domain %w", err)
	}
	if t.Tasklist, err = interned(d.names, r.Tasklist, ids.CheckName); err != nil {
		return fmt.Errorf("record: its tasklist %w", err)
	}
	if t.Type, err = interned(d.types, r.Type, ids.CheckTypeName); err != nil {
		return fmt.Errorf("record: its type %w", err)
	}
	if t.Priority = r.Priority; t.Priority < int32(ids.LaneFirst) || t.Priority > int32(ids.LaneLast) {
		return fmt.Errorf("record: its priority is %d", r.Priority)
	}
	return nil
}

func (d *Decoder) policy(p *logv1.Policy) *taskstate.Policy {
	key := taskstate.Policy{
		MaxAttempts:       max(1, p.GetMaxAttempts()),
		InitialIntervalMS: p.GetInitialIntervalMs(),
		Backoff:           p.GetBackoff(),
		MaxIntervalMS:     p.GetMaxIntervalMs(),
		StartToCloseMS:    p.GetStartToCloseMs(),

		HeartbeatTimeoutMS: p.GetHeartbeatTimeoutMs(),

		MaxDeliveries: p.GetMaxDeliveries(),
		Jitter:        taskstate.Jitter(p.GetJitter()),
		OnLost:        taskstate.OnLost(p.GetOnLost()),
		OnTimeout:     taskstate.OnTimeout(p.GetOnTimeout()),
		Rules:         d.rulesOf(p),
		OfType:        taskstate.Fields(p.GetOfType()),
		TypeRevision:  p.GetTypeRevision(),
	}
	if d.lastPolicy != nil && *d.lastPolicy == key {
		return d.lastPolicy
	}
	if known, ok := d.policies[key]; ok {
		d.lastPolicy = known
		return known
	}
	if len(d.policies) >= internedMax {
		clear(d.policies)
	}
	own := new(taskstate.Policy) // key itself stays on the stack
	*own = key
	d.policies[key], d.lastPolicy = own, own
	return own
}

// pathOf is the path of limits as it is kept.
func (d *Decoder) pathOf(limits ...string) *taskstate.Path {
	if len(limits) == 0 {
		return nil
	}
	d.key = d.key[:0]
	for _, limit := range limits {
		d.key = append(append(d.key, limit...), ' ')
	}
	if known, ok := d.paths[string(d.key)]; ok {
		return known
	}
	if len(d.paths) >= internedMax {
		clear(d.paths)
	}
	own := make([]string, len(limits))
	for i, limit := range limits {
		own[i] = d.intern(limit)
	}
	p := taskstate.NewPath(own...)
	d.paths[string(d.key)] = p
	return p
}

// Submits decodes one submit message. Records that cannot be read are returned apart,
// each encoded as a batch of its own; the good ones go on. Each task is in a block of
// memory of its own: in a common one, one long-running task would keep the memory of a
// thousand finished ones. The tasks own their bytes. Those that the log stored too late are void, and left out: at is
// when it stored the message.
func (d *Decoder) Submits(data []byte, at time.Time) (tasks []*replica.Entry, bad []Bad, err error) {
	return d.SubmitsOf("", data, at)
}

// SubmitsOf decodes a submit message that is filed at a place: it may have tasks of that alone.
func (d *Decoder) SubmitsOf(filed ids.Place, data []byte, at time.Time) (tasks []*replica.Entry, bad []Bad, err error) {
	defer d.batch.ResetVT() // keeps its records for the next message
	if err := d.batch.UnmarshalVTUnsafe(data); err != nil {
		return nil, nil, fmt.Errorf("submit batch: %w", err)
	}
	if err := logversion.Check(d.batch.LogVersion); err != nil {
		return nil, nil, fmt.Errorf("submit batch: %w", err)
	}
	tasks = make([]*replica.Entry, 0, len(d.batch.Tasks))
	domain, tasklist := filed.Domain(), filed.Tasklist()
	for _, r := range d.batch.Tasks {
		Date(r, at)
		e := new(replica.Entry)
		err := d.task(&e.Task, r)
		if s := r.Start; err == nil && s != nil && at.UnixMilli() <= s.NotAfterMs {
			taskstate.StartsDirectly(&e.Task, s.Nonce, d.worker(s.Worker, s.WorkerId, 0))
		}
		if err == nil && (domain != "" && e.Domain != domain || tasklist != "" && e.Tasklist != tasklist) {
			err = fmt.Errorf("record: it is of %s.%s, and filed at %s", e.Domain, e.Tasklist, filed)
		}
		if err != nil {
			if !Late(r, at) { // nor is it when it comes out of the quarantine
				r.WithinMs = 0
			}
			alone, encodeErr := (&logv1.Batch{Tasks: []*logv1.Record{r}, LogVersion: d.batch.LogVersion}).MarshalVT()
			bad = append(bad, Bad{alone, errors.Join(err, encodeErr)})
		} else if !Late(r, at) {
			tasks = append(tasks, e)
		}
		// Kept records must not keep the message's buffer.
		if p := r.Policy; p != nil {
			p.NonRetryable, p.ByError = nil, nil
		}
		r.Id, r.Payload, r.Trace, r.Result, r.Attempt, r.Headers, r.Expiry, r.Group, r.Unique, r.Updates, r.Redriven, r.Order, r.Start = nil, nil, nil, nil, nil, nil, nil, "", nil, nil, nil, nil, nil
	}
	return tasks, bad, nil
}

// Bad is a record that cannot be read.
type Bad struct {
	// Batch holds it alone.
	Batch []byte
	Err   error
}

// Entry converts one record, keeping its state.
func (d *Decoder) Entry(r *logv1.Record) (*replica.Entry, error) {
	e := new(replica.Entry)
	if err := d.task(&e.Task, r); err != nil {
		return nil, err
	}
	return e, nil
}

func (d *Decoder) task(t *taskstate.Task, r *logv1.Record) error {
	id, err := ids.TaskIDFromBytes(r.Id)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	t.ID = id
	if err := d.labels(t, r); err != nil {
		return err
	}
	t.Payload = blob(r.Payload, r.PayloadEncoding)
	t.Policy = d.policy(r.Policy)
	t.Trace = string(r.Trace)
	t.Extra = d.extra(r)
	t.Version, t.Failures, t.HandedBack, t.Parkings = r.Version, r.Failures, r.HandedBack, r.Parkings
	t.Lost = int16(min(r.Lost, taskstate.LostMax))
	t.DueAt, t.ReadyAt, t.FinishedAt = r.DueAtMs, r.ReadyAtMs, r.FinishedAtMs
	t.State, t.Position = taskstate.State(r.State), ids.Position(r.Position)
	t.Result = blob(r.Result, r.ResultEncoding)
	t.ErrMessage, t.ErrType = string([]byte(r.ErrorMessage)), d.intern(r.ErrorType)
	t.CancelRequested, t.CancelReason = r.CancelRequested, string([]byte(r.CancelReason))
	if a := r.Attempt; a != nil {
		t.Attempt = taskstate.Attempt{
			Nonce: a.Nonce, Worker: d.worker(a.Worker, a.WorkerId, a.SignsEveryMs), StartedAt: a.StartedAtMs, DeadlineAt: a.DeadlineMs,
			BeatBy: a.BeatDeadlineMs, Limits: d.pathOf(a.Limits...), Progress: blob(a.Progress, a.ProgressEncoding),
			Ended: taskstate.Kind(a.Ended),
		}
	}
	if len(r.Steps) > 0 {
		steps := make([]taskstate.Step, len(r.Steps), len(r.Steps)+4)
		for i, s := range r.Steps {
			steps[i] = taskstate.Step{
				Kind: taskstate.StepKind(s.Kind), At: s.AtMs, Grant: s.Grant, Worker: d.intern(s.Worker),
				Message: string([]byte(s.Message)), ErrType: d.intern(s.ErrorType), DueAt: s.DueAtMs,
			}
		}
		t.SetSteps(steps, r.StepsDropped)
	}
	return nil
}

// batchOf is an event message without its events. It owns its bytes.
func (d *Decoder) batchOf(b *logv1.EventBatch, bytes int) *replica.Events {
	in := &replica.Events{
		ReplyTo: d.intern(b.ReplyTo), RequestID: b.RequestId, Bytes: bytes,
		Shard: b.Shard, Epoch: b.ShardEpoch, Delivered: b.Delivered,
		Events: make([]taskstate.Event, len(b.Events)),
	}
	if len(b.Polls) > 0 {
		in.Polls = make([]dispatch.Poll, len(b.Polls))
	}
	for i, p := range b.Polls {
		every := int64(0)
		if i < len(b.SignsEveryMs) {
			every = b.SignsEveryMs[i]
		}
		in.Polls[i] = d.poll(p, every)
	}
	return in
}

// poll is for one poll; no two have the same inbox.
func (d *Decoder) poll(p *logv1.PollRef, signsEvery int64) dispatch.Poll {
	return dispatch.Poll{Domain: d.intern(p.Domain), Worker: d.worker(p.Worker, p.WorkerId, signsEvery), ReplyTo: string([]byte(p.ReplyTo)), JSON: p.Json, Max: p.MaxTasks, BytesMax: p.BytesMax}
}

// taskOf is the task of an event; a fence has none.
func taskOf(e *logv1.Event) (ids.TaskID, error) {
	if e.Kind == logv1.EventKind_EVENT_KIND_FENCE && len(e.TaskId) == 0 {
		return ids.TaskID{}, nil
	}
	return ids.TaskIDFromBytes(e.TaskId)
}

// Events decodes one event message. The events own their bytes. An event that cannot be
// read makes the message unreadable: events are ours, and their verdicts are by place.
func (d *Decoder) Events(data []byte) (*replica.Events, error) {
	_, events, err := d.Arrived(data, nil)
	return events, err
}

// Arrived decodes an event message that has just come, as Events does. To what goes into the log it adds how often the workers of its polls
// give signs of life, 0 = none are heard, for the next owner; signs may be nil.
func (d *Decoder) Arrived(data []byte, signs func(domain, workerID string) time.Duration) ([]byte, *replica.Events, error) {
	defer d.events.ResetVT() // keeps its events for the next message
	if err := d.events.UnmarshalVTUnsafe(data); err != nil {
		return nil, nil, fmt.Errorf("event batch: %w", err)
	}
	if err := logversion.Check(d.events.LogVersion); err != nil {
		return nil, nil, fmt.Errorf("event batch: %w", err)
	}
	if signs != nil && len(d.events.Polls) > 0 {
		data = d.addSigns(data, signs)
	}
	out := d.batchOf(&d.events, len(data))
	for i, e := range d.events.Events {
		id, err := taskOf(e)
		if err != nil {
			return nil, nil, fmt.Errorf("event %d: %w", i, err)
		}
		out.Events[i] = d.event(e, id, out.Polls)
		// Kept events must not keep the message's buffer.
		e.TaskId, e.Data, e.Update, e.Redrive = nil, nil, nil, nil
		clear(e.Limits)
	}
	return data, out, nil
}

func (d *Decoder) addSigns(data []byte, signs func(domain, workerID string) time.Duration) []byte {
	added := logv1.EventBatch{SignsEveryMs: make([]int64, len(d.events.Polls))}
	for i, p := range d.events.Polls {
		added.SignsEveryMs[i] = signs(p.Domain, p.WorkerId).Milliseconds()
	}
	d.events.SignsEveryMs = added.SignsEveryMs
	more, _ := added.MarshalVT()     // numbers can always be encoded
	return slices.Concat(data, more) // as one message, since fields may come one after the other
}

// event converts one event.
func (d *Decoder) event(e *logv1.Event, id ids.TaskID, polls []dispatch.Poll) taskstate.Event {
	ev := taskstate.Event{
		Kind: kind(e.Kind), ID: id,
		Fence:  ids.Token{Position: ids.Position(e.Position), Version: e.Version, Nonce: e.Nonce},
		Domain: d.intern(e.Domain), Limits: d.pathOf(e.Limits...),
		Undelivered: e.Undelivered, NotAfter: e.NotAfterMs, SilentLease: e.SilentLeaseMs, ReadyBy: e.ReadyByMs,
		Data: blob(e.Data, e.DataEncoding), Message: string([]byte(e.Message)), ErrType: d.intern(e.ErrorType),
		NonRetryable: e.NonRetryable, DelayMS: e.DelayMs, Snooze: e.Snooze, Update: d.update(e.Update),
		Redrive: d.redrive(e.Redrive),
	}
	if ev.Kind.OfKey() {
		ev.OrderKey, ev.CancelRunning = strings.Clone(e.OrderKey), e.CancelRunning
	}
	if ev.Kind.Changes() && ev.Update == nil {
		ev.Update = &taskstate.Update{}
	}
	if ev.Kind == taskstate.Redrove && ev.Redrive == nil {
		ev.Redrive = &taskstate.Redrive{}
	}
	if e.Poll > 0 && uint64(e.Poll) <= uint64(len(polls)) {
		ev.Poll, ev.Worker = e.Poll, polls[e.Poll-1].Worker
		if ev.Domain == "" {
			ev.Domain = polls[e.Poll-1].Domain
		}
	}
	return ev
}

// kind keeps a kind that this version does not know from looking like one that it does.
func kind(k logv1.EventKind) taskstate.Kind {
	if k < 0 || k > 255 {
		return 0
	}
	return taskstate.Kind(k)
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
