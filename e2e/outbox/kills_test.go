//go:build linux

package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/yardmaster-io/yardmaster/contracts/outbox"
	"github.com/yardmaster-io/yardmaster/contracts/outbox/outboxtest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/child"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// killsDefault is how many processes are killed, one after the other, if YARD_OUTBOX_KILLS says no other number.
	killsDefault = 20
	// keys is how many order keys the tasks have.
	keys = 5
	// caughtUpWithin bounds what comes after the last kill: leases of dead relays end, and lost answers are asked for.
	caughtUpWithin = 5 * time.Minute
)

// world is the engine, PostgreSQL and two relays, each a process.
type world struct {
	t        *testing.T
	yard     string
	url      string
	postgres *outboxtest.Server
	engine   *child.Process
	relays   [2]*child.Process
	data     string
	output   *os.File
	mu       sync.Mutex
	// committed are the places of tasks by outbox id, unsure those of transactions whose commit got no answer.
	committed, unsure map[string]int
	// ran are the task ids by outbox id, and order the places by order key as they ran first.
	ran   map[string]map[string]bool
	order map[string][]int
}

type payload struct {
	Key   string
	Place int
}

// TestNothingIsLostOrDoubledByKills kills relays, the database and the engine under load. Each task of a committed transaction is one task of the engine,
// and those of an order key ran in order.
func TestNothingIsLostOrDoubledByKills(t *testing.T) {
	testkit.Slow(t, "kills processes under load")
	w := newWorld(t)
	kills := killsDefault
	if text := os.Getenv("YARD_OUTBOX_KILLS"); text != "" {
		_, err := fmt.Sscan(text, &kills)
		testkit.NoError(t, err)
	}
	submitting, stopSubmits := context.WithCancel(t.Context())
	working, stopWork := context.WithCancel(t.Context())
	var submits, work sync.WaitGroup
	submits.Go(func() { w.submit(submitting) })
	work.Go(func() { w.work(working) })
	for i := range kills {
		<-time.After(time.Duration(100+rand.IntN(900)) * time.Millisecond)
		switch {
		case i%10 == 9:
			w.restartEngine()
		case i%5 == 4:
			w.postgres.Restart(t)
		default:
			w.restartRelay(i % len(w.relays))
		}
	}
	stopSubmits()
	submits.Wait()
	testkit.Eventually(t, caughtUpWithin, w.lost)
	stopWork()
	work.Wait()
	w.report()
	t.Logf("%d kills, %d tasks of committed transactions, %d of transactions whose commit got no answer", kills, len(w.committed), len(w.unsure))
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, yard: filepath.Join(t.TempDir(), "yard"), data: t.TempDir(), url: "nats://" + testkit.FreeAddr(t), postgres: outboxtest.Postgres(t),
		committed: map[string]int{}, unsure: map[string]int{}, ran: map[string]map[string]bool{}, order: map[string][]int{},
	}
	var err error
	w.output, err = os.Create(filepath.Join(w.data, "output"))
	testkit.NoError(t, err)
	if out, err := exec.Command("go", "build", "-o", w.yard, "github.com/yardmaster-io/yardmaster/infra/yard").CombinedOutput(); err != nil {
		t.Fatalf("build yard: %v\n%s", err, out)
	}
	w.restartEngine()
	t.Cleanup(func() {
		for _, p := range append(w.relays[:], w.engine) {
			if p != nil {
				p.Kill()
			}
		}
		if t.Failed() {
			text, err := os.ReadFile(w.output.Name())
			t.Logf("the output of the processes, %v:\n%s", err, text)
		}
		testkit.Check(t, w.output.Close())
	})
	w.run("domain", "put", "shop")
	w.run("relay", "migrate", "--dsn", w.postgres.DSN)
	for i := range w.relays {
		w.restartRelay(i)
	}
	return w
}

