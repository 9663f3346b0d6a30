package validate

import (
	"errors"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Outcome is one entry of complete, fail, heartbeat, cancel, update or end, ready for the log.
type Outcome struct {
	ID    ids.TaskID
	Event *logv1.Event
	// Forged: the token is well formed and not one of this cluster for this task. The
	// event has no fence and must not reach the log.
	Forged bool
}

// Complete checks a complete and returns its events, one per entry in order.
func Complete(req *yardv1.CompleteRequest, domain string, tokens *ids.Tokens, form Form) ([]Outcome, error) {
	return withData(logv1.EventKind_EVENT_KIND_COMPLETED, domain, tokens, form, req.Tasks, "/result", (*yardv1.Completion).GetResult, PayloadBytesMax)
}

// withData are the events of attempts that bring a payload, of most bytes, in a field of this name, or none.
func withData[A attempt](
	kind logv1.EventKind, domain string, tokens *ids.Tokens, form Form, all []A, field string, data func(A) *yardv1.Payload, most int,
) ([]Outcome, error) {
	out, err := outcomes(len(all), domain, kind)
	if err != nil {
		return nil, err
	}
	for i, a := range all {
		err := fence(&out[i], tokens, a)
		if err != nil {
			return nil, inside(at("/tasks", i), err)
		}
		p := data(a)
		if err = payload(field, p, most, form); err != nil {
			return nil, inside(at("/tasks", i), err)
		}
		if p != nil {
			out[i].Event.Data, out[i].Event.DataEncoding = p.Data, int32(p.Encoding)
		}
	}
	return out, nil
}

// Fail checks a fail and returns its events, one per entry in order. An attempt
// that never began is not a failure but a release.
func Fail(req *yardv1.FailRequest, domain string, tokens *ids.Tokens) ([]Outcome, error) {
	out, err := outcomes(len(req.Tasks), domain, logv1.EventKind_EVENT_KIND_FAILED)
	if err != nil {
		return nil, err
	}
	for i, t := range req.Tasks {
		e := out[i].Event
		err := fence(&out[i], tokens, t)
		if err == nil {
			err = failure(t)
		}
		if err != nil {
			return nil, inside(at("/tasks", i), err)
		}
		e.Message, e.ErrorType, e.NonRetryable, e.DelayMs, e.Snooze = t.Message, t.ErrorType, t.NonRetryable, t.DelayMs, t.Snooze
		if t.NotStarted {
			e.Kind = logv1.EventKind_EVENT_KIND_RELEASED
		}
	}
	return out, nil
}

func failure(t *yardv1.Failure) error {
	if err := firstError(
		text("/message", t.Message, ErrorMessageBytesMax),
		text("/error_type", t.ErrorType, ErrorTypeBytesMax),
		between("/delay_ms", t.DelayMs, 0, ms(IntervalCapMax)),
	); err != nil {
		return err
	}
	switch {
	case t.NonRetryable && t.DelayMs != 0:
		return invalid("/delay_ms", "excludes non_retryable: there is no next attempt")
	case t.NotStarted && (t.NonRetryable || t.DelayMs != 0):
		return invalid("/not_started", "excludes non_retryable and delay_ms: the task is ready again at once")
	case !t.Snooze:
		return nil
	case t.DelayMs == 0:
		return invalid("/delay_ms", "is required with snooze: when to try again")
	case t.NonRetryable || t.NotStarted || t.ErrorType != "":
		return invalid("/snooze", "excludes non_retryable, not_started and error_type: it is no failure")
	}
	return nil
}

// Heartbeat checks a heartbeat and returns its events, one per entry in order.
func Heartbeat(req *yardv1.HeartbeatRequest, domain string, tokens *ids.Tokens, form Form) ([]Outcome, error) {
	return withData(logv1.EventKind_EVENT_KIND_HEARTBEAT, domain, tokens, form, req.Tasks, "/progress", (*yardv1.Beat).GetProgress, ProgressBytesMax)
}

// Cancel checks a cancel and returns its events, one per id in order.
func Cancel(req *yardv1.CancelRequest, domain string) ([]Outcome, error) {
	if err := firstError(count("/task_ids", len(req.TaskIds)), text("/reason", req.Reason, ReasonBytesMax)); err != nil {
		return nil, err
	}
	out, err := outcomes(len(req.TaskIds), domain, logv1.EventKind_EVENT_KIND_CANCEL)
	if err != nil {
		return nil, err
	}
	for i, s := range req.TaskIds {
		if out[i].ID, err = ids.ParseTaskID(s); err != nil {
			return nil, invalid(at("/task_ids", i), "%v", err)
		}
		out[i].Event.TaskId = out[i].ID[:]
		out[i].Event.Message = req.Reason
	}
	return out, nil
}

// EndTasks checks an end by hand and returns its events, one per id in order.
func EndTasks(req *yardv1.EndTasksRequest, domain string, form Form) ([]Outcome, error) {
	const state, result = "/state", "/result"
	if n := len(req.TaskIds); n == 0 || n > UpdatesMax {
		return nil, invalid("/task_ids", "holds %d entries, 1 to %d are allowed", n, UpdatesMax)
	}
	switch req.State {
	case yardv1.TaskState_TASK_STATE_COMPLETED, yardv1.TaskState_TASK_STATE_DEAD, yardv1.TaskState_TASK_STATE_CANCELLED:
	default:
		return nil, invalid(state, "must be completed, dead or cancelled")
	}
	if req.Result != nil && (req.State != yardv1.TaskState_TASK_STATE_COMPLETED || len(req.TaskIds) > 1) {
		return nil, invalid(result, "needs the state completed and a single task")
	}
	if err := firstError(payload(result, req.Result, PayloadBytesMax, form), text("/reason", req.Reason, PurgeReasonBytesMax), text("/by", req.By, PauserBytesMax)); err != nil {
		return nil, err
	}
	request, err := requestOf(req, form)
	if err != nil {
		return nil, err
	}
	out, err := outcomes(len(req.TaskIds), domain, logv1.EventKind_EVENT_KIND_ENDED)
	if err != nil {
		return nil, err
	}
	message := ReasonOf("ended", req.By, req.Reason)
	for i, s := range req.TaskIds {
		e := out[i].Event
		if out[i].ID, err = ids.ParseTaskID(s); err != nil {
			return nil, invalid(at("/task_ids", i), "%v", err)
		}
		e.TaskId, e.Message = out[i].ID[:], message
		e.Update = &logv1.Update{Request: entry(append(request[:], out[i].ID[:]...)), EndState: int32(req.State)}
		if req.Result != nil {
			e.Update.Payload, e.Update.PayloadEncoding, e.Update.HasPayload = req.Result.Data, int32(req.Result.Encoding), true
		}
	}
	return out, nil
}

// outcomes makes n entries that share two allocations.
func outcomes(n int, domain string, kind logv1.EventKind) ([]Outcome, error) {
	if err := count("/tasks", n); err != nil {
		return nil, err
	}
	events := make([]logv1.Event, n)
	out := make([]Outcome, n)
	for i := range out {
		events[i].Kind, events[i].Domain = kind, domain
		out[i].Event = &events[i]
	}
	return out, nil
}

// attempt is what names one in a request; a nil one is missing.
type attempt interface {
	comparable
	GetTaskId() string
	GetToken() string
}

// fence fills in which attempt of which task is meant. A token of an earlier attempt
// is history's to refuse.
func fence[A attempt](o *Outcome, tokens *ids.Tokens, a A) error {
	var missing A
	if a == missing {
		return invalid("", "is missing")
	}
	var err error
	if o.ID, err = ids.ParseTaskID(a.GetTaskId()); err != nil {
		return invalid("/task_id", "%v", err)
	}
	t, err := tokens.Read(o.ID, a.GetToken())
	if o.Forged = errors.Is(err, ids.ErrForgedToken); err != nil && !o.Forged {
		return invalid("/token", "%v", err)
	}
	o.Event.TaskId = o.ID[:]
	o.Event.Position, o.Event.Version, o.Event.Nonce = uint64(t.Position), t.Version, t.Nonce
	return nil
}
