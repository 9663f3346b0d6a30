package sealed

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// UserName is the name of all users that Render makes.
const UserName = "test"

// Admin is the user of a domain that may do all that the domain may.
func Admin(domain string) permissions.User {
	return permissions.User{Role: permissions.Admin, Domain: domain, Name: UserName}
}

// Operator is the one who manages domains.
func Operator() permissions.User {
	return permissions.User{Role: permissions.Operator, Name: UserName}
}

// Render writes the users into dir: an operator, an admin of each domain, and more. A zero
// partitioning is that of a stack without one. The server speaks TLS if
// testkit.NewCertificates has written into dir before.
func Render(dir string, n topology.Partitioning, domains []string, more ...permissions.User) error {
	if n == (topology.Partitioning{}) {
		n = topology.Partitioning{History: 2, Matching: 2}
	}
	users := append([]permissions.User{Operator()}, more...)
	for _, d := range domains {
		users = append(users, Admin(d))
	}
	plan := auth.Plan{Partitioning: n, Users: users}
	if CA(dir) != "" {
		plan.TLS = auth.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	}
	_, err := auth.Render(dir, plan)
	return err
}

// CA is the file of the authority that has signed the certificate of a server with the users in dir, or "".
func CA(dir string) string {
	file := filepath.Join(dir, "ca.pem")
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// Connect connects as a user of a stack, or as no one in particular where it has no users.
func Connect(s *stack.Stack, u permissions.User, opts ...nats.Option) (*nats.Conn, error) {
	if s.Auth != "" {
		login, err := natsrpc.ConnConfig{NKeySeed: auth.SeedFile(s.Auth, u), InboxPrefix: u.Inbox(), TLS: natsrpc.TLSConfig{CA: CA(s.Auth)}}.Options()
		if err != nil {
			return nil, err
		}
		opts = append(opts, login...)
	}
	return nats.Connect(s.URL, append(opts, nats.Timeout(time.Minute))...)
}

// Log keeps what a server refused. Its zero value is ready.
type Log struct {
	mu      sync.Mutex
	refused []string
}

// Violation is how the server's log names what permissions refused.
const Violation = "Violation"

// Logger is the logger to give to a stack.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Write implements io.Writer, for lines of the log.
func (l *Log) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(Violation)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.refused = append(l.refused, string(line))
		_, _ = os.Stderr.Write(line) // at once: who is refused often waits until the test's end
	}
	return len(line), nil
}

// Refused is an error that lists what was refused, or nil.
func (l *Log) Refused() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.refused) == 0 {
		return nil
	}
	return fmt.Errorf("the server refused %d times:\n%s", len(l.refused), strings.Join(l.refused, ""))
}
