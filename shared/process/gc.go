package process

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcPercent is GOGC where the environment does not set it. The services allocate gigabytes a
	// second under load and hold little: with 200 the collector takes a tenth less of the CPU, for
	// at most as much memory again as is in use.
	gcPercent = 200
	// growthMin is by how much a heap grows at least between two collections, in bytes. One of few cores marks
	// meanwhile, and requests that come then take milliseconds: a process that holds 50 MB and allocates 100 MB
	// a second would be at it for more than a hundredth of the time, and so set the p99.
	growthMin = 192 << 20
)

// TuneGC sets the collector's target, unless GOGC does. GOMEMLIMIT works as ever.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		followGC(percentOf(0))
	}
}

// followGC sets the target now, and again after each collection.
func followGC(percent int) {
	debug.SetGCPercent(percent)
	runtime.SetFinalizer(&cycle{}, func(*cycle) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		followGC(percentOf(live[0].Value.Uint64()))
	})
}

// cycle is garbage as soon as it is made: its finalizer runs after the next collection. It holds a pointer, or it would share
// its memory with others.
type cycle struct{ _ *cycle }

// percentOf is the target of a heap that holds so many bytes. Go takes it for one of 4 MiB where it holds less.
func percentOf(live uint64) int { return int(max(gcPercent, 100*growthMin/max(live, 4<<20))) }
