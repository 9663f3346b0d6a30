package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// leaseFor is for how long a relay has a lane after a turn. It is longer than a request and the wait behind it.
const leaseFor = 20 * time.Second

// errTaken: another relay has the lane.
var errTaken = errors.New("another relay has the lane")

// store is the two tables as a relay sees them.
type store interface {
	// prepare makes the rows of the lanes.
	prepare(ctx context.Context) error
	// ready are the lanes with work that this relay may take.
	ready(ctx context.Context) ([]int, error)
	// turn writes the outcome of the last request, if there is one, and returns the next request within limits; nil = the lane is empty, and
	// has no owner any more. If there was another turn since the one of the request, it does not write the outcome, and a request that is still named is
	// repeated. Everything is one transaction.
	turn(ctx context.Context, lane int, last *outcome, most limits, newID func() string) (*request, error)
	// leave ends the lease of a lane.
	leave(ctx context.Context, lane int) error
}

// limits are how many rows and bytes a new request may have. A request of one row may be larger.
type limits struct{ rows, bytes int }

// sqlStore is the store in a database.
type sqlStore struct {
	*Outbox
	db    *sql.DB
	owner string
}

func (s *sqlStore) prepare(ctx context.Context) error {
	for lane := range lanes {
		if _, err := s.db.ExecContext(ctx, s.dialect.text(insertLane), s.domain, lane); err != nil {
			return fmt.Errorf("make the lanes: %w", err)
		}
	}
	return nil
}

func (s *sqlStore) ready(ctx context.Context) (all []int, err error) {
	return collect(ctx, s.db, func(rows *sql.Rows) (lane int, err error) {
		return lane, rows.Scan(&lane)
	}, s.dialect.text(lanesReady), s.domain, s.owner)
}

func (s *sqlStore) leave(ctx context.Context, lane int) error {
	_, err := s.db.ExecContext(ctx, s.dialect.text(leaveLane), s.domain, lane, s.owner)
	return err
}

func (s *sqlStore) turn(ctx context.Context, lane int, last *outcome, most limits, newID func() string) (*request, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // nothing to do after a commit
	t := turn{sqlStore: s, tx: tx, lane: lane}
	r, err := t.run(ctx, last, most, newID)
	if err != nil {
		return nil, err
	}
	return r, tx.Commit()
}

// turn is one transaction of a lane.
type turn struct {
	*sqlStore
	tx   *sql.Tx
	lane int
	// number counts the turns of the lane.
	number int64
}

func (t *turn) run(ctx context.Context, last *outcome, most limits, newID func() string) (*request, error) {
	if err := t.take(ctx); err != nil {
		return nil, err
	}
	var id, sent string
	if err := t.tx.QueryRowContext(ctx, t.dialect.text(readLane), t.domain, t.lane).Scan(&t.number, &id, &sent); err != nil {
		return nil, err
	}
	if last != nil && last.of.id == id && last.of.turn == t.number-1 {
		if err := t.apply(ctx, last); err != nil {
			return nil, err
		}
		id = ""
	}
	if id != "" {
		r, err := t.repeat(ctx, id, read(sent))
		if r != nil || err != nil {
			return r, err
		}
	}
	return t.next(ctx, most, newID)
}

// take takes the lane, or prolongs the lease.
func (t *turn) take(ctx context.Context) error {
	res, err := t.tx.ExecContext(ctx, t.dialect.text(takeLane), t.owner, leaseFor.Milliseconds(), t.domain, t.lane, t.owner)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(errTaken, err)
	}
	return nil
}

// apply writes an outcome.
func (t *turn) apply(ctx context.Context, o *outcome) error {
	for _, a := range o.aside {
		if _, err := t.tx.ExecContext(ctx, t.dialect.text(setAside), int(a.state), clean(a.reason), a.row); err != nil {
			return err
		}
	}
	if len(o.stored) == 0 {
		return nil
	}
	_, err := t.tx.ExecContext(ctx, t.dialect.dropping(o.stored))
	return err
}

// clean is a text that every database stores: valid UTF-8 without a zero byte.
func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// repeat is the request that the lane has sent, or was about to. Its id belongs to exactly these tasks: if rows are missing, since a person deleted them,
// then the others are set aside, and there is no request.
func (t *turn) repeat(ctx context.Context, id string, sent []int64) (*request, error) {
	rows, _, err := t.scan(ctx, fmt.Sprintf(sentRows, list(sent)))
	if err != nil {
		return nil, err
	}
	r := &request{id: id, rows: rows, again: true, turn: t.number}
	if len(rows) == len(sent) {
		return r, nil
	}
	return nil, t.apply(ctx, unknown(r, lostReason).outcome)
}

// next is a new request; nil = the lane is empty.
func (t *turn) next(ctx context.Context, most limits, newID func() string) (*request, error) {
	rows, broken, err := t.scan(ctx, t.dialect.text(nextRows), t.domain, t.lane, most.rows)
	if err != nil {
		return nil, err
	}
	if err := t.apply(ctx, &outcome{aside: broken}); err != nil {
		return nil, err
	}
	r := &request{}
	if len(rows) > 0 {
		r = &request{id: newID(), rows: together(rows, most.bytes), turn: t.number}
	}
	if _, err := t.tx.ExecContext(ctx, t.dialect.text(nameRequest), r.id, list(r.rowIDs()), t.domain, t.lane); err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		return r, nil
	}
	_, err = t.tx.ExecContext(ctx, t.dialect.text(leaveLane), t.domain, t.lane, t.owner)
	return nil, err
}

// errEnough: a scan has read as much as a request takes.
var errEnough = errors.New("a request takes no more")

// scan reads rows of yard_outbox, and stops behind those that fill a request. Broken ones cannot be read.
func (t *turn) scan(ctx context.Context, query string, args ...any) (good []row, broken []aside, err error) {
	bytes := 0
	_, err = collect(ctx, t.tx, func(rows *sql.Rows) (none struct{}, err error) {
		var id int64
		var body []byte
		if err := rows.Scan(&id, &body); err != nil {
			return none, err
		}
		r, err := parse(id, body)
		if err != nil || len(r.tasks) == 0 {
			broken = append(broken, aside{id, Refused, fmt.Sprintf("the row cannot be read: %v", err)})
			return none, nil
		}
		good = append(good, r)
		if bytes += r.bytes; bytes > requestBytesMax {
			return none, errEnough
		}
		return none, nil
	}, query, args...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return good, broken, err
}
