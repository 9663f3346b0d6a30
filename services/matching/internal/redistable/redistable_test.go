package redistable_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tabletest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// store is a server, or a cluster, and all its nodes.
type store struct {
	t      testing.TB
	client redis.UniversalClient
	nodes  []*redis.Client
}

func (s store) Shard(i int) tables.Tables { return redistable.New(s.client, i, nil) }

func (s store) Forget() {
	for _, node := range s.nodes {
		testkit.NoError(s.t, node.FlushAll(context.Background()).Err())
	}
}

// older moves all times of limits to the past, by ARGV[1] ms.
const older = `
for _, key in ipairs(KEYS) do
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local function less(ms) return string.format('%.0f', ms - ARGV[1]) end
    local value
    if all[i] == 'all' then
      local run, soon, turns, line = string.match(all[i + 1], '(%w+ %d+ %d+ )(%d+)( %d+ )(.*)')
      line = string.gsub(line, '(%d+ %d+ %d+ )(%d+)', function(head, seen) return head .. less(seen) end)
      value = run .. less(soon) .. turns .. line
    elseif string.match(all[i], '^s%d') then
      value = string.gsub(all[i + 1], '(%d+)$', less)
    end
    if value then redis.call('HSET', key, all[i], value) end
  end
end
return 1`

// olderRate makes the state of a rate, and the line of those that wait for it, older, by so many µs.
const olderRate = `
local by = tonumber(ARGV[1])
local run, next, rest = string.match(redis.call('GET', KEYS[1]), '(%w+) (%S+)(.*)')
rest = string.gsub(rest, '(%d+ %d+) (%d+);', function(before, till) return string.format('%s %.0f;', before, till - by / 1000) end)
return redis.call('SET', KEYS[1], run .. ' ' .. string.format('%.17g', next - by) .. rest, 'KEEPTTL')`

// Pass lets time pass by making all that is stored older.
func (s store) Pass(d time.Duration) {
	s.older("*:slots:*", older, d.Milliseconds())
	s.older("*:rate:*", olderRate, d.Microseconds())
	s.older("*:group:*", olderGroup, d.Milliseconds())
}

func (s store) older(pattern, script string, by int64) {
	for _, node := range s.nodes {
		keys, err := node.Keys(context.Background(), pattern).Result()
		for _, key := range keys { // of several slots of a cluster, perhaps
			if err == nil {
				err = node.Eval(context.Background(), script, []string{key}, by).Err()
			}
		}
		testkit.NoError(s.t, err)
	}
}

// olderGroup lets time pass in the limit of one group, which vanishes when its time is over.
const olderGroup = `
local by = tonumber(ARGV[1])
local head, entries, line = string.match(redis.call('GET', KEYS[1]) or ' ;;', '([^;]*);([^;]*);(.*)')
entries = string.gsub(entries, '(%d+ %d+ %d+ %d+) (%d+),', function(before, till) return string.format('%s %.0f,', before, till - by) end)
line = string.gsub(line, '(%d+ %d+ %d+) (%d+) (%d+);', function(before, seen, short) return string.format('%s %.0f %s;', before, seen - by, short) end)
local left = redis.call('PTTL', KEYS[1]) - by
if left <= 0 then
  return redis.call('DEL', KEYS[1])
end
return redis.call('SET', KEYS[1], head .. ';' .. entries .. ';' .. line, 'PX', left)`

// keys are those of all nodes that are not of slots, rates or epochs.
func (s store) keys() []string {
	var all []string
	for _, node := range s.nodes {
		keys, err := node.Keys(context.Background(), "*").Result()
		testkit.NoError(s.t, err)
		for _, key := range keys {
			if !strings.Contains(key, ":slots:") && !strings.Contains(key, ":pergroup:") && !strings.Contains(key, ":group:") && !strings.Contains(key, ":rate:") && !strings.Contains(key, ":epoch:") {
				all = append(all, key)
			}
		}
	}
	return all
}

func dial(t testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// run starts one server with further arguments.
func run(t testing.TB, args ...string) (store, *testkit.Redis) {
	r := testkit.RunRedis(t, args...)
	return connect(t, redistable.Config{Addrs: []string{r.Addr}}), r
}

func connect(t testing.TB, c redistable.Config) store {
	client, err := redistable.Connect(c)
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	s := store{t: t, client: client}
	for _, addr := range c.Addrs {
		s.nodes = append(s.nodes, dial(t, addr))
	}
	return s
}

// cluster starts a cluster whose nodes share its slots.
func cluster(t testing.TB, nodes int) (store, []*testkit.Redis) {
	servers := testkit.RunRedisCluster(t, nodes)
	config := redistable.Config{Cluster: true}
	for _, r := range servers {
		config.Addrs = append(config.Addrs, r.Addr)
	}
	return connect(t, config), servers
}

func exercise(t *testing.T, s store) {
	tabletest.Exercise(t, func(t *testing.T) tabletest.Store {
		s.Forget()
		s := s
		s.t = t
		// What is drained leaves nothing behind (R9).
		if strings.HasSuffix(t.Name(), "R9_DrainedTasklistsAreForgotten") {
			t.Cleanup(func() {
				if keys := s.keys(); len(keys) > 0 {
					t.Errorf("keys are left: %q", keys)
				}
			})
		}
		return s
	})
}

func TestTables(t *testing.T) {
	t.Parallel()
	s, _ := run(t)
	exercise(t, s)
}

// TestTablesOnACluster runs the suite on servers that refuse what a Redis Cluster
// refuses: keys that were not named, and keys of several slots in one call.
func TestTablesOnACluster(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint("nodes=", nodes), func(t *testing.T) {
			s, _ := cluster(t, nodes)
			exercise(t, s)
		})
	}
}
