package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of /proc's CPU times; Linux fixes it for user space.
const ticksPerSecond = 100

// used is what the processes under test have used so far.
type used struct {
	self  time.Duration // CPU time of this process
	redis time.Duration // and of the redis-server it started
}

// usage reads CPU times. Redis 0 means that there is no such child.
func usage(redis int) used {
	return used{self: selfCPU(), redis: childCPU(redis)}
}

func (u used) since(before used) used {
	return used{u.self - before.self, u.redis - before.redis}
}

// per is the cost of one run of so many tasks. Memory is the peak, since that is
// what must be there.
func (u used) per(tasks int) Cost {
	per100k := func(d time.Duration) float64 { return d.Seconds() / float64(tasks) * 100_000 }
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	return Cost{
		CPUPer100k: per100k(u.self + u.redis), RedisCPUPer100k: per100k(u.redis),
		PeakMB: float64(peakBytes()) / (1 << 20), HeapMB: float64(heap.HeapInuse) / (1 << 20),
	}
}

// childCPU is the CPU time of another process, 0 where the system does not tell.
func childCPU(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the command in parentheses and may hold spaces.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	const utime, stime = 11, 12 // counted from the third field
	if len(fields) <= stime {
		return 0
	}
	var ticks int64
	for _, f := range fields[utime : stime+1] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
