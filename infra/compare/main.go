// Command compare measures Yardmaster side by side with asynq, River and a bare JetStream queue.
//
// Owns: the flags, the order of the runs, and the end on ctrl-C. Never does: measure Yardmaster alone, which is `yard
// bench`. On failure: a system that is not on this machine is left out, and one that fails in a run is named; the exit
// status is 1 then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `Measures Yardmaster side by side with asynq, River and a bare JetStream queue on this machine, at equal durability,
and writes compare.md, compare.json and compare.svg.

A system whose servers are missing is left out: asynq needs redis-server, River needs PostgreSQL. Servers listen on
free ports of this machine and keep their data in a folder that is removed. It runs on Linux.

The systems take turns: each run measures each system once. With the defaults it takes about 13 minutes. Other
programs should be quiet meanwhile.

Usage: compare [flags]

`

// options are the flags.
type options struct {
	runs     int
	duration time.Duration
	only     []string
	yard     string
	out      string
	dir      string
	command  string
}

// Bounds of the flags.
const (
	runsMax     = 100
	durationMin = 200 * time.Millisecond
	durationMax = time.Minute
)

func parse(args []string, errs io.Writer) (options, error) {
	o := options{command: "task compare"}
	if len(args) > 0 {
		o.command += " -- " + strings.Join(args, " ")
	}
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprint(errs, usage)
		flags.PrintDefaults()
	}
	only := ""
	flags.IntVar(&o.runs, "runs", 5, "measure each system so often; medians are reported")
	flags.DurationVar(&o.duration, "duration", 2*time.Second, "how long each workload of a run lasts")
	flags.StringVar(&only, "only", "", "some of yardmaster,jetstream,asynq,river; default all")
	flags.StringVar(&o.yard, "yard", "bin/yard", "the program yard")
	flags.StringVar(&o.out, "out", "infra/docs", "folder for the report")
	flags.StringVar(&o.dir, "dir", ".", "folder for the data; its disk is measured")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("argument %q: there are flags only", flags.Arg(0))
	case o.runs < 1 || o.runs > runsMax:
		return o, fmt.Errorf("%d runs: want 1 to %d", o.runs, runsMax)
	case o.duration < durationMin || o.duration > durationMax:
		return o, fmt.Errorf("duration %v: want %v to %v", o.duration, durationMin, durationMax)
	}
	return o, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err == nil:
		err = compare(ctx, o, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		stop()
		os.Exit(1)
	}
}
