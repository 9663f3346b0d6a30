package testkit_test

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// recorder is a testing.TB whose failure is an observation, not a failure.
type recorder struct {
	testing.TB // the real test, for everything that is not a failure
	said       strings.Builder
	failed     bool
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	fmt.Fprintf(&r.said, format, args...)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// expectFatal runs f and returns what it failed with; f not failing fails t.
func expectFatal(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	if !r.failed {
		t.Fatal("did not fail")
	}
	return r.said.String()
}

// redisDo sends one inline command and returns the first line of the answer.
func redisDo(t *testing.T, addr, command string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	testkit.NoError(t, err)
	defer conn.Close()
	testkit.NoError(t, testkit.Err(fmt.Fprintf(conn, "%s\r\n", command)))
	line, err := bufio.NewReader(conn).ReadString('\n')
	testkit.NoError(t, err)
	return strings.TrimSpace(line)
}
