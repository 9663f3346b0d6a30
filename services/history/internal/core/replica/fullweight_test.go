package replica

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A message that domains share counts for each of them. In a takeover nothing counts: the owner before has counted it.
func TestTasksOverTheirRateAreCountedByDomain(t *testing.T) {
	cfg := smallConfig()
	cfg.FullWeight = func(domain string) FullWeight {
		return FullWeight{PerSecond: map[string]float64{"shop": 1, "mall": 3}[domain]}
	}
	n := 0
	read := func(b *bench, seq uint64) *Effects {
		in := &Submits{Lane: lagLane, Seq: seq, At: b.now.MS, Bytes: 10}
		for _, domain := range []string{"shop", "shop", "mall", "free", "mall"} {
			n++
			in.Tasks = append(in.Tasks, &Entry{Task: taskstate.Task{ID: id(n), Domain: domain, Tasklist: "mail", Type: "send", Priority: lagLane, Policy: storyPolicy}})
		}
		return b.step(in)
	}
	b := newBench(t, cfg)
	testkit.Equal(t, "over", len(read(b, 1).OverRate), 0)
	testkit.Equal(t, "over", read(b, 2).OverRate, []OverRate{{"shop", 2}, {"mall", 1}})
	for domain, split := range map[string]bool{"shop": true, "mall": true, "free": false} {
		testkit.Equal(t, domain, b.r.IsSplit(Queue{Lane: lagLane, Place: ids.PlaceOf(domain, "")}), split)
	}

	next := &bench{T: t, r: New(cfg, begin(time.Hour)), now: b.now}
	for seq := range uint64(3) {
		testkit.Equal(t, "over in a takeover", len(read(next, seq+1).OverRate), 0)
	}
	testkit.Equal(t, "splits in a takeover", next.r.Splits(), 0)
}
