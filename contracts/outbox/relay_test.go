package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// submit commits a transaction with tasks, and returns their outbox ids.
func submit(t testing.TB, ob *Outbox, db *sql.DB, tasks ...yard.Task) []string {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	names, err := ob.SubmitAll(t.Context(), tx, tasks)
	check(t, err)
	check(t, tx.Commit())
	return names
}

func mail(payload any) yard.Task {
	return yard.Task{Type: "email.send", Tasklist: "mail", Payload: payload}
}

// waiting counts rows by state.
func waiting(t *testing.T, ob *Outbox, db *sql.DB) map[State]int64 {
	t.Helper()
	counts, err := ob.Status(t.Context(), db)
	check(t, err)
	all := map[State]int64{}
	for _, c := range counts {
		all[c.State] = c.Rows
	}
	return all
}

// TestOnDatabases runs each test on SQLite, and with YARD_TESTS=all on real servers. Each has a domain of its own.
func TestOnDatabases(t *testing.T) {
	onEachDatabase(t, map[string]func(t *testing.T, ob *Outbox, db *sql.DB){
		"a paused relay stores nothing twice":             aPausedRelayStoresNothingTwice,
		"a relay does not wait for open transactions":     aRelayDoesNotWaitForOpenTransactions,
		"the clock is right when summer time ends":        theClockIsRightWhenSummerTimeEnds,
		"a turn reads no more than a request takes":       aTurnReadsNoMoreThanARequestTakes,
		"a request is as large as the NATS server takes":  aRequestIsAsLargeAsTheServerTakes,
		"a repeat that is too large is set aside":         aRepeatThatIsTooLargeIsSetAside,
		"a rolled back transaction submits nothing":       aRolledBackTransactionSubmitsNothing,
		"a relay is killed at every step":                 aRelayIsKilledAtEveryStep,
		"several relays and random faults":                severalRelaysAndRandomFaults,
		"a refused row is set aside":                      aRefusedRowIsSetAside,
		"rows of a forgotten request are set aside":       rowsOfAForgottenRequestAreSetAside,
		"a request that is too old gets another id":       aRequestThatIsTooOldGetsAnotherID,
		"a batch of a request's largest size is one turn": aThousandRowsAreOneRequest,
	})
}

// A thousand rows are one request, as soon as the relay has seen that so many wait.
func aThousandRowsAreOneRequest(t *testing.T, ob *Outbox, db *sql.DB) {
	e, largest := newEngine(t), 0
	e.fault = func(req *yardv1.SubmitRequest, do func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
		largest = max(largest, len(req.Tasks))
		return do(), nil
	}
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	for range 4000 {
		_, err := ob.Submit(t.Context(), tx, yard.Task{Type: "x", Tasklist: "mail", OrderKey: "one"})
		check(t, err)
	}
	check(t, tx.Commit())
	check(t, newRelay(ob, db, e, nil).Once(t.Context()))
	if largest != tasksMax || len(e.tasks) != 4000 {
		t.Errorf("%d tasks are stored, the largest request had %d", len(e.tasks), largest)
	}
}

// Summer time in New York ends at 06:00 UTC. The clock of a server there does not go back.
func theClockIsRightWhenSummerTimeEnds(t *testing.T, ob *Outbox, db *sql.DB) {
	if ob.Dialect() != MySQL {
		t.Skip("only MySQL lets a test set its clock")
	}
	end := time.Date(2026, time.November, 1, 6, 0, 0, 0, time.UTC)
	conn, err := db.Conn(t.Context())
	check(t, err)
	defer func() { check(t, conn.Close()) }()
	for from := -time.Hour; from <= time.Hour; from += 30 * time.Minute {
		want := end.Add(from)
		_, err := conn.ExecContext(t.Context(), "SET timestamp = ?", want.Unix())
		check(t, err)
		var got int64
		check(t, conn.QueryRowContext(t.Context(), ob.Dialect().text("SELECT "+nowName)).Scan(&got))
		if got != want.UnixMilli() {
			t.Errorf("the clock shows %v, want %v", time.UnixMilli(got).UTC(), want)
		}
	}
	_, err = conn.ExecContext(t.Context(), "SET timestamp = DEFAULT")
	check(t, err)
}

