package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// hangMin and hangFactor: tests of a mutant hang when they run longer than
	// hangMin, and than hangFactor times the unmutated ones.
	hangMin    = 10 * time.Second
	hangFactor = 4
	// giveUpFactor is the time-out of gremlins in times of its own unmutated run.
	// It counts the compilation in, and is there for what hangs outside of tests.
	giveUpFactor = 500
	// stopMax is how long gremlins may take to end when interrupted; it does not always.
	stopMax = 5 * time.Second
	// histories is how many random histories the long models run for a mutant; they run
	// thousands for a person. What only the many find counts as alive.
	histories = 300
	// progressEvery is how many mutants lie between two lines of progress.
	progressEvery = 25
)

// harness is a copy of the repository with all that gremlins needs to be right.
type harness struct {
	root, dir string
	gremlins  string
	workers   int
	sample    int
	env       []string
	goCommand string
	out       io.Writer
}

// newHarness makes the copy in a directory of its own; close removes it.
func newHarness(root string, o options, out io.Writer) (*harness, error) {
	gremlins, err := filepath.Abs(o.gremlins)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(gremlins); err != nil {
		return nil, fmt.Errorf("%w: task mutate builds it", err)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	h := &harness{root: root, dir: dir, gremlins: gremlins, workers: o.workers, sample: o.sample, goCommand: goCommand, out: out}
	path, scratch := filepath.Join(dir, "path"), filepath.Join(dir, "scratch")
	for _, d := range []string{path, scratch} {
		if err := os.Mkdir(d, 0o755); err != nil {
			h.close()
			return nil, err
		}
	}
	if err := os.Symlink(self, filepath.Join(path, "go")); err != nil {
		h.close()
		return nil, err
	}
	h.env = append(
		os.Environ(), "GOWORK=off", "TMPDIR="+scratch, "YARD_HISTORIES="+strconv.Itoa(histories), goVariable+"="+goCommand,
		"PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"),
	)
	if err := copyRepository(root, h.repository()); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *harness) close() { os.RemoveAll(h.dir) } //nolint:errcheck // a directory for temporary files is cleaned by the system too

func (h *harness) repository() string { return filepath.Join(h.dir, "repository") }

// mutate proves the harness on pkg, then tests all mutants of pkg.
func (h *harness) mutate(ctx context.Context, pkg string) (result, error) {
	fmt.Fprintf(h.out, "%s\n", pkg)
	dir := filepath.Join(h.repository(), filepath.FromSlash(pkg))
	name, files, err := inspect(dir)
	if err != nil {
		return result{}, err
	}
	if err := plant(dir, name); err != nil {
		return result{}, err
	}
	took, err := h.baseline(ctx, dir)
	if err != nil {
		return result{}, err
	}
	var others []string
	for _, f := range files {
		others = append(others, "^"+regexp.QuoteMeta(f)+"$")
	}
	planted, err := h.unleash(ctx, dir, others, took, sampleAll)
	if err != nil {
		return result{}, err
	}
	if err := proven(planted); err != nil {
		return result{}, err
	}
	fmt.Fprintf(h.out, "  proven: the code passes unchanged, planted mutants end as they must\n")
	if err := uproot(dir); err != nil {
		return result{}, err
	}
	mutants, err := h.unleash(ctx, dir, nil, took, h.sample)
	if err != nil {
		return result{}, err
	}
	for i := range mutants {
		mutants[i].Func, err = functionAt(filepath.Join(dir, mutants[i].File), mutants[i].Line)
		if err != nil {
			return result{}, err
		}
	}
	return newResult(pkg, mutants), nil
}

// inspect returns a package's name and its files that are not tests.
func inspect(dir string) (name string, files []string, err error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", nil, err
	}
	for _, at := range found {
		if strings.HasSuffix(at, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.PackageClauseOnly)
		if err != nil {
			return "", nil, err
		}
		name, files = file.Name.Name, append(files, filepath.Base(at))
	}
	if name == "" {
		return "", nil, fmt.Errorf("no code but tests")
	}
	return name, files, nil
}

