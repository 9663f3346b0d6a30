package operate

import (
	"cmp"
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/taskview"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/outcome"
)

// Dead letters lie in a stream of their own, in the order in which their tasks ended. A list, a count, and a redrive or a purge of all that match are
// steps: each looks at some letters behind a cursor, up to where the stream ended when the first began. Reading decides nothing: a redrive names
// the letter that was read, and the log decides.

// DeadLetters are the dead letters of all domains. Its errors are *fault.Error.
type DeadLetters interface {
	// Last is the sequence of the last letter that was ever stored.
	Last(ctx context.Context) (uint64, error)
	// Page returns the letters of a domain, or of one tasklist of it, behind a sequence: up to limit, and about up to bytesMax bytes. More: others may follow.
	// They come without their payloads and histories, which are most of what they take.
	Page(ctx context.Context, domain, tasklist string, after uint64, limit, bytesMax int) (page []DeadLetter, more bool, err error)
	// Find returns the letters of tasks of a domain, in the order of wanted; nil where there is none. They come as those of a page.
	Find(ctx context.Context, domain string, wanted []ids.TaskID) ([]*DeadLetter, error)
	// Get returns all of one letter; nil = there is none.
	Get(ctx context.Context, domain string, id ids.TaskID) (*DeadLetter, error)
	// Delete deletes letters, and earlier ones of the same tasks; nil ones are passed over. It returns how many were there. After an error some may be deleted.
	Delete(ctx context.Context, letters []*DeadLetter) (deleted int64, err error)
}

// DeadLetter is one dead letter.
type DeadLetter struct {
	// Seq is its place in the stream.
	Seq    uint64
	Record *logv1.Record
}

// pageBytes is up to how many bytes of letters a step looks at.
const pageBytes = 4 << 20

// ListDeadLetters tells of dead letters (deadletters.list).
func (o *Operator) ListDeadLetters(c call.Call, req *yardv1.ListDeadLettersRequest, answer call.Answer) {
	s, bad := validate.ListDeadLetters(req)
	o.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		found, next, err := o.step(ctx, c.Domain, s)
		if err != nil {
			return nil, err
		}
		var all []*yardv1.Task
		for _, l := range found {
			all = append(all, publicTask(l.Record, true))
		}
		page, more := call.Fit(c, all, len(all))
		if more {
			next = s.Cursor(found[len(page)-1].Seq)
		}
		return &yardv1.ListDeadLettersResponse{Tasks: page, NextCursor: next}, nil
	})
}

// CountDeadLetters counts dead letters by type, error and time (deadletters.count).
func (o *Operator) CountDeadLetters(c call.Call, req *yardv1.CountDeadLettersRequest, answer call.Answer) {
	s, bad := validate.CountDeadLetters(req)
	o.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		found, next, err := o.step(ctx, c.Domain, s)
		if err != nil {
			return nil, err
		}
		return &yardv1.CountDeadLettersResponse{Counts: countByType(found, req.PeriodMs), NextCursor: next}, nil
	})
}

func countByType(all []DeadLetter, periodMS int64) (counts []*yardv1.DeadLetterCount) {
	type kind struct {
		typ, errType string
		at           int64
	}
	known := make(map[kind]*yardv1.DeadLetterCount)
	for _, l := range all {
		k := kind{typ: l.Record.Type, errType: l.Record.ErrorType}
		if periodMS > 0 {
			k.at = l.Record.FinishedAtMs - l.Record.FinishedAtMs%periodMS
		}
		n := known[k]
		if n == nil {
			n = &yardv1.DeadLetterCount{Type: k.typ, ErrorType: k.errType, PeriodAtMs: k.at, FirstAtMs: l.Record.FinishedAtMs}
			known[k] = n
			counts = append(counts, n)
		}
		n.Letters++
		n.FirstAtMs, n.LastAtMs = min(n.FirstAtMs, l.Record.FinishedAtMs), max(n.LastAtMs, l.Record.FinishedAtMs)
	}
	return counts
}

// storedWithin is how long after a task's end its dead letter may be on its way; one that was purged by then counts as on its way, too.
const storedWithin = 10 * time.Second

// GetDeadLetter tells all of one (deadletters.get).
func (o *Operator) GetDeadLetter(c call.Call, req *yardv1.GetDeadLetterRequest, answer call.Answer) {
	s, bad := validate.Letters([]string{req.TaskId}, "/task_id")
	o.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		id := s.IDs[0]
		found, err := o.DeadLetters.Get(ctx, c.Domain, id)
		if err == nil && found != nil {
			return &yardv1.GetDeadLetterResponse{Task: publicTask(found.Record, false)}, nil
		}
		var task *yardv1.Task
		if err == nil && !o.Tasks.Foreign(id, c.Now) {
			task, err = o.Tasks.LookUp(ctx, c.Domain, id, time.Time{})
		}
		if err == nil && task.GetState() == yardv1.TaskState_TASK_STATE_DEAD && c.Now.Sub(time.UnixMilli(task.FinishedAtMs)) < storedWithin {
			err = fault.New(fault.Unavailable, "the dead letter of task %s is being stored", id).After(call.AwayRetryAfter)
		}
		return nil, cmp.Or(err, error(fault.New(fault.NotFound, "there is no dead letter of task %s", id)))
	})
}

