package workers

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

const (
	// workerPrefixMin is how much of an id names a worker at least.
	workerPrefixMin = 4
	// workerIDMin is the length of the shortest whole id.
	workerIDMin = 16
)

const workerNames = `

WORKER is an id as in "yard worker list -o wide", the beginning of one, or the name of a worker that no other live one has. Several may be named.`

func workerDrain(a *command.App) *cobra.Command {
	return drainOrStop(a, "drain", "drains", "Drain workers: they get no new tasks, and what they run goes on",
		`Drain live workers: within a second, they get no new tasks. Their attempts go on to the end; "yard worker list" shows how much is
left. It holds until "yard worker resume", or until the worker has not been heard for 10 minutes. A process that starts again is another worker.`)
}

func workerStop(a *command.App) *cobra.Command {
	return drainOrStop(a, "stop", "stops", "Stop workers: they get no new tasks, finish what they run, and end",
		`Stop live workers: within a second, they get no new tasks, and they are asked to end. A worker of the Go SDK lets its handlers finish, within its
drain timeout, and its Run returns; "yard worker" exits. One of another program has to look at the answers to its polls.`)
}

// drainOrStop drains or stops workers. With --json the answer is the API's, a line for each.
func drainOrStop(a *command.App, verb, verbs, short, long string) *cobra.Command {
	var reason, by string
	cmd := &cobra.Command{
		Use: verb + " WORKER...", Short: short, Long: long + workerNames,
		Example: `  yard worker ` + verb + ` 5f0cb1a8 --reason "its disk fails"`,
		Args:    command.ArgCount(1, listedMax, "workers"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			changed := &yardv1.ListWorkersResponse{KnownForMs: workersKnownAfter.Milliseconds()}
			err := eachWorker(ctx, a, c, args, func(w *yardv1.LiveWorker) (codec.Message, error) {
				if verb == "stop" {
					resp, err := c.Wire().StopWorker(ctx, &yardv1.StopWorkerRequest{WorkerId: w.WorkerId, Reason: reason, By: by})
					changed.Workers = append(changed.Workers, resp.GetWorker())
					return resp, err
				}
				resp, err := c.Wire().DrainWorker(ctx, &yardv1.DrainWorkerRequest{WorkerId: w.WorkerId, Reason: reason, By: by})
				changed.Workers = append(changed.Workers, resp.GetWorker())
				return resp, err
			})
			if err != nil || a.JSON {
				return err
			}
			return printWorkers(a, changed)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people, also those who read the worker's log; up to 256 bytes")
	command.ByFlag(cmd.Flags(), &by, verbs+" it")
	return cmd
}

// eachWorker does something to each worker that arguments name, and prints the answers with --json.
func eachWorker(ctx context.Context, a *command.App, c *yard.Client, args []string, do func(*yardv1.LiveWorker) (codec.Message, error)) error {
	named, err := workersNamed(ctx, c, args)
	if err != nil {
		return err
	}
	for _, w := range named {
		answer, err := do(w)
		if err == nil && a.JSON {
			err = a.PrintJSON(answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func workerResume(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use: "resume WORKER...", Short: "End the drain of workers: they get tasks again",
		Long:    `End the drain of workers, or take back that they are to stop: within a second, they get tasks again. One that has learnt that it is to stop ends all the same.` + workerNames,
		Example: "  yard worker resume 5f0cb1a8",
		Args:    command.ArgCount(1, listedMax, "workers"),
		RunE: a.Client(func(ctx context.Context, c *yard.Client, args []string) error {
			var t command.Table
			t.Row("WORKER", "DRAINED SINCE", "BY", "REASON")
			err := eachWorker(ctx, a, c, args, func(w *yardv1.LiveWorker) (codec.Message, error) {
				resp, err := c.Wire().ResumeWorker(ctx, &yardv1.ResumeWorkerRequest{WorkerId: w.WorkerId})
				t.Row(cmp.Or(w.Worker, w.WorkerId), command.At(resp.GetDrain().GetSinceMs()), command.OrDash(resp.GetDrain().GetBy()), resp.GetDrain().GetReason())
				return resp, err
			})
			if err != nil || a.JSON {
				return err
			}
			return t.Write(a.Out)
		}),
	}
}

// listedMax is how many workers one command may name.
const listedMax = 1000

// workersNamed finds the live workers that arguments name, each once. A whole id that is not heard is left to the engine.
func workersNamed(ctx context.Context, c *yard.Client, args []string) (named []*yardv1.LiveWorker, err error) {
	all, err := liveWorkers(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		w, err := workerNamed(all.Workers, arg)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(named, func(other *yardv1.LiveWorker) bool { return other.WorkerId == w.WorkerId }) {
			named = append(named, w)
		}
	}
	return named, nil
}

func workerNamed(all []*yardv1.LiveWorker, arg string) (*yardv1.LiveWorker, error) {
	var found []*yardv1.LiveWorker
	for _, names := range []func(w *yardv1.LiveWorker) bool{
		func(w *yardv1.LiveWorker) bool { return w.WorkerId == arg },
		func(w *yardv1.LiveWorker) bool { return w.Worker == arg },
		func(w *yardv1.LiveWorker) bool {
			return len(arg) >= workerPrefixMin && strings.HasPrefix(w.WorkerId, arg)
		},
	} {
		if len(found) == 0 {
			found = slices.DeleteFunc(slices.Clone(all), func(w *yardv1.LiveWorker) bool { return !names(w) })
		}
	}
	switch len(found) {
	case 0:
		if len(arg) < workerIDMin {
			return nil, fault.New(fault.NotFound, "no live worker has the name %q, or an id that begins with it: `yard worker list -o wide` shows them", arg)
		}
		return &yardv1.LiveWorker{WorkerId: arg}, nil // one that may not have been heard yet
	case 1:
		return found[0], nil
	}
	return nil, command.Usagef("%q names %d workers, such as %s and %s: name one by its id", arg, len(found), found[0].WorkerId, found[1].WorkerId)
}
