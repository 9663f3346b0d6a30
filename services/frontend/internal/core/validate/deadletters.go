package validate

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// The most letters that requests name, or that steps look at.
const (
	DeadLettersNamedMax = 100
	RedriveStepMax      = 100
	DeadLetterStepMax   = 1000
)

// DeadLetterStep is one step over the dead letters of a domain, or the letters that a request names.
type DeadLetterStep struct {
	// IDs are the tasks that are named, each once; nil = all that match Filter. Entries are the places in IDs of those that the request names, in its order.
	IDs     []ids.TaskID
	Entries []int
	Filter  *yardv1.DeadLetterFilter
	Limit   int
	// After is the last letter that was looked at, UpTo the last that is to be; 0 = the first step, and it is not known yet.
	After, UpTo uint64
	Preview     bool
	// Reason, Policy and To are those of a redrive; Policy has the fields that replace those of the tasks', nil = none; To is the tasklist that they move to,
	// empty = each stays in its own.
	Reason  string
	To      string
	Policy  *logv1.Policy
	request ids.RequestID
}

// Cursor is where the step goes on that follows one that has looked at letters up to a sequence.
func (s *DeadLetterStep) Cursor(after uint64) string {
	return strconv.FormatUint(after, 10) + "." + strconv.FormatUint(s.UpTo, 10)
}

// Matches tells whether a letter is one that the step is about.
func (s *DeadLetterStep) Matches(r *logv1.Record) bool {
	f := s.Filter
	return (f.GetType() == "" || r.Type == f.Type) && (f.GetErrorType() == "" || r.ErrorType == f.ErrorType) &&
		(f.GetTasklist() == "" || r.Tasklist == f.Tasklist) && (f.GetGroup() == "" || r.Group == f.Group) &&
		r.FinishedAtMs >= f.GetSinceMs() && (f.GetUntilMs() == 0 || r.FinishedAtMs < f.UntilMs)
}

// RequestOf names the entry of the step's request for a task; never 0.
func (s *DeadLetterStep) RequestOf(id ids.TaskID) uint64 {
	sum := sha256.Sum256(append(s.request[:], id[:]...))
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// ListDeadLetters checks a deadletters.list.
func ListDeadLetters(req *yardv1.ListDeadLettersRequest) (DeadLetterStep, error) {
	return deadLetterStep(req.Filter, req.Limit, ListDefault, DeadLetterStepMax, req.Cursor)
}

// CountDeadLetters checks a deadletters.count.
func CountDeadLetters(req *yardv1.CountDeadLettersRequest) (DeadLetterStep, error) {
	if err := optional("/period_ms", req.PeriodMs, 1000, ms(AheadMax)); err != nil {
		return DeadLetterStep{}, err
	}
	return deadLetterStep(req.Filter, req.Limit, DeadLetterStepMax, DeadLetterStepMax, req.Cursor)
}

// Letters checks a request for the letters of some tasks; path names a single one.
func Letters(named []string, path string) (s DeadLetterStep, err error) {
	places := make(map[ids.TaskID]int, len(named))
	for i, id := range named {
		where := path
		if where == "" {
			where = at("/task_ids", i)
		}
		parsed, err := ids.ParseTaskID(id)
		if err != nil {
			return s, invalid(where, "%v", err)
		}
		place, known := places[parsed]
		if !known {
			place = len(s.IDs)
			places[parsed] = place
			s.IDs = append(s.IDs, parsed)
		}
		s.Entries = append(s.Entries, place)
	}
	return s, nil
}

// Redrive checks a deadletters.redrive.
func Redrive(req *yardv1.RedriveRequest, form Form) (DeadLetterStep, error) {
	most := int32(RedriveStepMax)
	if req.Preview {
		most = DeadLetterStepMax
	}
	s, err := step(req.TaskIds, req.Filter, req.Limit, RedriveStepMax, most, req.Cursor)
	if err != nil {
		return s, err
	}
	if err := firstError(
		text("/reason", req.Reason, PurgeReasonBytesMax),
		text("/by", req.By, PauserBytesMax),
		ifNamed(name, "/tasklist", req.Tasklist),
		retry("/retry", req.Retry),
	); err != nil {
		return s, err
	}
	if req.Retry != nil {
		s.Policy = partOf(req.Retry)
	}
	s.Preview, s.To, s.Reason = req.Preview, req.Tasklist, ReasonOf("redriven", req.By, req.Reason)
	if s.request = form.Fresh; req.RequestId != "" {
		s.request, err = parsedRequestID(req.RequestId)
	}
	return s, err
}

// PurgeDeadLetters checks a deadletters.purge.
func PurgeDeadLetters(req *yardv1.PurgeDeadLettersRequest) (DeadLetterStep, error) {
	s, err := step(req.TaskIds, req.Filter, req.Limit, PurgeDefault, DeadLetterStepMax, req.Cursor)
	s.Preview = req.Preview
	if err != nil {
		return s, err
	}
	return s, firstError(text("/by", req.By, PauserBytesMax), text("/reason", req.Reason, PurgeReasonBytesMax))
}

// step checks what a redrive or a purge is about: tasks by id, or a filter. One without either would be about all, by mistake.
func step(named []string, filter *yardv1.DeadLetterFilter, limit, otherwise, most int32, cursor string) (DeadLetterStep, error) {
	switch {
	case len(named) > 0 && (filter != nil || limit != 0 || cursor != ""):
		return DeadLetterStep{}, invalid("/task_ids", "excludes filter, limit and cursor")
	case len(named) > DeadLettersNamedMax:
		return DeadLetterStep{}, few("/task_ids", len(named), DeadLettersNamedMax)
	case len(named) > 0:
		return Letters(named, "")
	case filter == nil:
		return DeadLetterStep{}, invalid("/filter", "is missing, and so is task_ids: an empty filter is all dead letters")
	}
	return deadLetterStep(filter, limit, otherwise, most, cursor)
}

func deadLetterStep(f *yardv1.DeadLetterFilter, limit, otherwise, most int32, cursor string) (DeadLetterStep, error) {
	s := DeadLetterStep{Filter: f, Limit: int(cmp.Or(limit, otherwise))}
	if err := firstError(deadLetterFilter(f), optional("/limit", limit, 1, most)); err != nil {
		return s, err
	}
	if cursor == "" {
		return s, nil
	}
	after, upTo, _ := strings.Cut(cursor, ".")
	var errs [2]error
	s.After, errs[0] = strconv.ParseUint(after, 10, 63)
	s.UpTo, errs[1] = strconv.ParseUint(upTo, 10, 64)
	if firstError(errs[:]...) != nil || s.After > s.UpTo {
		return s, notNext()
	}
	return s, nil
}

func deadLetterFilter(f *yardv1.DeadLetterFilter) error {
	if f == nil {
		return nil
	}
	if err := firstError(
		ifNamed(name, "/filter/tasklist", f.Tasklist),
		ifNamed(typeName, "/filter/type", f.Type),
		ifNamed(typeName, "/filter/group", f.Group),
	); err != nil {
		return err
	}
	if f.SinceMs < 0 || f.UntilMs < 0 {
		return invalid("/filter/since_ms", "it and until_ms are Unix times in ms, and not negative")
	}
	if f.UntilMs > 0 && f.UntilMs <= f.SinceMs {
		return invalid("/filter/until_ms", "is not after since_ms")
	}
	return text("/filter/error_type", f.ErrorType, ErrorTypeBytesMax)
}
