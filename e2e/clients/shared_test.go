package clients_test

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/e2e/documents"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// steps are what a README of a client has this package's tests run: how to start the worker, and how to submit.
func steps(t *testing.T, readme, test string) (worker, submit string) {
	t.Helper()
	blocks, err := documents.Read(documents.Root(), readme)
	testkit.NoError(t, err)
	var found []string
	for _, b := range blocks {
		if b.RunBy == test {
			found = append(found, b.Text)
		}
	}
	if len(found) != 2 {
		t.Fatalf("%s has %d blocks that %s is to run, want two", readme, len(found), test)
	}
	return found[0], found[1]
}

// What every worker is tried with, by the handlers of the same names in each language.

// beatEvery is how often the workers beat for a task without a heartbeat timeout, ms.
const beatEvery = 10_000

// longTask runs for more than twice its heartbeat timeout.
const longTask = `{"type":"long","payload":{"ms":7000},"heartbeat_timeout_ms":3000}`

// endsInFirstAttempt waits for the end of a task of longTask, which says the number of its attempt.
func (d *domain) endsInFirstAttempt(t *testing.T, id string) {
	t.Helper()
	if end := d.becomes(t, id, "completed"); string(end.Result) != "1" || end.Grants != 1 {
		t.Errorf("it ended in its attempt %s of %d: %+v", end.Result, end.Grants, end)
	}
}

// cancelled cancels an attempt that the worker beats for every ten seconds only. That it hears of the cancel before its
// first heartbeat is due is by the hint; a slow machine may take several tries for it.
func cancelled(t *testing.T, d *domain) {
	const tries = 5
	for try := 1; ; try++ {
		id := d.submit(t, "work", `{"type":"obedient"}`)
		d.becomes(t, id, "running")
		d.ask(t, "tasks.cancel", fmt.Sprintf(`{"task_ids":[%q]}`, id), nil)
		end := d.becomes(t, id, "cancelled")
		var took int
		for _, e := range end.Events {
			if e.Kind == "failed" || e.Kind == "cancelled" {
				if _, err := fmt.Sscanf(e.Message, "cancelled after %d ms", &took); err == nil {
					break
				}
			}
		}
		t.Logf("cancelled %d ms after its start", took)
		switch {
		case took == 0:
			t.Fatalf("the handler was not asked to stop: %+v", end)
		case took < beatEvery:
			return
		case try == tries:
			t.Fatalf("no cancel was heard before a heartbeat")
		}
	}
}

// drain stops the worker while a task runs. It ends that one and leaves what comes then to others.
func drain(t *testing.T, d *domain, p *program) {
	running := d.submit(t, "work", `{"type":"gate"}`)
	p.says(t, "gate")
	p.stop(t)
	p.says(t, "stopping")
	later := d.submit(t, "work", `{"type":"gate"}`)
	testkit.NoError(t, testkit.Err(p.in.Write([]byte("open\n"))))
	p.wait(t)
	if end := d.get(t, running); end.State != "completed" || string(end.Result) != `"finished"` {
		t.Errorf("what ran is %+v", end)
	}
	if left := d.becomes(t, later, "ready"); left.Failures != 0 {
		t.Errorf("what came while the worker stopped is %+v", left)
	}
	testkit.Equal(t, "it began tasks of type gate", strings.Count(strings.Join(p.lines(), "\n"), "gate"), 1)
}

// outage takes the whole system away from a worker that waits for a task, and brings it back: the worker goes on. Then
// it takes it away for good, and the worker still ends when it is asked to.
func outage(t *testing.T, startWorker func(s *stack.Stack, domain string) *program) {
	cfg := stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir()}
	begin := func() (s *stack.Stack, end func()) {
		s, err := stack.Start(t.Context(), cfg)
		testkit.NoError(t, err)
		end = sync.OnceFunc(func() {
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			testkit.Check(t, s.Close(ctx))
		})
		t.Cleanup(end)
		return s, end
	}
	echoes := func(s *stack.Stack) {
		d := newDomain(t, s, "outage")
		defer d.nc.Close()
		d.becomes(t, d.submit(t, "work", `{"type":"echo","payload":1}`), "completed")
	}
	s, end := begin()
	newDomain(t, s, "outage").nc.Close()
	p := startWorker(s, "outage")
	echoes(s)
	end()

	address, err := url.Parse(s.URL)
	testkit.NoError(t, err)
	if cfg.Port, err = strconv.Atoi(address.Port()); err != nil {
		t.Fatal(err)
	}
	s, end = begin()
	echoes(s)
	end()
	p.stop(t)
	p.wait(t)
}
