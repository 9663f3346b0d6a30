package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// What a stand-in reads from its environment.
const (
	// goVariable is the path of the real go command.
	goVariable = "MUTATE_GO"
	// packageVariable is the directory of the package under test.
	packageVariable = "MUTATE_PACKAGE"
	// hangsVariable is the file that takes the mutants that hang, see hang.
	hangsVariable = "MUTATE_HANGS"
	// timeoutVariable is how long the tests of a mutant may run.
	timeoutVariable = "MUTATE_TIMEOUT"
	// sampleVariable is how many percent of the mutants are tested.
	sampleVariable = "MUTATE_SAMPLE"
	// flagsVariable holds flags for the test binary, separated by spaces.
	flagsVariable = "MUTATE_FLAGS"
)

// dataBytesMax is how much memory one process of a test run may take: a mutant
// that appends forever must not take the machine with it.
const dataBytesMax = 4 << 30

// What the exit code of a test run means to gremlins.
const (
	exitKilled    = 1
	exitNotViable = 2
)

// unbuilt matches the summary line of a package that did not compile.
var unbuilt = regexp.MustCompile(`(?m)^FAIL\t\S+ \[(build|setup) failed\]$`)

// standIn runs in the place of the go command, where gremlins looks for it, and
// corrects what gremlins takes for granted. A mutant that does not compile makes
// `go test` fail like a test that fails, and would count as killed: it gets the
// exit code of its own. Coverage has gaps, see widen. And a time-out is for the tests
// alone, see hang.
func standIn(args []string) int {
	limit := syscall.Rlimit{Cur: dataBytesMax, Max: dataBytesMax}
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &limit); err != nil {
		fmt.Fprintln(os.Stderr, "limit memory:", err)
		return exitNotViable
	}
	profile := slices.Index(args, "-coverprofile") // the run without mutants
	if len(args) > 0 && args[0] == "test" && profile < 0 {
		out, err := leftOut()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		if out || err != nil {
			return exitNotViable
		}
	}
	var out bytes.Buffer
	cmd := exec.Command(os.Getenv(goVariable), testArgs(args)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	code := testExit(cmd.Run(), out.Bytes())
	var err error
	if code == 0 && profile >= 0 && profile+1 < len(args) {
		err = widenFile(args[profile+1], os.Getenv(packageVariable))
	} else if code == exitKilled && bytes.Contains(out.Bytes(), timedOut) {
		err = noteHang(os.Getenv(hangsVariable), os.Getenv(packageVariable))
	}
	if err != nil {
		// What this fails to note must not look like an answer.
		fmt.Fprintln(&out, err)
		code = exitNotViable
	}
	fmt.Fprint(os.Stdout, out.String())
	return code
}

// testArgs are the arguments of a test run with the time-out and flags of ours.
func testArgs(args []string) []string {
	if len(args) == 0 || args[0] != "test" {
		return args
	}
	args = slices.Clone(args)
	if at := slices.Index(args, "-timeout"); at >= 0 && at+1 < len(args) {
		args[at+1] = os.Getenv(timeoutVariable)
	}
	if flags := strings.Fields(os.Getenv(flagsVariable)); len(flags) > 0 {
		args = append(append(args, "-args"), flags...)
	}
	return args
}

func widenFile(profile, dir string) error {
	data, err := os.ReadFile(profile)
	if err != nil {
		return err
	}
	if data, err = widen(data, dir); err != nil {
		return err
	}
	return os.WriteFile(profile, data, 0o644)
}

// testExit is the exit code of a go command that ended with err and printed out.
func testExit(err error, out []byte) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit), unbuilt.Match(out):
		return exitNotViable
	}
	return exitKilled
}
