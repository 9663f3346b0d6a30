package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// submitFlags is what `task submit` takes.
type submitFlags struct {
	yard.Task
	retry   yard.RetryPolicy
	unique  yard.Unique
	at      string
	headers []string
	file    string
	count   int
	wait    bool
}

// countMax bounds --count.
const countMax = 1_000_000

func taskSubmit(a *command.App) *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use: "submit [TYPE [PAYLOAD]]", Short: "Hand in a task, or many from a file",
		Long: `Submit a task whose payload is a JSON value (default: none), or many from a file.
The ids are printed, one per line, after the tasks are stored.

A file ("-" is standard input) holds tasks in the form of the API: objects one after
the other, a list of them, or requests such as {"tasklist":"mail","wait":true,"tasks":[...]};
--tasklist and --priority are the defaults for tasks without them. More than 1000 tasks are sent in several
requests; each is accepted completely or not at all.`,
		Example: `  yard task submit email.send '{"to":"a@b.c"}' --tasklist mail
  yard task submit report '{"month":11}' -t reports --priority 1 --wait
  yard task submit reminder '"call Ann"' -t mail --delay 2h
  echo '{"type":"email.send","payload":{"to":"x@y.z"}}' | yard task submit -t mail --file -`,
		Args: command.ArgCount(0, 2, "a type and a payload, or --file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tasks, wait, err := tasksToSubmit(a, f, args)
			if err != nil {
				return err
			}
			f.wait = wait
			return a.WithClient(cmd.Context(), func(ctx context.Context, c *yard.Client) error {
				return submit(ctx, a, c, f, tasks)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.Tasklist, "tasklist", "t", "", "where it queues")
	flags.IntVarP(&f.Priority, "priority", "p", 0, "1 (most urgent) to 5; 0 = the tasklist's, by default 3")
	command.DurationVar(flags, &f.Delay, "delay", 0, "run it so long after now")
	flags.StringVar(&f.at, "at", "", "run it at this time, such as 2026-12-24T18:00:00+01:00")
	PolicyFlags(flags, &f.retry)
	command.DurationVar(flags, &f.StartToClose, "start-to-close", 0, "bound of one attempt; 0 = the type's")
	command.DurationVar(flags, &f.HeartbeatTimeout, "heartbeat", 0, "silence after which an attempt is lost; 0 = the type's")
	command.DurationVar(flags, &f.StartWithin, "start-within", 0, "expire it unless it has begun by then; 0 = the type's")
	command.DurationVar(flags, &f.FinishWithin, "finish-within", 0, "expire it unless it is completed by then; 0 = the type's")
	flags.StringVarP(&f.file, "file", "f", "", `file with tasks as JSON; "-" is standard input`)
	flags.IntVar(&f.count, "count", 1, "submit this many copies")
	flags.StringArrayVar(&f.headers, "header", nil, "a header as name=value; may be given several times")
	flags.StringVar(&f.Group, "group", "", "its group, such as a customer: groups start in turn")
	flags.IntVar(&f.Cost, "cost", 0, "starts of a rate that each attempt uses, 1 to 1000; 0 = the type's, by default 1")
	flags.StringVar(&f.unique.Key, "unique-key", "", "only one live task may hold this key")
	command.DurationVar(flags, &f.unique.For, "unique-for", 0, "how long the key stays taken after the task has finished")
	flags.BoolVar(&f.unique.Reject, "reject", false, "fail where another task has the key; default: print that task's id")
	flags.BoolVar(&f.unique.Replace, "replace", false, "change the task that has the key into this one, unless an attempt of it has begun")
	flags.StringVar(&f.OrderKey, "order-key", "", "such as an account: tasks with the same key run one at a time, in order")
	flags.StringVar(&f.Batch, "batch", "", "the batch that it is a member of, which must be open")
	flags.BoolVar(&f.BlocksKey, "block", false, "where it would be dead, hold up its order key instead, until it is cancelled or run again")
	flags.BoolVarP(&f.wait, "wait", "w", false, "watch it until it is finished (one task only)")
	return cmd
}

// tasksToSubmit reads the tasks of the command line, and whether to watch the only one.
func tasksToSubmit(a *command.App, f submitFlags, args []string) (tasks []yard.Task, wait bool, err error) {
	switch {
	case (len(args) > 0) == (f.file != ""):
		return nil, false, command.Usagef("want either a type or --file")
	case f.count < 1 || f.count > countMax:
		return nil, false, command.Usagef("--count %d is not in 1..%d", f.count, countMax)
	case f.file != "" && f.count != 1:
		return nil, false, command.Usagef("--count does not go with --file")
	case f.unique.Key == "" && f.unique != yard.Unique{}:
		return nil, false, command.Usagef("--unique-for, --reject and --replace go with --unique-key")
	case f.unique.Reject && f.unique.Replace:
		return nil, false, command.Usagef("--reject excludes --replace")
	case f.unique.Key != "" && f.count != 1:
		return nil, false, command.Usagef("--unique-key goes with one task, not with --count")
	case f.BlocksKey && f.OrderKey == "":
		return nil, false, command.Usagef("--block goes with --order-key")
	case f.file != "" && f.hasMore():
		return nil, false, command.Usagef("only --tasklist, --priority and --wait go with --file: the rest is in its tasks")
	}
	if f.file != "" {
		tasks, wait, err = tasksOfFile(a, f)
	} else {
		tasks, err = tasksOfFlags(f, args)
	}
	wait = wait || f.wait
	if err == nil && wait && len(tasks) != 1 {
		return nil, false, command.Usagef("to wait is for one task, not %d", len(tasks))
	}
	return tasks, wait, err
}

// hasMore reports whether flags were given that say more of a task than --file takes.
func (f *submitFlags) hasMore() bool {
	more := f.Task
	more.Tasklist, more.Priority = "", 0
	return !reflect.DeepEqual(more, yard.Task{}) || !NoPolicy(f.retry) || f.unique.Key != "" || f.at != "" || len(f.headers) > 0
}

func tasksOfFlags(f submitFlags, args []string) (_ []yard.Task, err error) {
	task := f.Task
	task.Type = args[0]
	if task.Headers, err = headersOf(f.headers); err != nil {
		return nil, err
	}
	if !NoPolicy(f.retry) {
		task.Retry = &f.retry
	}
	if f.unique.Key != "" {
		task.Unique = &f.unique
	}
	if len(args) == 2 {
		if task.Payload, err = payloadOf(args[1]); err != nil {
			return nil, err
		}
	}
	if task.RunAt, err = command.ParseTime("at", f.at); err != nil {
		return nil, err
	}
	tasks := make([]yard.Task, f.count)
	for i := range tasks {
		tasks[i] = task
	}
	return tasks, nil
}

// payloadOf reads a payload of the command line.
func payloadOf(text string) (json.RawMessage, error) {
	if !codec.ValidJSON([]byte(text)) {
		return nil, command.Usagef("the payload %q is not a JSON value; text needs quotes of its own: '\"text\"'", text)
	}
	return json.RawMessage(text), nil
}

func tasksOfFile(a *command.App, f submitFlags) (tasks []yard.Task, wait bool, err error) {
	in := a.In
	if f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return nil, false, err
		}
		defer func() { _ = file.Close() }() // only read
		in = file
	}
	wire, wait, err := readTasks(in)
	if err != nil {
		return nil, false, err
	}
	for _, w := range wire {
		tasks = append(tasks, taskOf(w, f))
	}
	return tasks, wait, nil
}

