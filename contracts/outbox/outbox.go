package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
)

// Outbox writes the tasks of one domain into databases of one dialect. It is a value without state, and safe for concurrent use.
type Outbox struct {
	dialect Dialect
	domain  string
	content coded.Codec
}

// New returns the outbox of a domain.
func New(d Dialect, domain string) *Outbox { return &Outbox{dialect: d, domain: domain} }

// WithCodec is the same outbox for programs whose clients have a codec (yard.WithCodec): payloads are encoded in the row. The relay needs no key.
func (o *Outbox) WithCodec(content coded.Codec) *Outbox {
	with := *o
	with.content = content
	return &with
}

// Dialect is the dialect of its databases.
func (o *Outbox) Dialect() Dialect { return o.dialect }

// Tx is a transaction: a *sql.Tx, or a pgx.Tx by outboxpgx.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Submit adds a task to the transaction. It returns the outbox id, which the task has in its header outbox-id.
//
// The task is as in yard.Client.Submit, with one difference: Delay counts from this call. A task whose time is over when it is relayed is due at once. The error
// is INVALID_ARGUMENT if the task has no valid type, tasklist or payload. The engine checks the rest when the task is relayed.
func (o *Outbox) Submit(ctx context.Context, tx Tx, task yard.Task) (string, error) {
	all, err := o.SubmitAll(ctx, tx, []yard.Task{task})
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// SubmitAll adds tasks to the transaction and returns their outbox ids, in order. Tasks without keys share a row, up to 1000 tasks and 512 KiB, and the engine
// accepts the tasks of a row together. Tasks with one order key and one batch do so, too. If it returns an error, roll back.
func (o *Outbox) SubmitAll(ctx context.Context, tx Tx, tasks []yard.Task) ([]string, error) {
	now := time.Now()
	rows, ids, err := pack(ctx, tasks, o.content, now)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		body, err := r.body()
		if err != nil {
			return nil, err
		}
		_, err = tx.ExecContext(ctx, o.dialect.text(insertRow), o.domain, r.lane, len(r.tasks), body, now.UnixMilli())
		if err != nil {
			return nil, fmt.Errorf("insert into yard_outbox: %w", err)
		}
	}
	return ids, nil
}

// Kick asks the relays of the domain to look for rows now, and not at their next poll. Call it after the commit. It is a hint without an
// answer: if it is lost, the rows wait for the poll.
func (o *Outbox) Kick(nc *nats.Conn) error { return nc.Publish(topology.OutboxHint(o.domain), nil) }
