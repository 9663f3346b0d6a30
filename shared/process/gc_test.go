package process

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestCollectorsTarget(t *testing.T) {
	const mib = 1 << 20
	for live, want := range map[uint64]int{
		0: 4800, mib: 4800, 4 * mib: 4800, 8 * mib: 2400, 48 * mib: 400, 96 * mib: 200, 97 * mib: 200, 8 << 30: 200,
	} {
		if got := percentOf(live); got != want {
			t.Errorf("%d MiB: %d %%, want %d", live/mib, got, want)
		}
	}
}

// The target follows what the heap holds: what it held when the process began says little.
func TestCollectorsTargetFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	TuneGC()
	target := func() uint64 {
		all := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(all)
		return all[0].Value.Uint64()
	}
	await := func(what string, reached func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !reached(); runtime.GC() {
			if time.Now().After(deadline) {
				t.Fatalf("%s has a target of %d %%", what, target())
			}
		}
	}
	await("a small heap", func() bool { return target() > gcPercent })
	held := make([]byte, growthMin)
	await("a large heap", func() bool { return target() == gcPercent })
	runtime.KeepAlive(held)
	await("a heap that is small again", func() bool { return target() > gcPercent })
}
