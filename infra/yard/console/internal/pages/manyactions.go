package pages

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/words"
)

// countSteps is how many steps a preview counts what matches, of 1000 tasks each.
const countSteps = 10

// manyActions are the forms that change many tasks, step by step.
func manyActions() []page {
	list, types, group, batch := domainPath+"/tasklists/{tasklist}", domainPath+"/types/{type}", domainPath+"/groups/{group}", domainPath+"/batches/{batch}"
	return []page{
		action(domainPath+"/dead/redrive", "Redrive dead letters", login.Operator, previewRedrive, redrive),
		action(domainPath+"/dead/delete", "Delete dead letters", login.Operator, previewDeleteMany, deleteDead).confirmedBy("domain"),
		action(list+"/purge", "Purge the tasklist", login.Operator, previewPurge(tasklistPart), purge(tasklistPart)).confirmedBy("tasklist"),
		action(types+"/purge", "Purge the type", login.Operator, previewPurge(typePart), purge(typePart)).confirmedBy("type"),
		action(group+"/purge", "Purge the group", login.Operator, previewPurge(groupPart), purge(groupPart)).confirmedBy("group"),
		action(batch+"/cancel", "Cancel the batch", login.Operator, previewCancelBatch, cancelBatch).offeredIf(batchIs(unfinished)).confirmedBy("batch"),
		action(batch+"/close", "Close the batch", login.Operator, previewCloseBatch, closeBatch).offeredIf(batchIs(isOpen)),
	}
}

// progress has the end of many steps: the context of them ends when they have lasted long enough, between two of them.
type progress struct {
	ctx   context.Context
	stop  context.CancelFunc
	until time.Time
	steps int
}

// stepwise bounds steps by time, and by their number if that is above 0.
func (r *Request) stepwise(lasting time.Duration, steps int) *progress {
	p := &progress{until: time.Now().Add(lasting), steps: steps}
	p.ctx, p.stop = context.WithCancel(r.Context())
	return p
}

// step counts one, and ends the others if that was enough.
func (p *progress) step() {
	if p.steps--; p.steps == 0 || time.Now().After(p.until) {
		p.stop()
	}
}

// ended is the error of the steps, unless they ended as they were meant to.
func (p *progress) ended(err error) error {
	if p.ctx.Err() == context.Canceled {
		return nil
	}
	return err
}

// found says how many match; more: they were not all counted.
func found(n int64, more bool) fact {
	if more {
		return fact{"Tasks", "at least " + words.Count(n)}
	}
	return fact{"Tasks", words.Count(n)}
}

