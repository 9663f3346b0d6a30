package doctor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// limit writes the hash of a limit that no task has, as the engine would.
func (x *clinic) limit(used int, entries ...int) (key string) {
	x.t.Helper()
	ctx := x.t.Context()
	info, err := x.redis.Info(ctx, "server").Result()
	if err != nil {
		x.t.Fatal(err)
	}
	_, run, _ := strings.Cut(info, "run_id:")
	later := time.Now().Add(time.Hour).UnixMilli()
	key = topology.SlotsKey(domain, ids.TypeLimit("idle"))
	fields := []any{"all", fmt.Sprintf("%s %d %d %d 0 ", run[:16], used, len(entries), later)}
	for m, held := range entries {
		fields = append(fields, fmt.Sprintf("s%d", m), fmt.Sprintf("1 1 %d %d", held, later))
	}
	if err := errors.Join(x.redis.Del(ctx, key).Err(), x.redis.HSet(ctx, key, fields...).Err()); err != nil {
		x.t.Fatal(err)
	}
	return key
}

func (x *clinic) set(key string) string {
	x.t.Helper()
	if err := x.redis.Set(x.t.Context(), key, "x", 0).Err(); err != nil {
		x.t.Fatal(err)
	}
	return key
}

// add writes a set that no set names.
func (x *clinic) add(key, member string) string {
	x.t.Helper()
	if err := x.redis.ZAdd(x.t.Context(), key, redis.Z{Score: 1, Member: member}).Err(); err != nil {
		x.t.Fatal(err)
	}
	return key
}

// TestEachDamageOfRedisIsFound, and repaired where it can be.
func TestEachDamageOfRedisIsFound(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "damages a system of its own in many ways")
	x := open(t, true)
	ctx := t.Context()
	for _, d := range []struct {
		name   string
		damage func() (key string)
		want   []doctor.Code
		mends  bool
	}{
		{"none", func() string { return "" }, nil, true},
		{"a limit that no one holds", func() string { return x.limit(0, 0, 0) }, nil, true},
		{"slots of no attempt", func() string { return x.limit(3, 0, 3) }, []doctor.Code{doctor.SlotsLeaked}, true},
		{"slots of no shard", func() string { return x.limit(2, 0, 0, 2) }, []doctor.Code{doctor.SlotsLeaked}, true},
		{"a wrong sum", func() string { return x.limit(5, 0, 0) }, []doctor.Code{doctor.SlotsMiscounted}, true},
		{"a domain that is gone", func() string { return x.set(topology.EpochKey("gone", 0)) }, []doctor.Code{doctor.TableOrphan}, true},
		{"a shard that is none", func() string { return x.set(topology.EpochKey(domain, 9)) }, []doctor.Code{doctor.TableOrphan}, true},
		{"a table in no set", func() string { return x.add(topology.HeadsKey(domain, "lost", 0), "3:idle") }, []doctor.Code{doctor.TableOutOfReach}, false},
		{"a column without a head", func() string { return x.add(topology.ColumnKey(domain, "lost", 0, 3, "idle"), strings.Repeat("x", 28)) }, []doctor.Code{doctor.TableOutOfReach}, false},
	} {
		t.Run(d.name, func(t *testing.T) {
			key := d.damage()
			opts := doctor.Options{Wait: 10 * time.Millisecond}
			report := x.examine(opts)
			if got := codesOf(report); !slices.Equal(got, d.want) {
				t.Fatalf("it finds %v, want %v:\n%+v", got, d.want, report.Findings)
			}
			report.Repair(ctx)
			if report.Clean() != d.mends {
				t.Errorf("repaired: %+v", report.Findings)
			}
			if d.mends && len(d.want) > 0 {
				if report := x.examine(opts); !report.Clean() {
					t.Errorf("it finds again %+v", report.Findings)
				}
			}
			testkit.NoError(t, x.redis.Del(ctx, key).Err())
		})
	}
}
