package relay

import (
	"database/sql"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"             // the driver sqlite

	"github.com/yardmaster-io/yardmaster/contracts/outbox"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// sqliteSettings have a relay wait for other writers of the file.
const sqliteSettings = "_pragma=busy_timeout(10000)&_txlock=immediate"

// open opens a database by its URL. No connection is made yet. Errors do not quote the URL, which may have a password.
func open(dsn string) (outbox.Dialect, *sql.DB, error) {
	scheme, rest, found := strings.Cut(dsn, ":")
	if !found {
		return "", nil, command.Usagef("--dsn is required: postgres://…, mysql://… or sqlite:FILE")
	}
	u, err := url.Parse(dsn)
	if err != nil { // the driver's error would quote what it takes for the host
		return "", nil, command.Usagef("--dsn: the URL is malformed: write what is special in a user or password as %%XX, such as %%25 for %%")
	}
	switch scheme {
	case "postgres", "postgresql":
		db, err := sql.Open("pgx", dsn)
		return outbox.Postgres, db, err
	case "mysql", "mariadb":
		db, err := sql.Open("mysql", mysqlDSN(u))
		return outbox.MySQL, db, err
	case "sqlite":
		db, err := sql.Open("sqlite", "file:"+rest+"?"+sqliteSettings)
		if err == nil {
			db.SetMaxOpenConns(1) // SQLite has one writer
		}
		return outbox.SQLite, db, err
	}
	return "", nil, command.Usagef("--dsn: %q is none of postgres, mysql and sqlite", scheme)
}

// mysqlDSN is a URL as the driver spells it.
func mysqlDSN(u *url.URL) string {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.InterpolateParams = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/"), true
	cfg.Passwd, _ = u.User.Password()
	dsn := cfg.FormatDSN()
	if u.RawQuery != "" {
		dsn += "&" + u.RawQuery
	}
	return dsn
}