// Redrive brings dead letters back (deadletters.redrive).
func (o *Operator) Redrive(c call.Call, req *yardv1.RedriveRequest, answer call.Answer) {
	s, bad := validate.Redrive(req, c.Form())
	o.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		done := &yardv1.RedriveResponse{}
		found, next, err := o.wanted(ctx, c.Domain, s)
		if err != nil {
			return nil, err
		}
		done.NextCursor = next
		done.Found = countFound(found)
		if s.Preview {
			done.Verdicts = byEntry(s, previewed(s.IDs, found))
			return done, nil
		}
		if len(found) == 0 {
			return done, nil
		}
		if p := catalog.Drains.Tasklists.Of(o.Catalog, c.Domain, s.To); s.To != "" && catalog.Paused(p, c.Now.UnixMilli()) {
			return nil, fault.At(fault.FailedPrecondition, "/tasklist", "nothing was changed, the tasklist %q takes no new tasks: it is %s", s.To, validate.ReasonOf("drained", p.By, p.Reason))
		}
		verdicts, err := o.redriveAll(c, s, found)
		if err != nil {
			return nil, err
		}
		for _, v := range verdicts {
			switch v.Code {
			case outcome.CodeOK:
				done.Redriven++
			case string(fault.NotFound), string(fault.FailedPrecondition):
				done.Refused++
			default:
				done.Undecided++
			}
		}
		if len(s.IDs) > 0 {
			done.Verdicts = byEntry(s, verdicts)
		}
		if done.Redriven > 0 {
			o.Log.Info("dead letters were redriven", "domain", c.Domain, "tasks", done.Redriven, "reason", s.Reason)
		}
		return done, nil
	})
}

// redriveAll asks the log for all of them, as for cancels. One without a letter may have been redriven before, by the same request.
func (o *Operator) redriveAll(c call.Call, s validate.DeadLetterStep, found []*DeadLetter) ([]*yardv1.Verdict, error) {
	entries := make([]validate.Outcome, len(found))
	for i, l := range found {
		id, event := ids.TaskID{}, &logv1.Redrive{Policy: s.Policy, To: s.To}
		if l != nil {
			id = ids.TaskID(l.Record.Id)
			event.Letter, event.Tasklist, event.Parkings = l.Seq, l.Record.Tasklist, l.Record.Parkings
		} else {
			id = s.IDs[i]
		}
		event.Request = s.RequestOf(id)
		entries[i] = validate.Outcome{ID: id, Event: &logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_REDRIVEN, Domain: c.Domain, Message: s.Reason, Redrive: event, TaskId: id[:],
		}}
	}
	return o.Outcomes.Decide(c, entries)
}

// PurgeDeadLetters deletes dead letters (deadletters.purge).
func (o *Operator) PurgeDeadLetters(c call.Call, req *yardv1.PurgeDeadLettersRequest, answer call.Answer) {
	s, bad := validate.PurgeDeadLetters(req)
	o.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		found, next, err := o.wanted(ctx, c.Domain, s)
		if err != nil {
			return nil, err
		}
		done := &yardv1.PurgeDeadLettersResponse{Found: countFound(found), NextCursor: next}
		if s.Preview || done.Found == 0 {
			return done, nil
		}
		if done.Purged, err = o.DeadLetters.Delete(ctx, found); err != nil {
			return nil, err
		}
		o.Log.Info("dead letters were purged", "domain", c.Domain, "reason", validate.ReasonOf("purged", req.By, req.Reason), "tasks", done.Purged)
		return done, nil
	})
}

// wanted are those that a request names, nil where there is none, or those of a step that match.
func (o *Operator) wanted(ctx context.Context, domain string, s validate.DeadLetterStep) (found []*DeadLetter, next string, err error) {
	if len(s.IDs) > 0 {
		found, err = o.DeadLetters.Find(ctx, domain, s.IDs)
		return found, "", err
	}
	page, next, err := o.step(ctx, domain, s)
	for i := range page {
		found = append(found, &page[i])
	}
	return found, next, err
}

// step reads a step: what matches of the letters behind its cursor.
func (o *Operator) step(ctx context.Context, domain string, s validate.DeadLetterStep) (found []DeadLetter, next string, err error) {
	if s.UpTo == 0 {
		if s.UpTo, err = o.DeadLetters.Last(ctx); err != nil {
			return nil, "", err
		}
	}
	all, more, err := o.DeadLetters.Page(ctx, domain, s.Filter.GetTasklist(), s.After, s.Limit, pageBytes)
	if err != nil {
		return nil, "", err
	}
	for _, l := range all {
		if l.Seq > s.UpTo {
			return found, "", nil
		}
		s.After = l.Seq
		if s.Matches(l.Record) {
			found = append(found, l)
		}
	}
	if more && s.After < s.UpTo {
		next = s.Cursor(s.After)
	}
	return found, next, nil
}

func countFound(all []*DeadLetter) (n int64) {
	for _, l := range all {
		if l != nil {
			n++
		}
	}
	return n
}

// byEntry are the verdicts on the entries of a request, by those on the tasks that it names.
func byEntry(s validate.DeadLetterStep, verdicts []*yardv1.Verdict) (all []*yardv1.Verdict) {
	for _, place := range s.Entries {
		all = append(all, verdicts[place])
	}
	return all
}

// previewed tells of each task that was named whether it is a dead letter.
func previewed(wanted []ids.TaskID, found []*DeadLetter) (all []*yardv1.Verdict) {
	for i, id := range wanted {
		v := &yardv1.Verdict{TaskId: id.String(), Code: outcome.CodeOK}
		if found[i] == nil {
			v.Code, v.Message = string(fault.NotFound), "there is no dead letter of this task"
		}
		all = append(all, v)
	}
	return all
}

// publicTask is a dead letter as the API shows it; brief leaves out payload and events.
func publicTask(r *logv1.Record, brief bool) *yardv1.Task {
	t := taskview.Of(r, yardv1.TaskState_TASK_STATE_DEAD, brief)
	t.FinishedAtMs = r.FinishedAtMs
	return t
}
