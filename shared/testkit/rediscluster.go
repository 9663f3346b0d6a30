package testkit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// redisSlots is how many slots a Redis Cluster shares out.
const redisSlots = 16384

// RunRedisCluster starts redis-servers that share the slots of a Redis Cluster evenly, as
// RunRedis does. It returns when each knows all. A node that is away takes nothing but its own
// slots away. A quick run leaves the test out.
func RunRedisCluster(tb testing.TB, nodes int) []*Redis {
	tb.Helper()
	Slow(tb, "starts a cluster of Redis")
	var all []*Redis
	for range nodes {
		bus := FreePort(tb)
		r := RunRedis(
			tb, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus),
			"--cluster-require-full-coverage", "no", "--cluster-node-timeout", "2000",
		)
		r.bus = bus
		all = append(all, r)
	}
	for i, r := range all {
		r.must(tb, fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", redisSlots*i/nodes, redisSlots*(i+1)/nodes-1))
		if i > 0 {
			host, port, _ := strings.Cut(r.Addr, ":")
			all[0].must(tb, fmt.Sprintf("CLUSTER MEET %s %s %d", host, port, r.bus))
		}
	}
	Eventually(tb, serverReadyWithin, func() error {
		for _, r := range all {
			info, err := do(r.Addr, serverReadyWithin, "CLUSTER INFO")
			if err != nil {
				return err
			}
			for _, want := range []string{"cluster_state:ok", fmt.Sprint("cluster_known_nodes:", nodes), fmt.Sprint("cluster_slots_ok:", redisSlots)} {
				if !strings.Contains(info, want) {
					return fmt.Errorf("no %s: %s", want, info)
				}
			}
		}
		return nil
	})
	return all
}

// Slot is the slot of a key with a hash tag.
func (r *Redis) Slot(tb testing.TB, key string) int {
	tb.Helper()
	n, err := strconv.Atoi(strings.TrimPrefix(r.must(tb, "CLUSTER KEYSLOT "+key), ":"))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// Pause stops the server with SIGSTOP: it does nothing and notices nothing until Resume.
func (r *Redis) Pause(tb testing.TB) { r.signal(tb, syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (r *Redis) Resume(tb testing.TB) { r.signal(tb, syscall.SIGCONT) }

func (r *Redis) signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	if err := r.server.Signal(s); err != nil {
		tb.Fatalf("signal redis-server: %v", err)
	}
}

// must carries a command out.
func (r *Redis) must(tb testing.TB, command string) string {
	tb.Helper()
	answer, err := do(r.Addr, serverReadyWithin, command)
	if err != nil {
		tb.Fatalf("redis-server: %s: %v", command, err)
	}
	return answer
}

// do carries a command out on a connection of its own. The answer is a line, or a text of several.
func do(addr string, within time.Duration, command string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprint(conn, command, "\r\n"); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	line = strings.TrimSpace(line)
	switch {
	case err != nil:
		return "", err
	case strings.HasPrefix(line, "-"):
		return "", fmt.Errorf("%s", line)
	case !strings.HasPrefix(line, "$"):
		return line, nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil {
		return "", err
	}
	text := make([]byte, n)
	_, err = io.ReadFull(in, text)
	return string(text), err
}