// baseline runs the tests unmutated, twice, and returns how long the second run
// takes: the first one compiles what they need.
func (h *harness) baseline(ctx context.Context, dir string) (took time.Duration, err error) {
	for range 2 {
		started := time.Now()
		cmd := exec.CommandContext(ctx, h.goCommand, "test", "-count=1", "-cover", ".")
		cmd.Dir, cmd.Env = dir, h.env
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("the unmutated code does not pass in the copy: %w\n%s", err, out)
		}
		took = time.Since(started)
	}
	return took, nil
}

// hangAfter is how long the tests of a mutant may run.
func hangAfter(took time.Duration) time.Duration { return max(hangMin, hangFactor*took) }

// unleash runs gremlins on a sample of the package in dir without the files that match exclude.
func (h *harness) unleash(ctx context.Context, dir string, exclude []string, took time.Duration, percent int) ([]mutant, error) {
	module, err := moduleDir(h.repository(), dir)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(module, dir)
	if err != nil {
		return nil, err
	}
	results, hung := filepath.Join(h.dir, "gremlins.json"), filepath.Join(h.dir, "hangs")
	if err := errors.Join(os.RemoveAll(results), os.RemoveAll(hung)); err != nil {
		return nil, err
	}
	args := []string{
		"unleash", "./" + rel, "--output", results, "--workers", strconv.Itoa(h.workers),
		"--timeout-coefficient", strconv.Itoa(giveUpFactor),
		"--invert-negatives=false", // the same mutants as those of ARITHMETIC_BASE
		"--exclude-files", "/",     // packages below are packages of their own
	}
	for _, e := range exclude {
		args = append(args, "--exclude-files", e)
	}
	cmd := exec.CommandContext(ctx, h.gremlins, args...)
	flags, err := testFlags(dir)
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Env = module, append(
		slices.Clone(h.env), packageVariable+"="+dir, hangsVariable+"="+hung,
		timeoutVariable+"="+hangAfter(took).String(), flagsVariable+"="+flags,
		sampleVariable+"="+strconv.Itoa(percent),
	)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopMax
	var problems bytes.Buffer
	cmd.Stderr = &problems
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	log := h.follow(pipe)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if problems.Len() > 0 {
		err = errors.Join(err, errors.New(problems.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("gremlins failed: %w\n%s", err, log)
	}
	data, err := os.ReadFile(results)
	if err != nil {
		return nil, fmt.Errorf("gremlins wrote no results: %w\n%s", err, log)
	}
	mutants, err := parseMutants(data)
	if err != nil {
		return nil, err
	}
	mutants = sample(mutants, percent)
	hangs, err := readHangs(hung)
	if err != nil {
		return nil, err
	}
	return mutants, applyHangs(mutants, hangs)
}

// testFlags are for the tests of the package in dir. Package rapid keeps an input
// that failed and tries it first in the next run, where it would kill a mutant
// that the tests alone may not find; and it takes its time to make it smaller.
func testFlags(dir string) (string, error) {
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return "", err
	}
	for _, at := range tests {
		text, err := os.ReadFile(at)
		if err != nil {
			return "", err
		}
		if bytes.Contains(text, []byte(`"pgregory.net/rapid"`)) {
			return "-rapid.nofailfile -rapid.shrinktime=0s", nil
		}
	}
	return "", nil
}

// follow shows progress while gremlins runs, and returns what it printed.
func (h *harness) follow(pipe io.Reader) string {
	var log strings.Builder
	started, mutants := time.Now(), 0
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		fmt.Fprintln(&log, line)
		if !strings.Contains(line, " at ") {
			continue
		}
		if mutants++; mutants%progressEvery == 0 {
			fmt.Fprintf(h.out, "  %d mutants after %d s\n", mutants, int(time.Since(started).Seconds()))
		}
		if !strings.HasPrefix(line, statusKilled) && !strings.HasPrefix(line, statusNotViable) && !strings.Contains(line, plantFile) {
			fmt.Fprintf(h.out, "  %s\n", line)
		}
	}
	return log.String()
}
