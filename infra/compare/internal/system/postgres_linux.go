package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/child"
)

// postgresUser runs PostgreSQL if this program is root, which PostgreSQL refuses.
const postgresUser = "postgres"

// postgresPrograms is the folder of postgres and initdb; "" if there is none. Debian has it outside PATH.
func postgresPrograms() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}

func missingPostgres() string {
	if postgresPrograms() == "" {
		return "no PostgreSQL: no initdb in PATH or in /usr/lib/postgresql"
	}
	if _, err := postgresCredential(); err != nil {
		return err.Error()
	}
	return ""
}

func postgresVersion() string {
	version := strings.Fields(printed(filepath.Join(postgresPrograms(), "postgres"), "--version")) // postgres (PostgreSQL) 15.14 …
	if len(version) < 3 {
		return "PostgreSQL"
	}
	return "PostgreSQL " + version[2]
}

// postgresCredential is the user that runs PostgreSQL; nil = that of this program.
func postgresCredential() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(postgresUser)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err, err2)
}

// startPostgres creates a database cluster with the defaults and starts its server. It returns the address of a database.
func startPostgres(ctx context.Context, dir, synchronousCommit string) (*child.Child, string, error) {
	as, err := postgresCredential()
	if err != nil {
		return nil, "", err
	}
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			return nil, "", err
		}
	}
	programs, data := postgresPrograms(), filepath.Join(dir, "postgres")
	initdb := exec.CommandContext(ctx, filepath.Join(programs, "initdb"), "-D", data, "-U", postgresUser, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as, Setpgid: true}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("initdb: %w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	c, err := child.Start(child.Config{Dir: dir, User: as, Stop: syscall.SIGINT, Command: []string{
		filepath.Join(programs, "postgres"), "-D", data, "-p", fmt.Sprint(port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "synchronous_commit=" + synchronousCommit,
	}})
	return c, fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable", postgresUser, port), err
}