// A transaction that is open blocks neither a relay nor the commands for rows that are set aside.
func aRelayDoesNotWaitForOpenTransactions(t *testing.T, ob *Outbox, db *sql.DB) {
	if ob.Dialect() == SQLite {
		t.Skip("SQLite has one writer at a time")
	}
	e := newEngine(t)
	e.fault = func(req *yardv1.SubmitRequest, do func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
		for i, task := range req.Tasks {
			if task.Tasklist == "closed" {
				return nil, fault.At(fault.FailedPrecondition, fmt.Sprintf("/tasks/%d/tasklist", i), "the tasklist is drained")
			}
		}
		return do(), nil
	}
	for range 3 {
		submit(t, ob, db, yard.Task{Type: "x", Tasklist: "closed", OrderKey: "k"})
	}
	for range 64 {
		submit(t, ob, db, yard.Task{Type: "x", Tasklist: "mail", OrderKey: "k"})
	}
	open, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	_, err = New(ob.Dialect(), "another-domain").Submit(t.Context(), open, mail("open"))
	check(t, err)
	check(t, newRelay(ob, db, e, nil).Once(t.Context()))
	if left := waiting(t, ob, db); len(e.names()) != 64 || left[Waiting] != 0 || left[Refused] != 3 {
		t.Errorf("%d tasks are stored, rows are left: %v", len(e.names()), left)
	}
	aside, err := ob.SetAside(t.Context(), db, 10)
	check(t, err)
	redriven, err := ob.Redrive(t.Context(), db, aside[0].Row)
	check(t, err)
	deleted, err := ob.Delete(t.Context(), db, aside[1].Row, aside[2].Row)
	check(t, err)
	if redriven != 1 || deleted != 2 {
		t.Errorf("%d rows are redriven, %d deleted", redriven, deleted)
	}
	check(t, open.Rollback())
}

