package outbox

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/outbox/outboxtest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// tenTasks are the tasks of a transaction, with 256 bytes of payload each.
func tenTasks() []yard.Task {
	tasks := make([]yard.Task, 10)
	for i := range tasks {
		tasks[i] = mail(make([]byte, 256))
	}
	return tasks
}

// BenchmarkRelay carries rows of ten tasks from PostgreSQL to an engine that answers at once, and prints how many tasks a second.
func BenchmarkRelay(b *testing.B) {
	db := openDB(b, "pgx", outboxtest.Postgres(b).DSN)
	defer func() { check(b, db.Close()) }()
	check(b, Postgres.Migrate(b.Context(), db))
	ob, tasks := New(Postgres, "shop"), tenTasks()
	fill(b, ob, db, tasks, b.N)
	var carried atomic.Int64
	r := newRelay(ob, db, newEngine(b), nil)
	r.submit = func(_ context.Context, req *yardv1.SubmitRequest) (*yardv1.SubmitResponse, error) {
		carried.Add(int64(len(req.Tasks)))
		resp := &yardv1.SubmitResponse{}
		for range req.Tasks {
			resp.Results = append(resp.Results, &yardv1.SubmitResult{Outcome: yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED})
		}
		return resp, nil
	}
	b.ResetTimer()
	check(b, r.Once(b.Context()))
	if want := int64(b.N * len(tasks)); carried.Load() != want {
		b.Errorf("%d tasks were carried, want %d", carried.Load(), want)
	}
	b.ReportMetric(float64(carried.Load())/b.Elapsed().Seconds(), "tasks/s")
}

// fill inserts so many rows, of which each has the tasks.
func fill(b *testing.B, ob *Outbox, db *sql.DB, tasks []yard.Task, rows int) {
	b.Helper()
	tx, err := db.BeginTx(b.Context(), nil)
	check(b, err)
	for range rows {
		_, err := ob.SubmitAll(b.Context(), tx, tasks)
		check(b, err)
	}
	check(b, tx.Commit())
}
