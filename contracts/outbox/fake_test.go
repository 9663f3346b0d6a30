package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/outbox/outboxtest"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// onEachDatabase runs tests on SQLite, and with YARD_TESTS=all on real servers.
func onEachDatabase(t *testing.T, tests map[string]func(t *testing.T, ob *Outbox, db *sql.DB)) {
	run := func(d Dialect, open func(t *testing.T) *sql.DB) {
		t.Run(string(d), func(t *testing.T) {
			db := open(t)
			defer func() { check(t, db.Close()) }()
			check(t, d.Migrate(t.Context(), db))
			check(t, d.Migrate(t.Context(), db)) // once more does no harm
			for name, test := range tests {
				t.Run(name, func(t *testing.T) { test(t, New(d, strings.ReplaceAll(name, " ", "-")), db) })
			}
		})
	}
	run(SQLite, openSQLite)
	run(Postgres, func(t *testing.T) *sql.DB { return openDB(t, "pgx", outboxtest.Postgres(t).DSN) })
	run(MySQL, func(t *testing.T) *sql.DB {
		t.Setenv("TZ", "America/New_York") // a server with summer time
		return openDB(t, "mysql", mysqlDSN(outboxtest.MariaDB(t).DSN))
	})
}

func openSQLite(t *testing.T) *sql.DB {
	db := openDB(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate")
	db.SetMaxOpenConns(1)
	return db
}

func openDB(tb testing.TB, driver, dsn string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	return db
}

// mysqlDSN is a URL as the driver spells it.
func mysqlDSN(url string) string {
	login, rest, _ := strings.Cut(strings.TrimPrefix(url, "mysql://"), "@")
	addr, name, _ := strings.Cut(rest, "/")
	return login + "@tcp(" + addr + ")/" + name
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// engine recognizes request ids, as the real one does.
type engine struct {
	mu       sync.Mutex
	t        testing.TB
	requests map[string]*yardv1.SubmitResponse
	first    map[string]bool
	tasks    []*yardv1.NewTask
	// fault decides what happens to a request: it may store it (do), and returns the answer.
	fault func(req *yardv1.SubmitRequest, do func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error)
}

func newEngine(t testing.TB) *engine {
	return &engine{t: t, requests: map[string]*yardv1.SubmitResponse{}, first: map[string]bool{}}
}

func (e *engine) submit(_ context.Context, req *yardv1.SubmitRequest) (*yardv1.SubmitResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if req.Tries == 1 {
		if e.first[req.RequestId] {
			e.t.Errorf("request %s is sent twice as a first try", req.RequestId)
		}
		e.first[req.RequestId] = true
	}
	if len(req.Tasks) > tasksMax {
		e.t.Errorf("%d tasks are in a request", len(req.Tasks))
	}
	do := func() *yardv1.SubmitResponse {
		resp := e.requests[req.RequestId]
		if resp == nil {
			resp = &yardv1.SubmitResponse{}
			for range req.Tasks {
				resp.Results = append(resp.Results, &yardv1.SubmitResult{TaskId: fmt.Sprint(len(e.tasks)), Outcome: yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED})
			}
			e.tasks = append(e.tasks, req.Tasks...)
			e.requests[req.RequestId] = resp
		}
		if len(resp.Results) != len(req.Tasks) {
			e.t.Errorf("request %s was sent with %d tasks, and with %d before", req.RequestId, len(req.Tasks), len(resp.Results))
		}
		return resp
	}
	if e.fault != nil {
		return e.fault(req, do)
	}
	return do(), nil
}

// names are the outbox ids of the tasks that are stored, in order.
func (e *engine) names() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.tasks {
		all = append(all, t.Headers[headerID])
	}
	return all
}

var errKilled = errors.New("the relay is killed")

// mortal is a store and an engine that a relay loses at its death: a call dies before it, or behind it, and no later one succeeds.
type mortal struct {
	store
	dead  bool
	steps int
	// dies decides whether the relay dies at a step.
	dies func(step int) bool
	mu   sync.Mutex
}

// step calls do between two steps.
func (m *mortal) step(do func() error) error {
	if m.die() {
		return errKilled
	}
	err := do()
	if m.die() {
		return errKilled
	}
	return err
}

func (m *mortal) die() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
	m.dead = m.dead || m.dies(m.steps)
	return m.dead
}

func (m *mortal) ready(ctx context.Context) (all []int, err error) {
	err = m.step(func() (err error) { all, err = m.store.ready(ctx); return err })
	return all, err
}

func (m *mortal) turn(ctx context.Context, lane int, last *outcome, most limits, newID func() string) (r *request, err error) {
	err = m.step(func() (err error) { r, err = m.store.turn(ctx, lane, last, most, newID); return err })
	return r, err
}

func (m *mortal) leave(ctx context.Context, lane int) error {
	return m.step(func() error { return m.store.leave(ctx, lane) })
}

// newRelay is a relay that dies where dies says so; nil = never.
func newRelay(ob *Outbox, db *sql.DB, e *engine, dies func(step int) bool) *Relay {
	r := &Relay{
		store: &sqlStore{Outbox: ob, db: db, owner: fmt.Sprintf("relay-%d", rand.Uint64())}, submit: e.submit,
		subscribe: func(func()) (func(), error) { return func() {}, nil }, every: pollDefault, bytesMax: func() int { return requestBytesMax }, log: slog.New(slog.DiscardHandler),
	}
	if dies != nil {
		m := &mortal{store: r.store, dies: dies}
		r.store, r.submit = m, func(ctx context.Context, req *yardv1.SubmitRequest) (resp *yardv1.SubmitResponse, err error) {
			err = m.step(func() (err error) { resp, err = e.submit(ctx, req); return err })
			if errors.Is(err, errKilled) {
				err = fault.New(fault.Unknown, "%v", err)
			}
			return resp, err
		}
	}
	return r
}

// expiring keeps two calls of expire apart: each changes all lanes.
var expiring sync.Mutex

// expire ends the leases of relays, as time would.
func expire(t *testing.T, db *sql.DB) {
	t.Helper()
	expiring.Lock()
	defer expiring.Unlock()
	_, err := db.ExecContext(t.Context(), "UPDATE yard_outbox_lane SET until_ms = 0")
	check(t, err)
}
