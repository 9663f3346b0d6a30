package cli_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// events runs `yard events` of the domain shop; it listens when events returns. What it has printed comes when it ends.
func (s *shell) events(args ...string) (printed <-chan string) {
	s.t.Helper()
	errs, log := io.Pipe()
	s.t.Cleanup(func() { testkit.Check(s.t, errs.Close()) })
	all := make(chan string, 1)
	go func() {
		var out bytes.Buffer
		code := cli.Run(s.t.Context(), append([]string{"--url", s.url, "-d", "shop", "events"}, args...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: log})
		testkit.Equal(s.t, "exit code", code, cli.ExitOK)
		all <- out.String()
	}()
	line, err := bufio.NewReader(errs).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "listening") {
		s.t.Fatalf("yard events %v: %q %v", args, line, err)
	}
	return all
}

// Events are printed as they come, of the kinds and the tasklist that are asked for.
func TestEventsArePrinted(t *testing.T) {
	s := newShell(t)
	s.yard("domain", "put", "shop", "--events", "--stuck-after", "1h")
	if out := s.yard("domain", "get", "shop"); !strings.Contains(out, "finished, dead, stuck after 1h0m0s") {
		t.Errorf("the domain is shown as\n%s", out)
	}
	first, mails, letters := s.events("--count", "1"), s.events("--count", "2", "-t", "mail"), s.events("--count", "1", "--kind", "dead", "--kind", "late", "--json")
	testkit.Eventually(t, within, func() error { // history learns of the setting a moment later
		s.yard("task", "cancel", "--yes", s.yard("task", "submit", "probe", "-t", "probes"))
		select {
		case <-first:
			return nil
		case <-time.After(100 * time.Millisecond):
			return errors.New("no event came")
		}
	})
	s.work("--exec", "test $YARD_TASK_TYPE = good || exit 65")
	good := s.yard("task", "submit", "good", "-t", "mail")
	s.await(good, inState("completed"))
	bad := s.yard("task", "submit", "bad", "-t", "mail")
	lines := strings.Split(strings.TrimSpace(<-mails), "\n")
	for i, want := range []string{"finished " + good + " good mail completed", "dead " + bad + " bad mail dead exit_65"} {
		if line := strings.Join(strings.Fields(lines[i]), " "); !strings.HasSuffix(line, want) {
			t.Errorf("%q is printed, want %q", line, want)
		}
	}
	want := `{"kind":"dead","tasklist":"mail","tasks":[{"task_id":"` + bad + `","type":"bad","state":"dead"`
	if line := <-letters; !strings.HasPrefix(line, want) {
		t.Errorf("%q is printed, want %q", line, want)
	}
}

// A domain that does not exist has no events, so the command ends at once.
func TestEventsOfNoDomain(t *testing.T) {
	s := newShell(t)
	if _, errs, code := run(t, "", "--url", s.url, "-d", "nowhere", "events"); code != cli.ExitFailed || !strings.Contains(errs, `NOT_FOUND: there is no domain "nowhere"`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestEventsOfAnUnknownKindAreRefused(t *testing.T) {
	s := newShell(t)
	if _, errs, code := run(t, "", "--url", s.url, "-d", "shop", "events", "--kind", "started"); code != cli.ExitFailed || !strings.Contains(errs, "want one of finished, dead, late, stuck") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
