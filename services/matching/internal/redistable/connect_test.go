package redistable_test

import (
	"bufio"
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// hangsUp is a server of the protocol of Redis that closes the connection at each call, as one that dies before it answers.
func hangsUp(t *testing.T) (addr string, calls *atomic.Int64) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	calls = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c, calls)
		}
	}()
	return l.Addr().String(), calls
}

// serve answers what a client says of itself, until it calls.
func serve(c net.Conn, calls *atomic.Int64) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	line := func() string {
		s, _ := in.ReadString('\n') // "" ends it below
		return strings.TrimSpace(s)
	}
	for {
		n, err := strconv.Atoi(strings.TrimPrefix(line(), "*"))
		if err != nil {
			return
		}
		words := make([]string, n)
		for i := range words {
			line() // its length
			words[i] = strings.ToUpper(line())
		}
		answer := "+OK\r\n"
		switch words[0] {
		case "HELLO":
			answer = "-ERR unknown command\r\n"
		case "CLIENT":
		default:
			calls.Add(1)
			return
		}
		if _, err := c.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// A call whose connection breaks is not repeated: the first one may have taken triggers, which a second would lose.
func TestACallIsNotRepeated(t *testing.T) {
	t.Parallel()
	addr, calls := hangsUp(t)
	client, err := redistable.Connect(redistable.Config{Addrs: []string{addr}})
	testkit.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.Incr(ctx, "n").Err(); err == nil || ctx.Err() != nil || calls.Load() != 1 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
	testkit.Check(t, client.Close())
}

// A connection ends within an hour, also one that is in use: a password that was replaced is not in use for longer.
func TestConnectionsDoNotOutliveAPassword(t *testing.T) {
	t.Parallel()
	for _, cluster := range []bool{false, true} {
		client, err := redistable.Connect(redistable.Config{Addrs: []string{"127.0.0.1:1"}, Cluster: cluster})
		testkit.NoError(t, err)
		var lasts time.Duration
		switch c := client.(type) {
		case *redis.Client:
			lasts = c.Options().ConnMaxLifetime
		case *redis.ClusterClient:
			lasts = c.Options().ConnMaxLifetime
		}
		if lasts <= 0 || lasts > time.Hour {
			t.Errorf("cluster %v: a connection lasts %v", cluster, lasts)
		}
		testkit.Check(t, client.Close())
	}
}
