package pages

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/words"
)

// taskActions are the forms about one task.
func taskActions() []page {
	task := domainPath + "/tasks/{task}"
	return []page{
		action(task+"/cancel", "Cancel the task", login.Operator, previewCancel, cancelTask).offeredIf(taskIs(func(t *yardv1.Task) bool { return !t.State.Finished() })),
		action(task+"/end", "End the task by hand", login.Operator, previewEnd, endTask).offeredIf(taskIs(func(t *yardv1.Task) bool { return !t.State.Finished() })),
		action(task+"/run", "Run the task now", login.Operator, previewRunNow, runNow).offeredIf(taskIs(waitsForItsTime)),
		action(task+"/redrive", "Redrive the task", login.Operator, previewRedriveTask, redriveTask).offeredIf(taskIs(isDead)),
		action(task+"/delete", "Delete the dead letter", login.Operator, previewDelete, deleteTask).offeredIf(taskIs(isDead)).confirmedBy("task"),
	}
}

// taskIs reports whether the task of a page is so.
func taskIs(so func(*yardv1.Task) bool) func(frame) bool {
	return func(f frame) bool { return so(f.Body.(taskBody).Task) }
}

func isDead(t *yardv1.Task) bool { return t.State == yardv1.TaskState_TASK_STATE_DEAD }

func waitsForItsTime(t *yardv1.Task) bool {
	return t.State == yardv1.TaskState_TASK_STATE_WAITING || t.State == yardv1.TaskState_TASK_STATE_BACKOFF
}

// previewTask is a preview about the task of the page, unless it is in a state that does not allow it.
func previewTask(r *Request, text string, allowed func(*yardv1.Task) bool) (*preview, *yardv1.Task, error) {
	c, err := r.Client()
	if err != nil {
		return nil, nil, err
	}
	t, err := c.Wire().Get(r.Context(), r.PathValue("task"))
	if err != nil {
		return nil, nil, err
	}
	body := &preview{Text: text, Sample: []*yardv1.Task{t}, Inputs: []input{reasonInput}}
	if !allowed(t) {
		body.Refused = fmt.Sprintf("The task is %s.", words.Enum(t.State))
	}
	return body, t, nil
}

func previewCancel(r *Request) (*preview, error) {
	body, t, err := previewTask(r, "The task is cancelled, and does not start any more.", func(t *yardv1.Task) bool { return !t.State.Finished() })
	if err == nil && t.State == yardv1.TaskState_TASK_STATE_RUNNING {
		body.Text = "A worker runs the task. The worker is asked to stop."
	}
	return body, err
}

func cancelTask(r *Request) (done, error) {
	c, err := r.Client()
	if err != nil {
		return done{}, err
	}
	reason := strings.TrimSpace(r.input("reason") + " (by " + r.by() + ")")
	verdicts, err := c.Wire().Cancel(r.Context(), &yardv1.CancelRequest{TaskIds: []string{r.PathValue("task")}, Reason: reason})
	if err != nil {
		return done{}, err
	}
	if verdicts[0].CancelRequested {
		return done{Text: "The worker of the task is asked to stop."}, verdictError(verdicts[0])
	}
	return did("The task is cancelled.", verdicts[0])
}

// did is what was done, or the error that a verdict says.
func did(text string, v *yardv1.Verdict) (done, error) {
	return unless(verdictError(v), text)
}

// unless is what was done, unless there is an error.
func unless(err error, text string) (done, error) {
	if err != nil {
		return done{}, err
	}
	return done{Text: text}, nil
}

func verdictError(v *yardv1.Verdict) error {
	if v.GetCode() == "OK" {
		return nil
	}
	return fault.New(fault.Code(v.GetCode()), "%s", v.GetMessage())
}

// stateInput is how a task ends by hand.
var stateInput = input{Name: "state", Label: "It ends as", Type: "choice", Options: []string{"completed", "dead", "cancelled"}}

