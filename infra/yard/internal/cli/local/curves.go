package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	measure "github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/curves"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
)

// curvesFile is the name of the JSON file in the folder of the pictures.
const curvesFile = "curves.json"

func curvesCommand(a *command.App) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use: "curves [NAME...]", Short: "Measure how throughput and cost follow one setting, and draw it",
		Long: `Run W1, 20,000 tasks of it for each point, with one setting after the other at several values, each time on
a fresh system, or with --url on a running one:

  levels      limits that a task needs a slot of, 0 to 4, none of them full
  saturation  what the polls take at once, 1,600 tasks, in % of the limit of their only type: 25 to 3200
  types       types that the tasks are of, 1 to 1,000
  groups      groups that the tasks are of, 1 to 100,000, and at least as many tasks
  order-keys  order keys that the tasks are of, none to 100,000
  partitions  partitions of the tasklist, 1 to 16
  pollers     polls that wait for tasks at once, 1 to 10,000
  domains     of W8, one task per request: domains that exist, 1 to 100,000; 1,000 of them at most have tasks

Print a table, and write into the folder of --out curves.json and a picture of each curve, such as levels.png. What Redis did is from
its own counters: its CPU time, the calls of scripts, and the commands that these made. Every task is counted, as in bench.`,
		Example: `  yard bench curves
  yard bench curves levels saturation --runs 3 --out limits
  yard bench curves pollers --tables memory --sync 2m`,
		ValidArgs: measure.Names(),
		Args: func(cmd *cobra.Command, names []string) error {
			for _, name := range names {
				if !slices.Contains(measure.Names(), name) {
					return command.Usagef("curve %q: want some of %v", name, measure.Names())
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			target(a, cmd, &f)
			return curves(cmd.Context(), a, f, names)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.opts.Tasks, "tasks", 0, "tasks of a point; 0 = 20,000")
	flags.IntVar(&f.opts.Runs, "runs", 1, "runs of a point; the median is reported")
	flags.StringSliceVar(&f.opts.Syncs, "sync", []string{stack.SyncAlways}, `when accepted tasks go to disk: "always" or an interval, such as 2m`)
	f.system(flags)
	flags.StringVar(&f.file, "out", "curves", "the folder of the pictures and of curves.json; it is made where it is missing")
	return cmd
}

func curves(ctx context.Context, a *command.App, f benchFlags, names []string) error {
	measured, err := measure.Run(ctx, f.opts, names)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.file, 0o755); err != nil {
		return fmt.Errorf("folder of the curves: %w", err)
	}
	if err := writeFile(filepath.Join(f.file, curvesFile), measured.WriteJSON); err != nil {
		return err
	}
	for _, c := range measured.Curves {
		png, err := c.PNG()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(f.file, c.Name+".png"), png, 0o644); err != nil {
			return fmt.Errorf("picture of %s: %w", c.Name, err)
		}
	}
	if a.JSON {
		return measured.WriteJSON(a.Out)
	}
	return measured.WriteTable(a.Out)
}
