package outbox

import (
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// request is what a lane sends: rows that are in one request, under its id.
type request struct {
	id   string
	rows []row
	// again: it may have been sent before.
	again bool
	// turn is the number of the turn that chose it.
	turn int64
}

// allTasks are those of all rows, in order.
func (r *request) allTasks() (all []*yardv1.NewTask) {
	for _, row := range r.rows {
		all = append(all, row.tasks...)
	}
	return all
}

// rowIDs are the ids of the rows.
func (r *request) rowIDs() []int64 {
	all := make([]int64, len(r.rows))
	for i, row := range r.rows {
		all[i] = row.id
	}
	return all
}

// rowOf is the row that has task i of the request; nil = there is none.
func (r *request) rowOf(i int) *row {
	for k := range r.rows {
		if i -= len(r.rows[k].tasks); i < 0 {
			return &r.rows[k]
		}
	}
	return nil
}

// forgotten reports whether the engine does not remember the request any more.
func (r *request) forgotten(now time.Time) bool {
	id, err := ids.ParseRequestID(r.id)
	return err == nil && now.Sub(id.Time()) > rememberedFor
}

// outcome is what the lane writes about a request whose outcome is known. Rows that it does not name are sent again, under another id.
type outcome struct {
	of     *request
	stored []int64
	aside  []aside
}

// aside is a row that is set aside.
type aside struct {
	row    int64
	state  State
	reason string
}

// verdict is what follows from an answer.
type verdict struct {
	// outcome is nil as long as it is not known what became of the request: it is sent again.
	outcome *outcome
	// trouble is why nothing was stored, or why that is not known; the lane waits. nil = the lane goes on.
	trouble error
	// smaller: the rows do not fit into one request.
	smaller bool
	// nowMs is the engine's clock where ours is off; 0 = it is not.
	nowMs int64
}

// unknownAdvice is behind the reason of a row whose outcome no one can find out.
const unknownAdvice = ": search for tasks with this outbox-id, then delete the row, or redrive it"

// lostReason is why the outcome of most such rows is unknown.
const lostReason = "it was sent, the answer was lost, and the engine was not reached for 10 minutes"

// rememberedFor is for how long the engine remembers a request.
const rememberedFor = 10 * time.Minute

// decide says what follows from the answer to a request.
//
// Once a request may have been stored, two answers decide it: results, and a refusal of its request id. Any other refusal is about the repeat. If the
// repeat is too large to be sent, its outcome is unknown as soon as the engine has forgotten the request. Now is the time of the engine.
func decide(r *request, now time.Time, resp *yardv1.SubmitResponse, err error) verdict {
	if err == nil {
		return results(r, resp)
	}
	e := fault.From(err)
	switch {
	case e.Path == "/request_id" && e.Detail[fault.DetailNowMs] != "": // it is not stored, nor will be
		ms, _ := strconv.ParseInt(e.Detail[fault.DetailNowMs], 10, 64) // 0 if it is no number
		return verdict{outcome: &outcome{of: r}, nowMs: ms, trouble: err}
	case e.Path == "/request_id" && e.Code == fault.FailedPrecondition && r.again: // the engine has forgotten it
		return unknown(r, lostReason)
	case r.again && e.Code == fault.InvalidArgument && e.Path == "" && r.forgotten(now):
		return unknown(r, "it may have been sent, and cannot be sent again: "+e.Message)
	case r.again, e.Code == fault.Unknown, e.Code == fault.Internal:
		return verdict{trouble: err}
	case e.Code == fault.InvalidArgument && (e.Path == "" || e.Path == "/tasks") && len(r.rows) > 1:
		return verdict{outcome: &outcome{of: r}, smaller: true}
	case e.Code == fault.InvalidArgument, e.Code == fault.InvalidTime, e.Code == fault.FailedPrecondition, e.Code == fault.NotFound && e.Path != "":
		refused := r.rowOf(taskOf(e.Path))
		if refused == nil {
			refused = &r.rows[0]
		}
		return verdict{outcome: &outcome{of: r, aside: []aside{{refused.id, Refused, e.Error()}}}}
	}
	return verdict{outcome: &outcome{of: r}, trouble: err}
}

// results takes the results of the tasks: a row whose tasks are refused was not stored, and is sent again in another request.
func results(r *request, resp *yardv1.SubmitResponse) verdict {
	if len(resp.Results) != len(r.allTasks()) {
		return verdict{trouble: fault.New(fault.Internal, "%d results were answered for %d tasks", len(resp.Results), len(r.allTasks()))}
	}
	o, i := &outcome{of: r}, 0
	for _, row := range r.rows {
		if resp.Results[i].Outcome != yardv1.SubmitOutcome_SUBMIT_OUTCOME_REFUSED {
			o.stored = append(o.stored, row.id)
		}
		i += len(row.tasks)
	}
	return verdict{outcome: o, nowMs: resp.NowMs}
}

// unknown sets all rows of a request aside, and says why.
func unknown(r *request, why string) verdict {
	o := &outcome{of: r}
	for _, row := range r.rows {
		o.aside = append(o.aside, aside{row.id, Unknown, why + unknownAdvice})
	}
	return verdict{outcome: o}
}

// taskOf is the task that a path names, or a number behind all tasks.
func taskOf(path string) int {
	rest, _ := strings.CutPrefix(path, "/tasks/")
	number, _, _ := strings.Cut(rest, "/")
	if i, err := strconv.Atoi(number); err == nil && i >= 0 {
		return i
	}
	return tasksMax
}
