package validate

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/terms"
)

// Update checks an update and returns its events, one per task in order. Times are checked against now, when the request came.
func Update(req *yardv1.UpdateRequest, domain string, now time.Time, form Form) ([]Outcome, error) {
	if n := len(req.Tasks); n == 0 || n > UpdatesMax {
		return nil, invalid("/tasks", "holds %d entries, 1 to %d are allowed", n, UpdatesMax)
	}
	id, err := requestOf(req, form)
	if err != nil {
		return nil, err
	}
	out, err := outcomes(len(req.Tasks), domain, logv1.EventKind_EVENT_KIND_UPDATE)
	if err != nil {
		return nil, err
	}
	for i, t := range req.Tasks {
		if out[i].ID, err = update(t, now, form); err != nil {
			return nil, inside(at("/tasks", i), err)
		}
		out[i].Event.TaskId = out[i].ID[:]
		out[i].Event.Update = storedUpdate(t, now)
		out[i].Event.Update.Request = entryOf(id, firstEqual(req.Tasks, i))
	}
	return out, nil
}

// Repeatable is a request that may come again.
type Repeatable interface {
	GetRequestId() string
	GetTries() int32
}

// RequestID is the id of a request; named: the client has named it.
func RequestID(req Repeatable) (id ids.RequestID, named bool, err error) {
	named = req.GetRequestId() != ""
	switch {
	case req.GetTries() < 0:
		return id, named, invalid("/tries", "is negative")
	case !named && req.GetTries() != 0:
		return id, named, invalid("/tries", "counts the tries of a request_id, and there is none")
	case !named:
		return id, named, nil
	}
	id, err = parsedRequestID(req.GetRequestId())
	return id, named, err
}

func parsedRequestID(s string) (ids.RequestID, error) {
	id, err := ids.ParseRequestID(s)
	if err != nil {
		err = invalid("/request_id", "%v", err)
	}
	return id, err
}

// requestOf is the id of a request. One without gets that of its form: history must recognise the event that a frontend sends twice.
func requestOf(req Repeatable, form Form) (ids.RequestID, error) {
	id, named, err := RequestID(req)
	if err == nil && !named {
		id = form.Fresh
	}
	return id, err
}

// firstEqual is the first entry that is equal to entry i: they have one name, so history makes one update of them.
func firstEqual(all []*yardv1.TaskUpdate, i int) int {
	return slices.IndexFunc(all[:i+1], func(t *yardv1.TaskUpdate) bool { return t.TaskId == all[i].TaskId && proto.Equal(t, all[i]) })
}

// Replacement is what makes a task that has the unique key of r the task r. A repeat of the request makes the same again.
func Replacement(holder ids.TaskID, r *logv1.Record) Outcome {
	u := &logv1.Update{
		Request: entry(r.Id), Replace: true, Type: r.Type, Tasklist: r.Tasklist, Priority: r.Priority, DueAtMs: r.DueAtMs, DelayMs: r.DelayMs, RunNow: r.DueAtMs == 0,
		Policy: r.Policy, Expiry: r.Expiry, Group: r.Group, Headers: r.Headers, Cost: r.Cost, UniqueForMs: r.Unique.ForMs, OrderBlocks: r.Order.GetBlocks(), Trace: r.Trace,
		Payload: r.Payload, PayloadEncoding: r.PayloadEncoding, HasPayload: true,
	}
	return Outcome{ID: holder, Event: &logv1.Event{Kind: logv1.EventKind_EVENT_KIND_UPDATE, TaskId: holder[:], Domain: r.Domain, Update: u}}
}

// entryOf names entry i of a request; never 0.
func entryOf(id ids.RequestID, i int) uint64 {
	return entry(binary.BigEndian.AppendUint32(id[:], uint32(i)))
}

func entry(name []byte) uint64 {
	sum := sha256.Sum256(name)
	return binary.BigEndian.Uint64(sum[:]) | 1
}

