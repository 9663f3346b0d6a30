package outbox

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// Dialect is the SQL that a database speaks.
type Dialect string

// The dialects.
const (
	// Postgres is PostgreSQL 12 or later.
	Postgres Dialect = "postgres"
	// MySQL is MySQL 8 or later, or MariaDB 10.6 or later.
	MySQL Dialect = "mysql"
	// SQLite is SQLite 3.31 or later.
	SQLite Dialect = "sqlite"
)

// Dialects are all of them.
func Dialects() []Dialect { return []Dialect{Postgres, MySQL, SQLite} }

//go:embed schema/postgres.sql
var schemaPostgres string

//go:embed schema/mysql.sql
var schemaMySQL string

//go:embed schema/sqlite.sql
var schemaSQLite string

// Schema is the SQL that makes the two tables, for migrations of one's own. It changes nothing if they are there.
func (d Dialect) Schema() string {
	return map[Dialect]string{Postgres: schemaPostgres, MySQL: schemaMySQL, SQLite: schemaSQLite}[d]
}

// Migrate makes the two tables if they are not there.
func (d Dialect) Migrate(ctx context.Context, db *sql.DB) error {
	for statement := range strings.SplitSeq(d.Schema(), ";") {
		if statement = strings.TrimSpace(statement); statement == "" {
			continue
		}
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("make the tables of the outbox: %w", err)
		}
	}
	return nil
}

// nowName stands for the clock of the database, Unix ms, and insertName for an insert that leaves alone what is there.
const nowName, insertName, restName = "NOW_MS", "INSERT_NEW", "OR_NOTHING"

const (
	insertRow = `INSERT INTO yard_outbox (domain, lane, tasks, body, created_ms) VALUES (?, ?, ?, ?, ?)`

	insertLane = insertName + ` INTO yard_outbox_lane (domain, lane) VALUES (?, ?) ` + restName

	// lanesReady are the lanes with work that this relay may take.
	lanesReady = `SELECT l.lane FROM yard_outbox_lane l WHERE l.domain = ? AND (l.owner = ? OR l.until_ms < ` + nowName + `) AND (l.request_id <> '' OR EXISTS (
		SELECT 1 FROM yard_outbox o WHERE o.domain = l.domain AND o.state = 0 AND o.lane = l.lane)) ORDER BY l.lane`

	takeLane = `UPDATE yard_outbox_lane SET owner = ?, until_ms = ` + nowName + ` + ?, turns = turns + 1
		WHERE domain = ? AND lane = ? AND (owner = ? OR until_ms < ` + nowName + `)`
	leaveLane   = `UPDATE yard_outbox_lane SET owner = '', until_ms = 0 WHERE domain = ? AND lane = ? AND owner = ?`
	readLane    = `SELECT turns, request_id, COALESCE(row_ids, '') FROM yard_outbox_lane WHERE domain = ? AND lane = ?`
	nameRequest = `UPDATE yard_outbox_lane SET request_id = ?, row_ids = ? WHERE domain = ? AND lane = ?`

	nextRows = `SELECT id, body FROM yard_outbox WHERE domain = ? AND state = 0 AND lane = ? ORDER BY id LIMIT ?`
	sentRows = `SELECT id, body FROM yard_outbox WHERE id IN (%s) ORDER BY id`
	dropRows = `DELETE FROM yard_outbox WHERE id IN (%s)`
	// dropRowsMySQL finds each row by its id. With dropRows, MySQL may scan the table and wait for rows of transactions that are open.
	dropRowsMySQL = `DELETE o FROM JSON_TABLE('[%s]', '$[*]' COLUMNS (id BIGINT PATH '$')) x STRAIGHT_JOIN yard_outbox o FORCE INDEX (PRIMARY) ON o.id = x.id`

	setAside = `UPDATE yard_outbox SET state = ?, reason = ? WHERE id = ?`

	listAside    = `SELECT id, state, tasks, created_ms, COALESCE(reason, ''), body FROM yard_outbox WHERE domain = ? AND state <> 0 ORDER BY id LIMIT ?`
	redriveAside = `UPDATE yard_outbox SET state = 0, reason = NULL WHERE domain = ? AND state <> 0 AND id = ?`
	deleteAside  = `DELETE FROM yard_outbox WHERE domain = ? AND state <> 0 AND id = ?`
	countRows    = `SELECT state, COUNT(*), SUM(tasks), MIN(created_ms), ` + nowName + ` FROM yard_outbox WHERE domain = ? GROUP BY state`
)

// text is a statement in the dialect.
func (d Dialect) text(statement string) string {
	var now, insert, rest string
	switch d {
	case Postgres:
		now, insert, rest = `CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)`, `INSERT`, `ON CONFLICT DO NOTHING`
	case MySQL:
		now, insert = `(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)`, `INSERT IGNORE`
	case SQLite:
		now, insert, rest = `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`, `INSERT`, `ON CONFLICT DO NOTHING`
	}
	statement = strings.NewReplacer(nowName, now, insertName, insert, restName, rest).Replace(statement)
	if d != Postgres {
		return statement
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// dropping is the statement that deletes rows.
func (d Dialect) dropping(rows []int64) string {
	statement := dropRows
	if d == MySQL {
		statement = dropRowsMySQL
	}
	return fmt.Sprintf(statement, list(rows))
}

// list spells row ids as SQL takes them.
func list(ids []int64) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	return b.String()
}

// read is the inverse of list.
func read(text string) (ids []int64) {
	for part := range strings.SplitSeq(text, ",") {
		if id, err := strconv.ParseInt(part, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// collect reads what a query returns.
func collect[T any](ctx context.Context, from querier, scan func(*sql.Rows) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err has the error
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
