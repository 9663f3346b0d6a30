package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var (
	wordForm = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
	stepForm = regexp.MustCompile(`^(?:\$ (?:echo '(.*)' \| )?yard (.*)|(until|take|fail|serve)\b ?(.*)|(slow))$`)
	idOfRun  = regexp.MustCompile(`\$(\d)`)
)

// TestSessions runs each file of testdata/sessions on a system of its own, and compares what its commands print. A file has these steps:
//
//	slow                            the session is left out of quick runs
//	$ yard ARGS                     a command of the domain shop, perhaps with `echo 'INPUT' |` before it; what follows is what it prints
//	until [N ]TEXT, ...: ARGS       wait until a command's JSON has each text, N times if so said
//	take TASKLIST                   a worker takes a task
//	fail TASKLIST ERROR-TYPE TEXT   a worker takes a task and reports a failure
//	serve                           start the worker of startWorker
//
// $1 is the first id that was printed, $2 the second.
func TestSessions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "sessions", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		script, err := os.ReadFile(file)
		testkit.NoError(t, err)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			if strings.HasPrefix(string(script), "slow\n") {
				testkit.Slow(t, "takes a system of its own through many commands")
			}
			system := startStack(t)
			s := &session{t: t, url: system.URL}
			var seen []string
			for line := range strings.Lines(string(script)) {
				m := stepForm.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
				if m == nil {
					continue // what a command printed
				}
				for i := range m {
					m[i] = idOfRun.ReplaceAllStringFunc(m[i], func(n string) string { at, _ := strconv.Atoi(n[1:]); return seen[at-1] })
				}
				words := func(text string) (all []string) {
					for _, w := range wordForm.FindAllString(text, -1) {
						if quote := w[0]; quote == '"' || quote == '\'' {
							w = w[1 : len(w)-1]
						}
						all = append(all, w)
					}
					return all
				}
				s.text.WriteString(line)
				switch {
				case m[2] != "":
					for _, id := range idForm.FindAllString(s.print(m[1], words(m[2])...), -1) {
						if !slices.Contains(seen, id) {
							seen = append(seen, id)
						}
					}
				case m[3] == "until":
					at := strings.LastIndex(m[4], ": ")
					untilSaid(t, s.url, func(out string) bool { return has(out, m[4][:at]) }, words(m[4][at+2:])...)
				case m[3] == "take":
					s.take(m[4])
				case m[3] == "fail":
					args := strings.SplitN(m[4]+" ", " ", 3)
					s.fail(args[0], args[1], strings.TrimSpace(args[2]))
				case m[3] == "serve":
					startWorker(t, system)
				}
			}
			testkit.Golden(t, file, []byte(s.text.String()))
		})
	}
}

// has reports whether an answer has what a step waits for.
func has(out, wanted string) bool {
	for text := range strings.SplitSeq(wanted, ", ") {
		n, rest, counted := strings.Cut(text, " ")
		if want, err := strconv.Atoi(n); counted && err == nil {
			if strings.Count(out, rest) != want {
				return false
			}
		} else if !strings.Contains(out, text) {
			return false
		}
	}
	return true
}

// take takes a task of a tasklist, and returns it with the client that has it.
func (s *session) take(tasklist string) (*yard.Client, *yardv1.PolledTask) {
	s.t.Helper()
	c, err := yard.Connect(s.url, "shop")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	var tasks []*yardv1.PolledTask
	testkit.Eventually(s.t, within, func() error {
		if tasks, err = c.Wire().Poll(s.t.Context(), &yardv1.PollRequest{Tasklist: tasklist, MaxTasks: 1, WaitMs: 5000, Worker: "worker-1"}); len(tasks) == 0 {
			return fmt.Errorf("no task came: %v", err)
		}
		return nil
	})
	return c, tasks[0]
}

// fail takes a task of a tasklist, and lets it fail.
func (s *session) fail(tasklist, errorType, message string) {
	s.t.Helper()
	c, task := s.take(tasklist)
	v, err := c.Wire().Fail(s.t.Context(), []*yardv1.Failure{{TaskId: task.TaskId, Token: task.Token, Message: message, ErrorType: errorType}})
	if err != nil || v[0].Code != "OK" {
		s.t.Fatal(v, err)
	}
}
