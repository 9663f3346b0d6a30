//go:build !linux

package outboxtest

import "testing"

// Server is a database server of a test.
type Server struct{ DSN string }

// Postgres skips the test: servers are started on Linux only.
func Postgres(tb testing.TB) *Server { return skip(tb) }

// MariaDB skips the test: servers are started on Linux only.
func MariaDB(tb testing.TB) *Server { return skip(tb) }

// Kill does nothing.
func (s *Server) Kill() {}

// Restart does nothing.
func (s *Server) Restart(testing.TB) {}

func skip(tb testing.TB) *Server {
	tb.Helper()
	tb.Skip("database servers are started on Linux only")
	return nil
}
