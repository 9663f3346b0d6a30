package redistable_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tabletest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

type store struct {
	t      testing.TB
	client redis.UniversalClient
}

func (s store) Shard(i int) shard.Tables { return redistable.New(s.client, i, nil) }

func (s store) Forget() {
	if err := s.client.FlushAll(context.Background()).Err(); err != nil {
		s.t.Fatal(err)
	}
}

func run(t testing.TB) (store, bool) {
	r, ok := testkit.RunRedis(t)
	if !ok {
		return store{}, false
	}
	client := redistable.Connect(redistable.Config{Addrs: []string{r.Addr}})
	t.Cleanup(func() { _ = client.Close() })
	return store{t, client}, true
}

func TestTables(t *testing.T) {
	s, ok := run(t)
	if !ok {
		return // announced
	}
	tabletest.Exercise(t, func(t *testing.T) tabletest.Store {
		s.Forget()
		return store{t, s.client}
	})
}

// TestTablesOnACluster runs the suite on a server that refuses what a Redis Cluster
// refuses: keys that were not named, and keys of several slots in one call.
func TestTablesOnACluster(t *testing.T) {
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	r, ok := testkit.RunRedis(t, "--cluster-enabled", "yes", "--cluster-port", port)
	if !ok {
		return // announced
	}
	client := redistable.Connect(redistable.Config{Addrs: []string{r.Addr}, Cluster: true})
	t.Cleanup(func() { _ = client.Close() })
	node := redis.NewClient(&redis.Options{Addr: r.Addr})
	t.Cleanup(func() { _ = node.Close() })
	if err := node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error { return client.Set(context.Background(), "up", 1, 0).Err() })
	tabletest.Exercise(t, func(t *testing.T) tabletest.Store {
		s := store{t, client}
		s.Forget()
		return s
	})
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// BenchmarkPutPop: ten chunks of ten put in one call, a hundred triggers popped in another.
func BenchmarkPutPop(b *testing.B) {
	s, ok := run(b)
	if !ok {
		b.SkipNow()
	}
	ctx := context.Background()
	tables := s.Shard(0)
	if _, err := tables.Open(ctx, "d"); err != nil {
		b.Fatal(err)
	}
	list := table.Tasklist{Domain: "d", Name: "l"}
	chunks := make([]table.Chunk, 10)
	want := table.Want{Tasklist: list, N: 100}
	for i := range chunks {
		chunks[i] = table.Chunk{Tasklist: list, Column: table.Column{Priority: 3, Type: fmt.Sprint("t", i)}}
		want.Candidates = append(want.Candidates, table.Candidate{Column: chunks[i].Column})
	}
	next := uint64(0)
	b.ResetTimer()
	for n := 0; n < b.N; n += 100 {
		for i := range chunks {
			chunks[i].ReadyAt = time.Now().UnixMicro()
			chunks[i].Triggers = chunks[i].Triggers[:0]
			for range 10 {
				next++
				chunks[i].Triggers = ids.AppendTrigger(chunks[i].Triggers, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, next)})
			}
		}
		if err := tables.Put(ctx, chunks); err != nil {
			b.Fatal(err)
		}
		if _, err := tables.Pop(ctx, []table.Want{want}); err != nil {
			b.Fatal(err)
		}
	}
}