// sums says what became of tasks, without what is 0; "" = nothing.
func sums(all ...fact) string {
	var parts []string
	for _, one := range all {
		if n := one.Value.(int64); n > 0 {
			parts = append(parts, words.Count(n)+" "+one.Name)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Tasks: " + strings.Join(parts, ", ") + "."
}

// clockSlack is how far the clock of the console may be behind that of the engine: tasks count that are so much younger than a preview.
const clockSlack = time.Second

// untilInput is until when tasks ended, Unix ms.
var untilInput = input{Name: "until", Most: math.MaxInt64}

// deadFilter is the filter of the dead letters that a form is for: those of its preview, and none that came later.
func deadFilter(r *Request) (yard.DeadLetterFilter, error) {
	until, err := r.number(untilInput)
	if until == 0 {
		until = r.Now.Add(clockSlack).UnixMilli()
	}
	return yard.DeadLetterFilter{Type: r.input("type"), ErrorType: r.input("error_type"), Tasklist: r.input("tasklist"), Until: time.UnixMilli(until)}, err
}

// previewDead is a preview about the dead letters that match.
func previewDead(r *Request, text string) (*preview, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	f, err := deadFilter(r)
	if err != nil {
		return nil, err
	}
	cursor := r.input("cursor")
	first, err := c.Wire().ListDeadLetters(r.Context(), &yardv1.ListDeadLettersRequest{Filter: f.Wire(), Limit: sampleMax, Cursor: cursor})
	if err != nil {
		return nil, err
	}
	p := r.stepwise(pageTimeout/2, countSteps)
	defer p.stop()
	counted, err := c.Redrive(p.ctx, yard.RedriveOptions{Filter: f, Preview: true, Cursor: cursor, Progress: func(yard.Redriven) { p.step() }})
	if err = p.ended(err); err != nil {
		return nil, err
	}
	body := &preview{Text: text, Sample: first.Tasks, Inputs: []input{rateInput}, Facts: []fact{found(counted.Found, counted.Cursor != "")}}
	body.Kept = []fact{{"type", f.Type}, {"error_type", f.ErrorType}, {"tasklist", f.Tasklist}, {untilInput.Name, f.Until.UnixMilli()}, {"cursor", cursor}}
	for _, one := range []fact{{"Type", f.Type}, {"Error type", f.ErrorType}, {"Tasklist", f.Tasklist}} {
		if one.Value == "" {
			one.Value = "all"
		}
		body.Facts = append(body.Facts, one)
	}
	if counted.Found == 0 && counted.Cursor == "" {
		body.Refused = "No dead letter matches."
	}
	return body, nil
}

// further is the query of a form for the dead letters behind a cursor.
func further(f yard.DeadLetterFilter, cursor string) url.Values {
	if cursor == "" {
		return nil
	}
	return url.Values{"type": {f.Type}, "error_type": {f.ErrorType}, "tasklist": {f.Tasklist}, "until": {strconv.FormatInt(f.Until.UnixMilli(), 10)}, "cursor": {cursor}}
}

func previewRedrive(r *Request) (*preview, error) {
	body, err := previewDead(r, "These tasks come back from the dead letters with their ids and histories. Their failures count from 0 again. One form works for 15 seconds at most; then another one goes on.")
	if err == nil {
		body.Inputs = append([]input{reasonInput}, body.Inputs...)
	}
	return body, err
}

func redrive(r *Request) (done, error) {
	c, rate, err := r.clientAndRate()
	if err != nil {
		return done{}, err
	}
	f, err := deadFilter(r)
	if err != nil {
		return done{}, err
	}
	p := r.stepwise(stepsTimeout, 0)
	defer p.stop()
	got, err := c.Redrive(p.ctx, yard.RedriveOptions{Filter: f, Rate: rate, Reason: r.input("reason"), By: r.by(), Cursor: r.input("cursor"), Progress: func(yard.Redriven) { p.step() }})
	return done{
		Text: sums(fact{"are back", got.Redriven}, fact{"were no dead letters any more", got.Refused}, fact{"have an unknown outcome", got.Undecided}), Further: further(f, got.Cursor),
	}, p.ended(err)
}

// clientAndRate are what all forms need that go step by step.
func (r *Request) clientAndRate() (*yard.Client, int, error) {
	rate, err := r.number(rateInput)
	if err != nil {
		return nil, 0, err
	}
	c, err := r.Client()
	return c, int(rate), err
}

func previewDeleteMany(r *Request) (*preview, error) {
	return previewDead(r, "These dead letters are deleted. Their tasks stay dead, and cannot be redriven any more. One form works for 15 seconds at most; then another one goes on.")
}

func deleteDead(r *Request) (done, error) {
	c, rate, err := r.clientAndRate()
	if err != nil {
		return done{}, err
	}
	f, err := deadFilter(r)
	if err != nil {
		return done{}, err
	}
	p := r.stepwise(stepsTimeout, 0)
	defer p.stop()
	got, err := c.PurgeDeadLetters(p.ctx, yard.PurgeDeadLettersOptions{Filter: f, Rate: rate, By: r.by(), Cursor: r.input("cursor"), Progress: func(yard.PurgedDeadLetters) { p.step() }})
	return done{Text: sums(fact{"have no dead letter any more", got.Purged}), Further: further(f, got.Cursor)}, p.ended(err)
}

func tasklistPart(r *Request) yard.Part { return yard.OfTasklist(r.PathValue("tasklist")) }

func typePart(r *Request) yard.Part { return yard.OfType(r.PathValue("type")) }

func groupPart(r *Request) yard.Part { return yard.OfGroup(r.PathValue("group")) }

func previewPurge(of func(*Request) yard.Part) func(*Request) (*preview, error) {
	return func(r *Request) (*preview, error) {
		c, err := r.Client()
		if err != nil {
			return nil, err
		}
		states := []yardv1.TaskState{yardv1.TaskState_TASK_STATE_WAITING, yardv1.TaskState_TASK_STATE_QUEUED, yardv1.TaskState_TASK_STATE_READY, yardv1.TaskState_TASK_STATE_BACKOFF}
		first, err := c.Wire().List(r.Context(), &yardv1.ListRequest{Tasklist: r.PathValue("tasklist"), Type: r.PathValue("type"), Group: r.PathValue("group"), States: states, Limit: sampleMax})
		if err != nil {
			return nil, err
		}
		p := r.stepwise(pageTimeout/2, countSteps)
		defer p.stop()
		counted, err := c.Purge(p.ctx, of(r), yard.PurgeOptions{Preview: true, Cursor: r.input("cursor"), Running: r.input("running") != "", Progress: func(yard.Purged) { p.step() }})
		if err = p.ended(err); err != nil {
			return nil, err
		}
		body := &preview{
			Text:   "These tasks are cancelled: all that were created before now and do not run. One form works for 15 seconds at most; then another one goes on.",
			Sample: first.Tasks, Facts: []fact{found(counted.Found, counted.Cursor != "" || counted.UnreadBatches > 0)},
		}
		return body.purges(r), nil
	}
}

// purges adds the inputs of a purge. One that goes on takes the same tasks as the one before.
func (body *preview) purges(r *Request) *preview {
	body.Inputs = []input{reasonInput, rateInput, {Name: "running", Label: "Ask the workers of running tasks to stop, too", Type: "checkbox", Value: r.input("running")}}
	if cursor := r.input("cursor"); cursor != "" {
		body.Kept = []fact{{"cursor", cursor}}
		body.Text += " This one goes on with an earlier one, and takes the tasks that the earlier one has left."
	}
	return body
}

func purge(of func(*Request) yard.Part) func(*Request) (done, error) {
	return func(r *Request) (done, error) {
		c, rate, err := r.clientAndRate()
		if err != nil {
			return done{}, err
		}
		return r.purged(func(ctx context.Context, o yard.PurgeOptions) (yard.Purged, error) { return c.Purge(ctx, of(r), o) }, rate)
	}
}

// purged runs a purge with the inputs of its form, for tasks that are not younger than it.
func (r *Request) purged(run func(context.Context, yard.PurgeOptions) (yard.Purged, error), rate int) (done, error) {
	id, err := ids.ParseRequestID(r.input(formInput))
	if err != nil {
		return done{}, err
	}
	p := r.stepwise(stepsTimeout, 0)
	defer p.stop()
	got, err := run(p.ctx, yard.PurgeOptions{
		OlderThan: max(0, time.Since(id.Time())-clockSlack),
		Running:   r.input("running") != "", Rate: rate, Reason: r.input("reason"), By: r.by(), Cursor: r.input("cursor"), Progress: func(yard.Purged) { p.step() },
	})
	did := done{Text: sums(fact{"are cancelled", got.Cancelled}, fact{"are asked to stop", got.CancelRequested}, fact{"had ended", got.Ended}, fact{"have an unknown outcome", got.Undecided})}
	if got.Cursor != "" {
		did.Further = url.Values{"cursor": {got.Cursor}, "running": {r.input("running")}}
	}
	return did, p.ended(err)
}

// batchIs reports whether the batch of a page is so.
func batchIs(so func(*yardv1.Batch) bool) func(frame) bool {
	return func(f frame) bool { return so(f.Body.(*yardv1.Batch)) }
}

func isOpen(b *yardv1.Batch) bool { return b.State == yardv1.BatchState_BATCH_STATE_OPEN }

func unfinished(b *yardv1.Batch) bool {
	return b.State == yardv1.BatchState_BATCH_STATE_OPEN || b.State == yardv1.BatchState_BATCH_STATE_CLOSED
}

// previewBatch is a preview about a batch, unless it is in a state that does not allow it.
func previewBatch(r *Request, text string, allowed func(*yardv1.Batch) bool) (*preview, error) {
	body, err := showBatch(r)
	if err != nil {
		return nil, err
	}
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	b := body.(*yardv1.Batch)
	states := []yardv1.TaskState{yardv1.TaskState_TASK_STATE_WAITING, yardv1.TaskState_TASK_STATE_QUEUED, yardv1.TaskState_TASK_STATE_READY, yardv1.TaskState_TASK_STATE_RUNNING, yardv1.TaskState_TASK_STATE_BACKOFF}
	first, err := c.Wire().List(r.Context(), &yardv1.ListRequest{BatchId: b.BatchId, States: states, Limit: sampleMax})
	if err != nil {
		return nil, err
	}
	p := &preview{Text: text, Sample: first.Tasks, Facts: []fact{{"Tasks", words.Count(b.Tasks)}, {"Tasks that have not ended", words.Count(b.Active)}}}
	if !allowed(b) {
		p.Refused = fmt.Sprintf("The batch is %s.", words.Enum(b.State))
	}
	return p, nil
}

func previewCloseBatch(r *Request) (*preview, error) {
	return previewBatch(r, "The batch takes no more tasks. It completes when those that it has have ended.", isOpen)
}

func closeBatch(r *Request) (done, error) {
	c, err := r.Client()
	if err != nil {
		return done{}, err
	}
	_, err = c.Batch(r.PathValue("batch")).Close(r.Context())
	return unless(err, "The batch takes no more tasks.")
}

func previewCancelBatch(r *Request) (*preview, error) {
	p, err := previewBatch(r, "The batch takes no more tasks, and those that have not ended are cancelled. One form works for 15 seconds at most; then another one goes on.", unfinished)
	if err != nil {
		return nil, err
	}
	return p.purges(r), nil
}

func cancelBatch(r *Request) (done, error) {
	c, rate, err := r.clientAndRate()
	if err != nil {
		return done{}, err
	}
	return r.purged(c.Batch(r.PathValue("batch")).Cancel, rate)
}
