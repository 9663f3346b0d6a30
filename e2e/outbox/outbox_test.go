package outbox_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/yardmaster-io/yardmaster/contracts/outbox"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// within bounds what must happen soon; a healthy run needs milliseconds.
const within = 90 * time.Second

func TestMain(m *testing.M) { natskit.VerifyTestMain(m) }

// Tasks of a committed transaction reach a worker after a kick, with their outbox id; those of a rolled back one do not.
func TestATransactionRunsItsTasks(t *testing.T) {
	engine := yardtest.New(t)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	testkit.NoError(t, err)
	defer func() { testkit.Check(t, db.Close()) }()
	db.SetMaxOpenConns(1)
	ctx, stop := context.WithTimeout(t.Context(), within)
	defer stop()
	testkit.NoError(t, outbox.SQLite.Migrate(ctx, db))
	ob := outbox.New(outbox.SQLite, engine.Domain())

	relay, err := outbox.NewRelay(ob, db, engine.Client, outbox.Options{Every: time.Hour, Log: slog.New(slog.DiscardHandler)})
	testkit.NoError(t, err)
	life, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- relay.Run(life) }()

	ran := make(chan string, 10)
	w := yard.NewWorker(engine.Client, "mail", yard.WithLogger(slog.New(slog.DiscardHandler)))
	yard.Handle(w, "email.send", func(ctx context.Context, _ int) (struct{}, error) {
		ran <- yard.Info(ctx).Headers["outbox-id"]
		return struct{}{}, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(life) }()

	var want, got []string
	for i, commit := range []bool{true, false, true} {
		tx, err := db.BeginTx(ctx, nil)
		testkit.NoError(t, err)
		name, err := ob.Submit(ctx, tx, yard.Task{Type: "email.send", Tasklist: "mail", Payload: i, OrderKey: "ann"})
		testkit.NoError(t, err)
		if !commit {
			testkit.NoError(t, tx.Rollback())
			continue
		}
		testkit.NoError(t, tx.Commit())
		want = append(want, name)
	}
	again := time.NewTicker(time.Second) // a kick that comes before the relay subscribes is lost
	defer again.Stop()
	for len(got) < len(want) {
		testkit.NoError(t, ob.Kick(yard.Conn(engine.Client)))
		select {
		case name := <-ran:
			got = append(got, name)
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("the worker got %q, want %q", got, want)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the worker got %q, want %q", got, want)
	}
	end()
	testkit.Check(t, <-done)
	testkit.Check(t, <-ended)
	left, err := ob.Status(ctx, db)
	if len(left) != 0 || err != nil {
		t.Errorf("rows are left: %v, %v", left, err)
	}
}
