package shard

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestReasonsOfAWait(t *testing.T) {
	const ready, matched = 10 * time.Second, 20 * time.Second
	delay := func(kind, ref string, since, until time.Duration) limit.Delay {
		return limit.Delay{Kind: kind, Ref: table.Ref(ref), Since: since * time.Second, Until: until * time.Second}
	}
	full, rate, pause := delay("limit", "type/a", 12, 15), delay("rate", "type/a", 14, 16), delay("pause", "all", 1, 13)
	for _, c := range []struct {
		name   string
		polled time.Duration
		delays []limit.Delay
		want   string
	}{
		{"nothing", 9, nil, ""},
		{"no worker until the poll came", 19, nil, "no worker 9s"},
		{"a limit, with a poll that waited", 9, []limit.Delay{full}, "limit type/a 3s"},
		{"a limit between times without a worker", 18, []limit.Delay{full}, "no worker 2s, limit type/a 3s, no worker 3s"},
		{"limits that overlap", 18, []limit.Delay{full, rate}, "no worker 2s, limit type/a 3s, rate type/a 2s, no worker 2s"},
		{"a pause that began before the task was ready", 13, []limit.Delay{pause}, "pause all 3s"},
		{"a limit that was full before the task was ready", 9, []limit.Delay{delay("limit", "type/a", 1, 9)}, ""},
		{"a limit that is full again since the match", 9, []limit.Delay{delay("limit", "type/a", 20, 21)}, ""},
	} {
		got := reasons(&grab.Traced{Polled: c.polled * time.Second, Matched: matched, Delays: c.delays}, ready)
		testkit.Equal(t, c.name, got, c.want)
	}
}
