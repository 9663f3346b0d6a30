// Command mutate runs mutation tests: gremlins changes one operator of a package
// at a time, and a test of that package must fail for each change.
//
// Owns: a copy of the repository in which gremlins can tell the truth, the proof
// that it does, what counts as killed, and the list of mutants that may live
// (survivors.txt, with the reason of each).
//
// Never does: change the repository, or run the tests of any package but the
// mutated one.
//
// On failure: exit code 1 where tests are too weak, 2 where the harness cannot be
// trusted; then there are no numbers at all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// What every package must reach, in percent.
const (
	killedMin  = 90
	coveredMin = 95
)

// errWeak: the run is sound, and the tests are not good enough.
var errWeak = errors.New("the tests are too weak")

const usage = `usage: task mutate -- [flags] [package directory...]

Changes one operator at a time in the packages, by default every core of the
workspace (services/*/internal/core/*), and runs their tests on each change.
A change that no test sees is a survivor: write a test, or put the reason why it
may live into infra/tools/mutate/survivors.txt. Of a large package with slow tests -sample tests
a part.

exit code 0: every package reaches %d %% killed and %d %% covered, and every
survivor has a reason; 1: not so; 2: the run failed.

flags:
`

// options are what the command line says.
type options struct {
	packages []string
	gremlins string
	out      string
	workers  int
	sample   int // percent
}

func main() {
	if filepath.Base(os.Args[0]) == "go" {
		os.Exit(standIn(os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errWeak):
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "mutate:", err)
	os.Exit(2)
}

func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprintf(out, usage, killedMin, coveredMin)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.gremlins, "gremlins", "bin/gremlins", "the gremlins `program`; task mutate builds it")
	flags.StringVar(&o.out, "out", "", "write the results as JSON to this `file`")
	flags.IntVar(&o.workers, "workers", 2, "mutants tested at once")
	flags.IntVar(&o.sample, "sample", sampleAll, "how many `percent` of the mutants are tested, always the same ones")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.sample < 1 || o.sample > sampleAll {
		return o, fmt.Errorf("-sample %d: it is 1 to %d percent", o.sample, sampleAll)
	}
	o.packages = flags.Args()
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseFlags(args, out)
	if err != nil {
		return err
	}
	root, err := repositoryRoot()
	if err != nil {
		return err
	}
	all := len(o.packages) == 0
	if o.packages, err = choose(root, o.packages); err != nil {
		return err
	}
	list, err := readSurvivors(filepath.Join(root, survivorsFile))
	if err != nil {
		return err
	}
	h, err := newHarness(root, o, out)
	if err != nil {
		return err
	}
	defer h.close()
	var results []result
	for _, pkg := range o.packages {
		r, err := h.mutate(ctx, pkg)
		if err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		results = append(results, r)
	}
	if o.sample < sampleAll {
		fmt.Fprintf(out, "\na sample: about %d %% of the mutants were tested\n", o.sample)
	}
	findings := explain(results, list, all, o.sample < sampleAll)
	if err := report(out, results, findings); err != nil {
		return err
	}
	if o.out != "" {
		if err := writeJSON(o.out, results, findings); err != nil {
			return err
		}
	}
	if len(findings) > 0 {
		return fmt.Errorf("%w: %d findings", errWeak, len(findings))
	}
	return nil
}
