package outbox

import (
	"context"
	"database/sql"
	"time"
)

// Aside is a row that was set aside.
type Aside struct {
	Row     int64     `json:"row"`
	State   State     `json:"state"`
	Reason  string    `json:"reason"`
	Created time.Time `json:"created"`
	// Tasks are the outbox ids of its tasks, Type and Tasklist those of the first.
	Tasks    []string `json:"tasks"`
	Type     string   `json:"type"`
	Tasklist string   `json:"tasklist"`
}

// SetAside lists the rows that are set aside, the oldest first.
func (o *Outbox) SetAside(ctx context.Context, db *sql.DB, limit int) ([]Aside, error) {
	return collect(ctx, db, func(rows *sql.Rows) (a Aside, err error) {
		var n int
		var ms int64
		var body []byte
		if err := rows.Scan(&a.Row, &a.State, &n, &ms, &a.Reason, &body); err != nil {
			return a, err
		}
		a.Created = time.UnixMilli(ms)
		r, err := parse(a.Row, body)
		for _, t := range r.tasks {
			a.Tasks = append(a.Tasks, t.Headers[headerID])
		}
		if err == nil && len(r.tasks) > 0 { // else its reason says that it cannot be read
			a.Type, a.Tasklist = r.tasks[0].Type, r.tasks[0].Tasklist
		}
		return a, nil
	}, o.dialect.text(listAside), o.domain, limit)
}

// Redrive has rows that were set aside sent again, in the order of their ids, and returns how many. A row that is unknown may be stored twice then.
func (o *Outbox) Redrive(ctx context.Context, db *sql.DB, rows ...int64) (int64, error) {
	return o.change(ctx, db, redriveAside, rows)
}

// Delete removes rows that were set aside, and returns how many.
func (o *Outbox) Delete(ctx context.Context, db *sql.DB, rows ...int64) (int64, error) {
	return o.change(ctx, db, deleteAside, rows)
}

// change changes rows one by one: with a list of ids, MySQL may scan the table and wait for rows of transactions that are open.
func (o *Outbox) change(ctx context.Context, db *sql.DB, statement string, rows []int64) (changed int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // nothing to do after a commit
	for _, row := range rows {
		res, err := tx.ExecContext(ctx, o.dialect.text(statement), o.domain, row)
		if err != nil {
			return 0, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		changed += n
	}
	return changed, tx.Commit()
}

// Count is what rows of one state there are.
type Count struct {
	State State `json:"state"`
	Rows  int64 `json:"rows"`
	Tasks int64 `json:"tasks"`
	// OldestMS is the age of the oldest in ms, by the clock of the database.
	OldestMS int64 `json:"oldest_ms"`
}

// Status counts the rows of the domain by their state. States without rows are left out. It reads the index of all rows.
func (o *Outbox) Status(ctx context.Context, db *sql.DB) ([]Count, error) {
	return collect(ctx, db, func(rows *sql.Rows) (c Count, err error) {
		var oldest, now int64
		if err := rows.Scan(&c.State, &c.Rows, &c.Tasks, &oldest, &now); err != nil {
			return c, err
		}
		c.OldestMS = max(0, now-oldest)
		return c, nil
	}, o.dialect.text(countRows), o.domain)
}
