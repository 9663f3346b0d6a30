package outbox_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yardmaster-io/yardmaster/contracts/outbox"
	"github.com/yardmaster-io/yardmaster/contracts/outbox/outboxpgx"
	"github.com/yardmaster-io/yardmaster/contracts/outbox/outboxtest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// clients is how many connections commit transactions side by side, for each core.
const clients = 16

// BenchmarkTransactions commits transactions of ten tasks on PostgreSQL, and prints how many a second: YARD_TESTS=all go test -bench Transactions.
func BenchmarkTransactions(b *testing.B) {
	server := outboxtest.Postgres(b)
	pool, err := pgxpool.New(b.Context(), server.DSN+"&pool_max_conns=64")
	must(err)
	defer pool.Close()
	db, err := sql.Open("pgx", server.DSN)
	must(err)
	must(outbox.Postgres.Migrate(b.Context(), db))
	must(db.Close())
	ob, tasks := outbox.New(outbox.Postgres, "shop"), make([]yard.Task, 10)
	for i := range tasks {
		tasks[i] = yard.Task{Type: "email.send", Tasklist: "mail", Payload: make([]byte, 256)}
	}
	b.SetParallelism(clients)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			tx, err := pool.Begin(context.Background())
			if err == nil {
				_, err = ob.SubmitAll(context.Background(), outboxpgx.Tx(tx), tasks)
			}
			if err == nil {
				err = tx.Commit(context.Background())
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "transactions/s")
}
