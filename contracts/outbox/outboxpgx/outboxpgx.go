// Package outboxpgx submits tasks in a transaction of pgx without database/sql.
//
// Owns: the adapter. Never does: anything of its own. On failure: it returns the error of pgx.
package outboxpgx

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"

	"github.com/yardmaster-io/yardmaster/contracts/outbox"
)

// Tx is a pgx transaction as Outbox.Submit takes it: ob.Submit(ctx, outboxpgx.Tx(tx), task).
func Tx(tx pgx.Tx) outbox.Tx { return adapter{tx} }

type adapter struct{ tx pgx.Tx }

// ExecContext implements outbox.Tx.
func (a adapter) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := a.tx.Exec(ctx, query, args...)
	return driver.RowsAffected(tag.RowsAffected()), err
}
