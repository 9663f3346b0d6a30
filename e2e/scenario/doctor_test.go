package scenario_test

import (
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// examined has the doctor look at all that the engine has stored, as the inspector, and fails the test for what it finds of this domain.
// Other tests go on meanwhile.
func (w *world) examined() {
	w.t.Helper()
	nc := connect(w.t, w.stack, permissions.User{Role: permissions.Inspector})
	js, err := jetstream.New(nc)
	testkit.NoError(w.t, err)
	var tables *doctor.Tables
	if strings.Contains(w.stack.TablesAt, "://") {
		opts, err := redis.ParseURL(w.stack.TablesAt)
		testkit.NoError(w.t, err)
		opts.DisableIdentity = true
		client := redis.NewClient(opts)
		defer func() { _ = client.Close() }() // nothing is under way
		tables = doctor.NewTables(client, nc)
	}
	report, err := doctor.Examine(w.soon(), js, tables, doctor.Options{Wait: time.Second})
	testkit.NoError(w.t, err)
	for _, f := range report.Findings {
		if f.Domain == w.domain {
			w.t.Errorf("the doctor finds %s at %s, task %q: %s", f.Code, f.Where, f.Task, f.What)
		}
	}
	w.t.Logf("the doctor looked at %+v, and did not check %q", report.Scanned, report.Unchecked)
}
