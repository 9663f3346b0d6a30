package bench

import (
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

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
	stat, err := statOf(pid)
	if err != nil {
		return 0
	}
	return time.Duration(stat.CPUTime() * float64(time.Second))
}

// statOf reads what the system tells of a process, where it has /proc.
func statOf(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}
