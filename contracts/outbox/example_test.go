package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/yardmaster-io/yardmaster/contracts/outbox"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// An order and its mail are committed together. A relay (`yard relay`, or NewRelay) carries the mail to the engine.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop-")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db"))
	must(err)
	defer func() { must(db.Close()) }()
	must(outbox.SQLite.Migrate(ctx, db))
	must(exec(ctx, db, "CREATE TABLE orders (number integer PRIMARY KEY)"))

	ob := outbox.New(outbox.SQLite, "shop")
	order := func(number int, commit bool) {
		tx, err := db.BeginTx(ctx, nil)
		must(err)
		must(exec(ctx, tx, "INSERT INTO orders VALUES (?)", number))
		_, err = ob.Submit(ctx, tx, yard.Task{Type: "email.send", Tasklist: "mail", Payload: number})
		must(err)
		if !commit {
			must(tx.Rollback())
			return
		}
		must(tx.Commit())
	}
	order(7, true)
	order(8, false)

	counts, err := ob.Status(ctx, db)
	must(err)
	fmt.Println(counts[0].State, counts[0].Tasks)
	// Output: waiting 1
}

// exec runs a statement whose result is of no interest.
func exec(ctx context.Context, on outbox.Tx, statement string, args ...any) error {
	_, err := on.ExecContext(ctx, statement, args...)
	return err
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
