package process

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	// memoryEvery is how often a process looks at its memory. A load is over for twice
	// that at most when its memory is given back.
	memoryEvery = 10 * time.Second
	// restCycles is how many collections between two looks a process at rest makes at most.
	restCycles = 1
	// worthBytes is how much memory at least is worth a collection.
	worthBytes = 32 << 20
)

// footprint is what the runtime says of its memory.
type footprint struct {
	// cycles is how many collections there were.
	cycles uint64
	// resident is what the runtime has of the system, in bytes, in use or not.
	resident uint64
}

// rest finds out when a process has come to rest with more memory than it had before.
type rest struct {
	cycles uint64
	// kept is the least that the process had since it gave memory back.
	kept uint64
	// again: what the process lets go of only at rest is garbage by the next look.
	again bool
}

// due tells whether memory is to be given back.
func (r *rest) due(now footprint) bool {
	atRest := now.cycles-r.cycles <= restCycles
	r.cycles, r.kept = now.cycles, min(r.kept, now.resident)
	grown := now.resident >= r.kept+max(worthBytes, r.kept/2)
	due := atRest && (grown || r.again)
	if due {
		r.again = grown
	}
	return due
}

// gave notes what is left.
func (r *rest) gave(now footprint) { r.cycles, r.kept = now.cycles, now.resident }

// ReturnMemory gives memory back to the system after a load, until ctx ends. By itself
// an idle Go process collects every two minutes, and keeps what its target allows.
func ReturnMemory(ctx context.Context) error {
	var r rest
	for backoff.Sleep(ctx, memoryEvery) {
		if r.due(memory()) {
			debug.FreeOSMemory()
			r.gave(memory())
		}
	}
	return nil
}

// memory asks the runtime.
func memory() footprint {
	all := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(all)
	return footprint{cycles: all[0].Value.Uint64(), resident: all[1].Value.Uint64() - all[2].Value.Uint64()}
}

// GCPercent is GOGC of a process that allocates gigabytes a second under load and keeps little: with 200 the collector takes a tenth
// less of the CPU, for at most as much memory again as is in use.
const GCPercent = 200

// TuneGC sets the collector's target, unless GOGC does. GOMEMLIMIT works as ever.
func TuneGC(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