// A turn reads no more than a request takes and one row, so a relay needs little memory even if large rows wait.
func aTurnReadsNoMoreThanARequestTakes(t *testing.T, ob *Outbox, db *sql.DB) {
	var want []string
	for range 40 {
		want = append(want, submit(t, ob, db, yard.Task{Type: "x", Tasklist: "mail", OrderKey: "k", Payload: make([]byte, 250<<10)})...)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	one := turn{sqlStore: &sqlStore{Outbox: ob, db: db}, tx: tx}
	rows, _, err := one.scan(t.Context(), ob.Dialect().text(nextRows), ob.domain, laneOf(&yardv1.NewTask{OrderKey: "k"}, 0), tasksMax)
	check(t, err)
	check(t, tx.Rollback())
	read := 0
	for _, r := range rows {
		read += r.bytes
	}
	if most := requestBytesMax + rowBytesMax; read > most {
		t.Errorf("a turn reads %d bytes, at most %d are allowed", read, most)
	}
	e := newEngine(t)
	check(t, newRelay(ob, db, e, nil).Once(t.Context()))
	if got := e.names(); !slices.Equal(got, want) {
		t.Errorf("the engine has %q, want %q", got, want)
	}
}

func aRolledBackTransactionSubmitsNothing(t *testing.T, ob *Outbox, db *sql.DB) {
	e := newEngine(t)
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	_, err = ob.Submit(t.Context(), tx, mail("no"))
	check(t, err)
	check(t, tx.Rollback())
	want := submit(t, ob, db, mail("yes"))
	check(t, newRelay(ob, db, e, nil).Once(t.Context()))
	if got := e.names(); !slices.Equal(got, want) {
		t.Errorf("the engine has %q, want %q", got, want)
	}
	if left := waiting(t, ob, db); len(left) != 0 {
		t.Errorf("rows are left: %v", left)
	}
}

// A relay that dies at any step, before or behind it, loses nothing and doubles nothing: the next relay goes on.
func aRelayIsKilledAtEveryStep(t *testing.T, ob *Outbox, db *sql.DB) {
	for dieAt, died := 1, true; died; dieAt++ {
		e := newEngine(t)
		var want []string
		for i := range 3 {
			want = append(want, submit(t, ob, db, yard.Task{Type: "email.send", Tasklist: "mail", OrderKey: "ann", Payload: i})...)
		}
		died = newRelay(ob, db, e, func(step int) bool { return step == dieAt }).Once(t.Context()) != nil
		expire(t, db)
		check(t, newRelay(ob, db, e, nil).Once(t.Context()))
		if got := e.names(); !slices.Equal(got, want) {
			t.Errorf("killed at step %d: the engine has %q, want %q", dieAt, got, want)
		}
		if left := waiting(t, ob, db); len(left) != 0 {
			t.Errorf("killed at step %d: rows are left: %v", dieAt, left)
		}
	}
}

// chance is a source of random faults, shared by relays.
type chance struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (c *chance) of(percent int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(100) < percent
}

// faulty is an engine that refuses for a while, or whose answer is lost, before or behind the write.
func faulty(c *chance) func(*yardv1.SubmitRequest, func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
	return func(req *yardv1.SubmitRequest, do func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
		switch {
		case c.of(10):
			return nil, fault.New(fault.Unavailable, "nothing was stored")
		case c.of(10):
			return nil, fault.New(fault.Unknown, "not stored")
		case c.of(10):
			do()
			return nil, fault.New(fault.Unknown, "stored")
		}
		return do(), nil
	}
}

// Three relays die at random, and the engine loses answers, while transactions are committed and rolled back. Each task of a committed transaction is stored once, and those of
// an order key in order.
func severalRelaysAndRandomFaults(t *testing.T, ob *Outbox, db *sql.DB) {
	rounds := 3
	if os.Getenv("YARD_TESTS") == "all" {
		rounds = 30
	}
	for range rounds {
		seed := rand.Uint64()
		c, e := &chance{rng: rand.New(rand.NewPCG(seed, 0))}, newEngine(t)
		e.fault = faulty(c)
		ctx, stop := context.WithCancel(t.Context())
		var relays sync.WaitGroup
		for range 3 {
			relays.Go(func() {
				for ctx.Err() == nil {
					_ = newRelay(ob, db, e, func(int) bool { return c.of(3) }).Once(ctx) // it dies of its faults
					expire(t, db)
				}
			})
		}
		committed := traffic(t, ob, db, c)
		stop()
		relays.Wait()
		e.fault = nil
		expire(t, db)
		check(t, newRelay(ob, db, e, nil).Once(t.Context()))
		if report := compare(committed, e.tasks); report != "" {
			t.Fatalf("seed %d: %s", seed, report)
		}
	}
}

// traffic commits transactions, and rolls some back. It returns the committed tasks by their outbox id, with their place in the order.
func traffic(t *testing.T, ob *Outbox, db *sql.DB, c *chance) map[string]int {
	t.Helper()
	committed := map[string]int{}
	for i := range 60 {
		tasks := []yard.Task{mail(i), mail(i)}
		for k := range 3 {
			tasks = append(tasks, yard.Task{Type: "email.send", Tasklist: "mail", OrderKey: fmt.Sprint("key-", k), Payload: i})
		}
		tasks = append(tasks, yard.Task{Type: "email.send", Tasklist: "mail", Payload: i, Unique: &yard.Unique{Key: fmt.Sprint("order-", i)}})
		tx, err := db.BeginTx(t.Context(), nil)
		check(t, err)
		names, err := ob.SubmitAll(t.Context(), tx, tasks)
		check(t, err)
		if c.of(20) {
			check(t, tx.Rollback())
			continue
		}
		check(t, tx.Commit())
		for _, name := range names {
			committed[name] = i
		}
	}
	return committed
}

// compare reports what is lost, stored twice, or out of order; "" = nothing.
func compare(committed map[string]int, stored []*yardv1.NewTask) string {
	seen, last := map[string]bool{}, map[string]int{}
	for _, task := range stored {
		name := task.Headers[headerID]
		place, ok := committed[name]
		switch {
		case !ok:
			return name + " was not committed"
		case seen[name]:
			return name + " is stored twice"
		case task.OrderKey != "" && place < last[task.OrderKey]:
			return name + " is stored behind a later task of its key"
		}
		seen[name], last[task.OrderKey] = true, place
	}
	if len(seen) != len(committed) {
		return fmt.Sprintf("%d of %d tasks are stored", len(seen), len(committed))
	}
	return ""
}

// A row that the engine refuses is set aside with the reason, which may have bytes that databases do not take. Others go on. It is redriven, or deleted.
func aRefusedRowIsSetAside(t *testing.T, ob *Outbox, db *sql.DB) {
	e := newEngine(t)
	drained := true
	e.fault = func(req *yardv1.SubmitRequest, do func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
		for i, task := range req.Tasks {
			if task.Tasklist == "closed" && drained {
				return nil, fault.At(fault.FailedPrecondition, fmt.Sprintf("/tasks/%d/tasklist", i), "the tasklist is drained: \x00 \xff")
			}
		}
		return do(), nil
	}
	key := func(list string) yard.Task { return yard.Task{Type: "x", Tasklist: list, OrderKey: "k"} }
	first := submit(t, ob, db, key("mail"))
	refused := submit(t, ob, db, key("closed"))
	last := submit(t, ob, db, key("mail"))
	check(t, newRelay(ob, db, e, nil).Once(t.Context()))
	if got, want := e.names(), slices.Concat(first, last); !slices.Equal(got, want) {
		t.Errorf("the engine has %q, want %q", got, want)
	}
	aside, err := ob.SetAside(t.Context(), db, 10)
	check(t, err)
	if len(aside) != 1 || aside[0].State != Refused || !slices.Equal(aside[0].Tasks, refused) || !strings.Contains(aside[0].Reason, "drained") || aside[0].Tasklist != "closed" {
		t.Fatalf("set aside: %+v", aside)
	}
	drained = false
	n, err := ob.Redrive(t.Context(), db, aside[0].Row)
	check(t, err)
	check(t, newRelay(ob, db, e, nil).Once(t.Context()))
	if got, want := e.names(), slices.Concat(first, last, refused); n != 1 || !slices.Equal(got, want) {
		t.Errorf("after %d redriven rows the engine has %q, want %q", n, got, want)
	}
	if n, err := ob.Delete(t.Context(), db, aside[0].Row); n != 0 || err != nil {
		t.Errorf("%d rows are deleted that are not set aside: %v", n, err)
	}
}

// If the engine does not know a request any more, its rows are neither lost nor sent again, and a person decides.
func rowsOfAForgottenRequestAreSetAside(t *testing.T, ob *Outbox, db *sql.DB) {
	e := newEngine(t)
	e.fault = func(req *yardv1.SubmitRequest, _ func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
		if req.Tries == 1 {
			return nil, fault.New(fault.Unknown, "the answer is lost")
		}
		return nil, fault.At(fault.FailedPrecondition, "/request_id", "was made 11m0s ago, and is known for 10m0s")
	}
	names := submit(t, ob, db, mail(1))
	_ = newRelay(ob, db, e, nil).Once(t.Context()) // the answer is lost
	check(t, newRelay(ob, db, e, nil).Once(t.Context()))
	aside, err := ob.SetAside(t.Context(), db, 10)
	check(t, err)
	if len(aside) != 1 || aside[0].State != Unknown || !slices.Equal(aside[0].Tasks, names) {
		t.Fatalf("set aside: %+v", aside)
	}
	n, err := ob.Delete(t.Context(), db, aside[0].Row)
	check(t, err)
	if left := waiting(t, ob, db); n != 1 || len(left) != 0 {
		t.Errorf("%d rows are deleted, left are %v", n, left)
	}
}

// The engine says that a request is too old to be stored: its rows go again, under a new id by the clock of the engine.
func aRequestThatIsTooOldGetsAnotherID(t *testing.T, ob *Outbox, db *sql.DB) {
	e := newEngine(t)
	ahead := time.Now().Add(time.Hour)
	e.fault = func(req *yardv1.SubmitRequest, do func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
		if len(e.first) == 1 {
			refused := fault.At(fault.FailedPrecondition, "/request_id", "its time is an hour behind")
			refused.Detail = map[string]string{fault.DetailNowMs: fmt.Sprint(ahead.UnixMilli())}
			return nil, refused
		}
		return do(), nil
	}
	want := submit(t, ob, db, mail(1))
	r := newRelay(ob, db, e, nil)
	_ = r.Once(t.Context()) // it is refused
	check(t, r.Once(t.Context()))
	if got := e.names(); !slices.Equal(got, want) {
		t.Errorf("the engine has %q, want %q", got, want)
	}
}

// A relay that runs survives an engine and a database that are away, and ends with its context.
func TestARelayWaitsForItsEngine(t *testing.T) {
	db := openSQLite(t)
	check(t, SQLite.Migrate(t.Context(), db))
	ob, e := New(SQLite, "shop"), newEngine(t)
	away := 3
	e.fault = func(_ *yardv1.SubmitRequest, do func() *yardv1.SubmitResponse) (*yardv1.SubmitResponse, error) {
		if away--; away >= 0 {
			return nil, fault.New(fault.Unavailable, "not connected")
		}
		return do(), nil
	}
	want := submit(t, ob, db, mail(1))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	r := newRelay(ob, db, e, nil)
	r.every = time.Millisecond
	go func() { done <- r.Run(ctx) }()
	for deadline := time.Now().Add(time.Minute); len(e.names()) == 0 && time.Now().Before(deadline); {
		<-time.After(time.Millisecond)
	}
	stop()
	check(t, <-done)
	if got := e.names(); !slices.Equal(got, want) {
		t.Errorf("the engine has %q, want %q", got, want)
	}
	check(t, newRelay(ob, db, e, nil).Once(t.Context()))
	if left := waiting(t, ob, db); len(left) != 0 {
		t.Errorf("rows are left: %v", left)
	}
	check(t, db.Close())
}
