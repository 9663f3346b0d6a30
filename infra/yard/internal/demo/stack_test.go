package demo

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestDemoOnTheRealStack is the demo as people run it, only shorter, with tables
// in memory; the stack's own tests have those in Redis.
func TestDemoOnTheRealStack(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs the demo for seconds")
	s, err := stack.Start(t.Context(), stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir()})
	testkit.NoError(t, err)
	var out bytes.Buffer
	runErr := Run(t.Context(), Options{
		Connect: func(_, name string) (*nats.Conn, error) { return s.Connect(name) }, Out: &out, JSON: true, Duration: 3 * time.Second, Scale: 1, Seed: 11, lookUpStall: 20 * time.Second,
	})
	testkit.Check(t, s.Close(t.Context()))
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v (%v)\n%s", err, runErr, out.Bytes())
	}
	if runErr != nil || !r.OK {
		t.Fatalf("%v\n%s", runErr, out.Bytes())
	}
	if all := r.total(); all.Accepted < 100 || all.Dead == 0 || all.Cancelled == 0 || all.Retried == 0 {
		t.Errorf("too little happened: %+v", all)
	}
}
