package cli_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/yardmaster-io/yardmaster/contracts/outbox"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A URL that cannot be read has a password all the same: no error quotes it.
func TestAMalformedDSNIsNotQuoted(t *testing.T) {
	for _, scheme := range []string{"postgres", "mysql"} {
		_, errs, code := run(t, "", "relay", "status", "--dsn", scheme+"://shop:s3%zzcr3t@db/shop")
		if code == cli.ExitOK || strings.Contains(errs, "cr3t") || !strings.Contains(errs, "malformed") {
			t.Errorf("%s: exit code %d: %s", scheme, code, errs)
		}
	}
}

// The relay makes its tables, carries what waits, and shows what the engine refused.
func TestRelay(t *testing.T) {
	system := startStack(t)
	c, err := yard.Connect(system.URL, "shop")
	testkit.NoError(t, err)
	defer c.Close()
	file := filepath.Join(t.TempDir(), "shop.db")
	relay := func(args ...string) string {
		t.Helper()
		out, errs, code := run(t, "", append([]string{"relay", "--dsn", "sqlite:" + file, "--url", system.URL, "--domain", "shop"}, args...)...)
		if code != cli.ExitOK {
			t.Fatalf("yard relay %q: exit code %d\n%s%s", args, code, out, errs)
		}
		return out
	}
	if _, _, code := run(t, "", "domain", "put", "shop", "--url", system.URL); code != cli.ExitOK {
		t.Fatalf("yard domain put: exit code %d", code)
	}
	relay("migrate")
	db, err := sql.Open("sqlite", "file:"+file)
	testkit.NoError(t, err)
	ob := outbox.New(outbox.SQLite, "shop")
	for _, task := range []yard.Task{{Type: "email.send", Tasklist: "mail"}, {Type: "email.send", Tasklist: "mail", Priority: 9}} {
		tx, err := db.BeginTx(t.Context(), nil)
		testkit.NoError(t, err)
		_, err = ob.Submit(t.Context(), tx, task)
		testkit.NoError(t, err)
		testkit.NoError(t, tx.Commit())
	}
	testkit.NoError(t, db.Close())
	if out := relay("status"); !strings.Contains(out, "waiting  2     2") {
		t.Errorf("before the relay the status is\n%s", out)
	}
	relay("--once", "--log-level", "error")
	if out := relay("list"); !strings.Contains(out, "refused") || !strings.Contains(out, "priority") || strings.Count(out, "email.send") != 1 {
		t.Errorf("set aside are\n%s", out)
	}
	if out := relay("delete", "2"); !strings.Contains(out, "nothing was changed") {
		t.Errorf("a delete without --yes says\n%s", out)
	}
	if out := relay("redrive", "2"); !strings.Contains(out, "redriven  1") {
		t.Errorf("a redrive says\n%s", out)
	}
	relay("--once", "--log-level", "error")
	if out := relay("delete", "2", "--yes"); !strings.Contains(out, "deleted  1") {
		t.Errorf("a delete says\n%s", out)
	}
	if out := relay("status"); strings.Contains(out, "refused") || strings.Contains(out, "waiting") {
		t.Errorf("behind all the status is\n%s", out)
	}
	for _, dialect := range outbox.Dialects() {
		if out, _, code := run(t, "", "relay", "schema", "--dialect", string(dialect)); code != cli.ExitOK || !strings.Contains(out, "yard_outbox_lane") {
			t.Errorf("the schema of %s: exit code %d\n%s", dialect, code, out)
		}
	}
	for _, dsn := range []string{"", "oracle:x", "mysql://%zz"} {
		if _, errs, code := run(t, "", "relay", "status", "--dsn", dsn); code != cli.ExitUsage || !strings.Contains(errs, "--dsn") {
			t.Errorf("--dsn %q: exit code %d, %s", dsn, code, errs)
		}
	}
}
