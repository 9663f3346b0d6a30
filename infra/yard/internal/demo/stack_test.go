package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func startStack(t *testing.T) *stack.Stack {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir()})
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.Check(t, s.Close(context.WithoutCancel(t.Context()))) })
	return s
}

// TestDemoOnTheRealStack is the demo as people run it, only shorter, with tables
// in memory; the stack's own tests have those in Redis. Afterwards the same demo concludes once more, from answers and
// counts of an engine that is dishonest.
func TestDemoOnTheRealStack(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs the demo for seconds")
	s := startStack(t)
	var out bytes.Buffer
	opts := Options{
		Connect: func(string) (*nats.Conn, error) { return s.Connect("demo") }, Out: &out, JSON: true, Duration: 3 * time.Second, Scale: 1, Seed: 11,
	}
	testkit.NoError(t, opts.complete())
	d, err := newPlay(opts)
	testkit.NoError(t, err)
	defer d.close()
	runErr := d.run(t.Context())
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v (%v)\n%s", err, runErr, out.Bytes())
	}
	if runErr != nil || !r.OK {
		t.Fatalf("%v\n%s", runErr, out.Bytes())
	}
	if all := r.total(); all.Accepted < 100 || all.Dead == 0 || all.Cancelled == 0 || all.Retried == 0 || r.Bank.Paid == 0 || len(r.Waits) != 5 {
		t.Errorf("too little happened: %+v, %d paid, waits %+v", all, r.Bank.Paid, r.Waits)
	}

	media := d.tenants[1].ledger.ordered
	i := 1 + slices.IndexFunc(media[1:], func(e *entry) bool { return e.end.state == completed })
	media[0].end = ending{lost: true}           // the first task is unknown
	media[i].end = ending{state: dead, ends: 2} // another one ended twice
	d.bank.stats.InFlightMax = payoutsMax + 1   // there is no limit
	out.Reset()
	if err := d.conclude(); !errors.Is(err, ErrUnproven) {
		t.Errorf("the demo believes it: %v\n%s", err, out.Bytes())
	}
	testkit.NoError(t, json.Unmarshal(out.Bytes(), &r))
	failed := slices.DeleteFunc(r.Checks, func(c check) bool { return c.OK })
	if len(failed) != 4 { // tenants had work, and the bank is honest
		t.Errorf("the claims that failed: %+v", failed)
	}
}
