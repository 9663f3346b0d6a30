package cli_test

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var (
	// Columns are as wide as what stands in them, so spaces go with times.
	agoForm   = regexp.MustCompile(` +(-|[0-9.hmsµn]+ ago)( +|\n)`)
	shareForm = regexp.MustCompile(` +\d+% of [0-9.hmsµn]+ *`)
	forForm   = regexp.MustCompile(`(running|  \d) +[0-9.hmsµn]+s\n`)
	countForm = regexp.MustCompile(`(<ago>|type/pay +mail) +\d+ +`) // of ready tasks: one that is triggered again counts twice
	lastForm  = regexp.MustCompile(`"(waiting_tasks|tasks|seen_ago_ms|known_for_ms|held_for_ms|waiting_for_ms|full_for_ms|observed_ms|saturation_percent)":\d+`)
	tallyForm = regexp.MustCompile(`FULL +FULL SINCE +`)
	pollForm  = regexp.MustCompile(`LAST POLL +`)
)

// steadyTimes replaces durations, too.
func steadyTimes(text string) string {
	text = steady(text)
	text = lastForm.ReplaceAllString(text, `"$1":0`)
	text = shareForm.ReplaceAllString(text, "  <share>  ")
	text = agoForm.ReplaceAllString(text, "  <ago>$2")
	text = forForm.ReplaceAllString(text, "$1  <for>\n")
	text = regexp.MustCompile(`<ago> +`).ReplaceAllString(text, "<ago>  ")
	text = countForm.ReplaceAllString(text, "$1  <n>  ")
	return pollForm.ReplaceAllString(tallyForm.ReplaceAllString(text, "FULL  FULL SINCE  "), "LAST POLL  ")
}

func TestASessionWithAFullLimit(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	s.do("limit", "top")
	s.do("tasklist", "pollers", "mail")
	s.do("type", "put", "pay", "--max-concurrency", "1")
	client, err := yard.Connect(system.URL, "shop")
	testkit.NoError(t, err)
	t.Cleanup(client.Close)
	s.do("task", "submit", "pay", `"ann"`, "-t", "mail")
	poll := &yardv1.PollRequest{Tasklist: "mail", MaxTasks: 1, WaitMs: within.Milliseconds() / 2, Worker: "payer", WorkerVersion: "v1.4.2", Types: []string{"pay", "b", "c", "d", "e"}}
	attempts, err := client.Wire().Poll(t.Context(), poll)
	if err != nil || len(attempts) != 1 {
		t.Fatalf("%v %v", attempts, err)
	}
	waits, stop := context.WithCancel(t.Context())
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		_, _ = client.Wire().Poll(waits, poll) // it waits until it is stopped
	}()
	s.do("task", "submit", "pay", `"bob"`, "-t", "mail")
	untilSaid(t, system.URL, func(out string) bool {
		return strings.Contains(out, `"waiting_tasks":`) && strings.Contains(out, `"full_for_ms"`) && strings.Contains(out, `"saturation_percent"`) && strings.Contains(out, `"state":"running"`)
	}, "limit", "top")
	s.do("limit", "top", "--watch", "1ms")
	s.do("limit", "top", "--limit", "101")
	s.do("limit", "top")
	s.do("-o", "wide", "limit", "top", "--by-waiting")
	s.do("--json", "limit", "top")
	s.do("tasklist", "pollers", "mail")
	s.do("-o", "wide", "tasklist", "pollers", "mail")
	s.do("--json", "tasklist", "pollers", "mail")
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, `"pollers":1`) }, "tasklist", "describe", "mail")
	stop()
	<-polled
	testkit.Golden(t, filepath.Join("testdata", "top.txt"), []byte(steadyTimes(s.text.String())))
}

// A worker of the command is one poller, with its name and the version that it was given.
func TestAWorkerOfTheCommandIsOnePoller(t *testing.T) {
	s := newShell(t)
	s.work("--exec", "cat", "--identity", "cat-1", "--version-label", "v7")
	untilSaid(t, s.url, func(out string) bool { return strings.Contains(out, `"waiting_polls"`) }, "tasklist", "pollers", "mail")
	if out := s.yard("--json", "tasklist", "pollers", "mail"); strings.Count(out, `"worker"`) != 1 || strings.Count(out, "{") != 2 || !strings.Contains(out, `"worker":"cat-1","version":"v7",`) || strings.Contains(out, `"types"`) {
		t.Errorf("they are %s", out)
	}
}

// The same worker is alive, and what it runs is known.
func TestAWorkerOfTheCommandIsListed(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	s := newShell(t)
	s.work("--exec", "sleep 60", "--identity", "sleeper", "--version-label", "v7", "--drain-timeout", "0s")
	s.yard("task", "submit", "nap", "-t", "mail")
	untilSaid(t, s.url, func(out string) bool { return strings.Contains(out, `"attempts_count":1`) }, "worker", "list")
	if out := s.yard("--json", "worker", "list"); strings.Count(out, `"worker"`) != 1 || !strings.Contains(out, `"worker":"sleeper","version":"v7","host":`) || !strings.Contains(out, `"type":"nap","tasklist":"mail"`) {
		t.Errorf("they are %s", out)
	}
	if out := s.yard("worker", "list"); !strings.Contains(out, "sleeper") || !strings.Contains(out, "others may not be heard yet") || strings.Contains(out, "OLDEST") {
		t.Errorf("they are\n%s", out)
	}
	if out := s.yard("-o", "wide", "worker", "list"); !strings.Contains(out, " nap for ") {
		t.Errorf("they are\n%s", out)
	}
}

// watched stops what writes into it with the third answer.
type watched struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (w *watched) Write(p []byte) (int, error) {
	if strings.Count(w.String(), "LIMIT") == 3 {
		w.stop()
	}
	return w.Buffer.Write(p)
}

func TestLimitsAreWatched(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	system := startStack(t)
	ok(t, "--url", system.URL, "domain", "put", "shop")
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	out, errs := &watched{stop: cancel}, new(bytes.Buffer)
	code := cli.Run(ctx, []string{"--url", system.URL, "-d", "shop", "limit", "top", "--watch", "500ms"}, cli.Streams{In: strings.NewReader(""), Out: out, Err: errs})
	if n := strings.Count(out.String(), "LIMIT"); n < 3 || code != cli.ExitOK || errs.Len() > 0 {
		t.Errorf("exit code %d, %d answers:\n%s%s", code, n, out, errs)
	}
}