func previewEnd(r *Request) (*preview, error) {
	body, t, err := previewTask(r, "The task ends at once: completed as if a worker had done it, dead with a dead letter, or cancelled.", func(t *yardv1.Task) bool { return !t.State.Finished() })
	if err == nil {
		body.Inputs = []input{stateInput, reasonInput}
		if t.State == yardv1.TaskState_TASK_STATE_RUNNING {
			body.Text += " Its slots are free then. Its worker may go on with it until the worker hears of it."
		}
	}
	return body, err
}

// endTask sends the id of the form: the engine ends the task once, however often the form is sent.
func endTask(r *Request) (done, error) {
	req := &yardv1.EndTasksRequest{TaskIds: []string{r.PathValue("task")}, Reason: r.input("reason"), By: r.by(), RequestId: r.input(formInput)}
	if err := req.State.UnmarshalText([]byte(r.input(stateInput.Name))); err != nil {
		return done{}, fault.At(fault.InvalidArgument, "/"+stateInput.Name, "want completed, dead or cancelled, not %q", r.input(stateInput.Name))
	}
	c, err := r.Client()
	if err != nil {
		return done{}, err
	}
	got, err := yard.Call[yardv1.OutcomeResponse](r.Context(), c, "tasks.end", req)
	if err != nil {
		return done{}, err
	}
	return did("The task is "+words.Enum(req.State)+".", got.Verdicts[0])
}

func previewRunNow(r *Request) (*preview, error) {
	body, t, err := previewTask(r, "The task does not wait for its time any more, and is ready at once.", waitsForItsTime)
	if err == nil {
		body.Inputs, body.Kept = nil, []fact{{"revision", t.Revision}}
	}
	return body, err
}

// runNow names the revision of the preview, so that a task is left alone that was changed since.
func runNow(r *Request) (done, error) {
	c, err := r.Client()
	if err != nil {
		return done{}, err
	}
	revision, err := strconv.ParseInt(r.input("revision"), 10, 64)
	if err != nil || revision < 1 {
		return done{}, fault.At(fault.InvalidArgument, "/revision", "want the revision of the task, not %q", r.input("revision"))
	}
	verdicts, err := c.Wire().Update(r.Context(), &yardv1.UpdateRequest{Tasks: []*yardv1.TaskUpdate{{TaskId: r.PathValue("task"), IfRevision: revision, RunNow: true}}})
	if err != nil {
		return done{}, err
	}
	return did("The task runs as soon as a worker takes it.", verdicts[0])
}

func previewRedriveTask(r *Request) (*preview, error) {
	body, _, err := previewTask(r, "The task comes back from the dead letters with its id and its history. Its failures count from 0 again.", isDead)
	return body, err
}

// redriveTask sends the id of the form: the engine brings the task back once, however often the form is sent.
func redriveTask(r *Request) (done, error) {
	c, err := r.Client()
	if err != nil {
		return done{}, err
	}
	got, err := c.Wire().Redrive(r.Context(), &yardv1.RedriveRequest{TaskIds: []string{r.PathValue("task")}, Reason: r.input("reason"), By: r.by(), RequestId: r.input(formInput)})
	if err != nil {
		return done{}, err
	}
	return did("The task is back.", got.Verdicts[0])
}

func previewDelete(r *Request) (*preview, error) {
	body, _, err := previewTask(r, "The dead letter is deleted. The task stays dead, and cannot be redriven any more.", isDead)
	if err == nil {
		body.Inputs = nil
	}
	return body, err
}

func deleteTask(r *Request) (done, error) {
	c, err := r.Client()
	if err != nil {
		return done{}, err
	}
	got, err := c.Wire().PurgeDeadLetters(r.Context(), &yardv1.PurgeDeadLettersRequest{TaskIds: []string{r.PathValue("task")}, By: r.by()})
	switch {
	case err != nil:
		return done{}, err
	case got.Purged == 0:
		return done{}, fault.New(fault.NotFound, "there is no such dead letter any more")
	}
	return done{Text: "The dead letter is deleted."}, nil
}