// run runs a command until it succeeds: the engine may not be ready.
func (w *world) run(args ...string) {
	w.t.Helper()
	testkit.Eventually(w.t, within, func() error {
		out, err := exec.Command(w.yard, append(args, "--url", w.url)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("yard %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	})
}

// start starts yard as a process.
func (w *world) start(args ...string) *child.Process {
	w.t.Helper()
	cmd := exec.Command(w.yard, args...)
	cmd.Stdout, cmd.Stderr = w.output, w.output
	p, err := child.Start(cmd)
	testkit.NoError(w.t, err)
	return p
}

func (w *world) restartEngine() {
	if w.engine != nil {
		w.engine.Kill()
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(w.url, "nats://"), ":")
	w.engine = w.start("dev", "--data-dir", w.data, "--port", port, "--console", "off", "--tables", "memory", "--log-level", "error")
}

func (w *world) restartRelay(i int) {
	if w.relays[i] != nil {
		w.relays[i].Kill()
	}
	w.relays[i] = w.start("relay", "--dsn", w.postgres.DSN, "--url", w.url, "--domain", "shop", "--log-level", "warn")
}

// submit commits transactions, and rolls some back, until ctx ends.
func (w *world) submit(ctx context.Context) {
	db, err := sql.Open("pgx", w.postgres.DSN)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer func() { testkit.Check(w.t, db.Close()) }()
	ob := outbox.New(outbox.Postgres, "shop")
	for place := 1; ctx.Err() == nil; place++ {
		if err := w.transaction(ctx, ob, db, place); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond): // the database is away
			}
		}
	}
}

func (w *world) transaction(ctx context.Context, ob *outbox.Outbox, db *sql.DB, place int) error {
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	tasks := []yard.Task{{Type: "email.send", Tasklist: "mail", Payload: payload{Place: place}}}
	for k := range keys {
		key := fmt.Sprint("key-", k)
		tasks = append(tasks, yard.Task{Type: "email.send", Tasklist: "mail", OrderKey: key, Payload: payload{key, place}})
	}
	names, err := ob.SubmitAll(ctx, tx, tasks)
	if err != nil || place%7 == 0 {
		_ = tx.Rollback() // nothing of it is to be stored
		return err
	}
	err = tx.Commit()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if err == nil {
			w.committed[name] = place
		} else {
			w.unsure[name] = place
		}
	}
	return err
}

// work runs the tasks until ctx ends.
func (w *world) work(ctx context.Context) {
	c, err := yard.Connect(w.url, "shop")
	if err != nil {
		w.t.Error(err)
		return
	}
	defer c.Close()
	worker := yard.NewWorker(c, "mail", yard.WithConcurrency(50), yard.WithLogger(slog.New(slog.DiscardHandler)))
	yard.Handle(worker, "email.send", func(ctx context.Context, in payload) (struct{}, error) {
		info := yard.Info(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		name := info.Headers["outbox-id"]
		if w.ran[name] == nil {
			w.ran[name] = map[string]bool{}
			w.order[in.Key] = append(w.order[in.Key], in.Place)
		}
		w.ran[name][info.TaskID] = true
		return struct{}{}, nil
	})
	if err := worker.Run(ctx); err != nil {
		w.t.Logf("the worker ended: %v", err) // outcomes that it could not report are of no interest
	}
}

// lost reports committed tasks that have not run.
func (w *world) lost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	missing := 0
	for name := range w.committed {
		if w.ran[name] == nil {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d tasks have not run", missing, len(w.committed))
	}
	return nil
}

// report fails the test for tasks that are doubled, were not committed, or ran out of order.
func (w *world) report() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, tasks := range w.ran {
		_, committed := w.committed[name]
		_, unsure := w.unsure[name]
		if len(tasks) != 1 || !committed && !unsure {
			w.t.Errorf("%s became %d tasks; it was committed: %v", name, len(tasks), committed)
		}
	}
	for key, places := range w.order {
		if key != "" && !slices.IsSorted(places) {
			w.t.Errorf("%s ran in the order %v", key, places)
		}
	}
}