func update(t *yardv1.TaskUpdate, now time.Time, form Form) (ids.TaskID, error) {
	if t == nil {
		return ids.TaskID{}, invalid("", "is missing")
	}
	id, err := ids.ParseTaskID(t.TaskId)
	moved := t.DelayMs != 0 || t.RunAtMs != 0
	switch {
	case err != nil:
		return id, invalid("/task_id", "%v", err)
	case t.IfRevision < 0:
		return id, invalid("/if_revision", "is negative")
	case t.Priority < 0 || t.Priority > PriorityLast:
		return id, optional("/priority", t.Priority, PriorityFirst, PriorityLast)
	case moved && t.RunNow:
		return id, invalid("/run_now", "excludes delay_ms and run_at_ms")
	}
	if err := firstError(
		dueTime(t.DelayMs, t.RunAtMs, now),
		retry("/retry", t.Retry),
		timeouts("", t.StartToCloseMs, t.HeartbeatTimeoutMs),
		expiry("", t.StartWithinMs, t.FinishWithinMs),
		headers("/headers", t.Headers),
		payload("/payload", t.Payload, PayloadBytesMax, form),
		ifNamed(typeName, "/group", t.Group),
		ifNamed(name, "/tasklist", t.Tasklist),
	); err != nil {
		return id, err
	}
	if !moved && !t.RunNow && t.Priority == 0 && t.Retry == nil && t.StartToCloseMs == 0 && t.HeartbeatTimeoutMs == 0 &&
		t.StartWithinMs == 0 && t.FinishWithinMs == 0 && t.Group == "" && t.Tasklist == "" && len(t.Headers) == 0 && t.Payload == nil {
		return id, invalid("", "names nothing to change")
	}
	return id, nil
}

// storedUpdate is an update as the log keeps it.
func storedUpdate(t *yardv1.TaskUpdate, now time.Time) *logv1.Update {
	u := &logv1.Update{
		IfRevision: uint64(t.IfRevision), Priority: t.Priority, RunNow: t.RunNow, Group: t.Group, Tasklist: t.Tasklist, Headers: storedHeaders(t.Headers),
	}
	if t.DelayMs != 0 || t.RunAtMs != 0 {
		u.DueAtMs = dueAt(t.DelayMs, t.RunAtMs, now)
		u.RunNow, u.DelayMs = u.DueAtMs == 0, t.DelayMs
	}
	if t.StartWithinMs != 0 || t.FinishWithinMs != 0 {
		u.Expiry = &logv1.Expiry{StartWithinMs: t.StartWithinMs, FinishWithinMs: t.FinishWithinMs}
	}
	if t.Payload != nil {
		u.Payload, u.PayloadEncoding, u.HasPayload = t.Payload.Data, int32(t.Payload.Encoding), true
	}
	if t.Retry == nil && t.StartToCloseMs == 0 && t.HeartbeatTimeoutMs == 0 {
		return u
	}
	u.Policy = partOf(t.Retry)
	u.Policy.StartToCloseMs, u.Policy.HeartbeatTimeoutMs = t.StartToCloseMs, t.HeartbeatTimeoutMs
	return u
}

// partOf is a policy as the log keeps what replaces fields of a task's.
func partOf(r *yardv1.RetryPolicy) *logv1.Policy {
	p := &logv1.Policy{
		MaxAttempts: r.GetMaxAttempts(), InitialIntervalMs: r.GetInitialIntervalMs(), Backoff: r.GetBackoff(), MaxIntervalMs: r.GetMaxIntervalMs(),
		MaxDeliveries: r.GetMaxDeliveries(), Jitter: int32(r.GetJitter()), OnLost: int32(r.GetOnLost()), OnTimeout: int32(r.GetOnTimeout()),
	}
	p.NonRetryable, p.ByError = terms.ErrorRules(r)
	return p
}