// readTasks reads JSON values, each a task, a list of tasks or a submit request; wait is that of a
// request. An error names the task by its number in the whole file.
func readTasks(in io.Reader) (tasks []*yardv1.NewTask, wait bool, err error) {
	values := json.NewDecoder(in)
	for {
		var value json.RawMessage
		if err := values.Decode(&value); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, false, fault.At(fault.InvalidArgument, taskPath(len(tasks)), "bad JSON: %v", err)
		}
		request, err := requestOfValue(value, len(tasks))
		if err != nil {
			return nil, false, err
		}
		tasks, wait = append(tasks, request.Tasks...), wait || request.Wait
	}
	if len(tasks) == 0 {
		return nil, false, fault.At(fault.InvalidArgument, "/tasks", "there is no task in what was read: want JSON, each value a task, a list of tasks, or a request with `tasks`")
	}
	return tasks, wait, nil
}

// requestOfValue reads one JSON value; before is how many tasks came before it. The tasks
// have the request's tasklist where they name none.
func requestOfValue(value json.RawMessage, before int) (*yardv1.SubmitRequest, error) {
	request := new(yardv1.SubmitRequest)
	list := []json.RawMessage{value}
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		var several []json.RawMessage
		if json.Unmarshal(value, &several) == nil {
			list = several
		}
	} else if fields["tasks"] != nil {
		if err := json.Unmarshal(fields["tasks"], &list); err != nil {
			return nil, fault.At(fault.InvalidArgument, "/tasks", "want a list of tasks")
		}
		delete(fields, "tasks")
		if err := readRest(fields, request); err != nil {
			return nil, err
		}
	}
	for i, item := range list {
		task := new(yardv1.NewTask)
		if err := codec.UnmarshalRequest(codec.JSON, item, task); err != nil {
			f := fault.From(err)
			return nil, fault.At(f.Code, taskPath(before+i)+f.Path, "%s", f.Message)
		}
		task.Tasklist = cmp.Or(task.Tasklist, request.Tasklist)
		request.Tasks = append(request.Tasks, task)
	}
	return request, nil
}

// readRest reads what a submit request says beside its tasks. A field that only one request of the
// API can have is refused: the command cuts requests itself, and watches for as long as it takes.
func readRest(fields map[string]json.RawMessage, into *yardv1.SubmitRequest) error {
	for _, name := range []string{"wait_ms", "request_id", "tries"} {
		if fields[name] != nil {
			return fault.At(fault.InvalidArgument, "/"+name, "a file of tasks cannot have it: leave it out")
		}
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return codec.UnmarshalRequest(codec.JSON, rest, into)
}

func taskPath(i int) string { return "/tasks/" + strconv.Itoa(i) }

// taskOf makes a task of one of the file; flags are its defaults.
func taskOf(w *yardv1.NewTask, f submitFlags) yard.Task {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	task := yard.Task{
		Type: w.Type, Tasklist: w.Tasklist, Priority: int(w.Priority), Delay: ms(w.DelayMs),
		StartToClose: ms(w.StartToCloseMs), HeartbeatTimeout: ms(w.HeartbeatTimeoutMs), Traceparent: w.Traceparent,
		StartWithin: ms(w.StartWithinMs), FinishWithin: ms(w.FinishWithinMs), Headers: w.Headers,
		Group: w.Group, Cost: int(w.Cost), Retry: yard.RetryPolicyOf(w.Retry), OrderKey: w.OrderKey, Batch: w.BatchId,
		BlocksKey: w.OrderPolicy == yardv1.OrderPolicy_ORDER_POLICY_BLOCK,
	}
	if w.UniqueKey != "" {
		task.Unique = &yard.Unique{
			Key: w.UniqueKey, For: ms(w.UniqueForMs),
			Reject: w.OnConflict == yardv1.OnConflict_ON_CONFLICT_REJECT, Replace: w.OnConflict == yardv1.OnConflict_ON_CONFLICT_REPLACE,
		}
	}
	task.Tasklist = cmp.Or(task.Tasklist, f.Tasklist)
	task.Priority = cmp.Or(task.Priority, f.Priority)
	if w.Payload != nil {
		task.Payload = yard.Payload{Data: w.Payload.Data, Binary: w.Payload.Encoding == yardv1.Encoding_ENCODING_BINARY}
	}
	if w.RunAtMs != 0 {
		task.RunAt = time.UnixMilli(w.RunAtMs)
	}
	return task
}

// submit hands the tasks in. Tasks that were accepted before an error are printed too.
func submit(ctx context.Context, a *command.App, c *yard.Client, f submitFlags, tasks []yard.Task) error {
	all, err := c.SubmitEach(ctx, tasks)
	if printed := printSubmitted(a, all); printed != nil || err != nil {
		return errors.Join(err, printed)
	}
	for i, s := range all {
		if s.Outcome == yard.OutcomeRejected {
			return fault.At(fault.AlreadyExists, taskPath(i)+"/unique_key", "task %s has the key %q", s.ID, tasks[i].Unique.Key)
		}
	}
	if !f.wait {
		return nil
	}
	return watch(ctx, a, c, all[0].ID)
}

// printSubmitted prints the ids of tasks, but for those that were rejected.
func printSubmitted(a *command.App, all []yard.Submitted) error {
	if len(all) == 0 {
		return nil
	}
	resp := &yardv1.SubmitResponse{}
	var ids []string
	for _, s := range all {
		outcome := yardv1.SubmitOutcome_value["SUBMIT_OUTCOME_"+strings.ToUpper(string(s.Outcome))]
		resp.Results = append(resp.Results, &yardv1.SubmitResult{TaskId: s.ID, Outcome: yardv1.SubmitOutcome(outcome)})
		if s.Outcome != yard.OutcomeRejected && s.Outcome != yard.OutcomeRefused {
			ids = append(ids, s.ID)
		}
	}
	switch {
	case a.JSON:
		return a.PrintJSON(resp)
	case len(ids) == 0:
		return nil
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(ids, "\n"))
	return err
}

// headersOf reads --header flags. Headers that the API refuses are refused there.
func headersOf(flags []string) (map[string]string, error) {
	if len(flags) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(flags))
	for _, text := range flags {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, command.Usagef("--header %q: want name=value", text)
		}
		if _, twice := all[name]; twice {
			return nil, command.Usagef("--header %s is given twice", name)
		}
		all[name] = value
	}
	return all, nil
}

// headerText is headers on one line, by name.
func headerText(all map[string]string) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + "=" + command.OneLine(all[name]))
	}
	return b.String()
}
