package bench

import (
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

// costOf is the cost of one run of so many tasks, by the CPU time of this process and of Redis. Memory is the
// peak, since that is what must be there.
func costOf(self, redis time.Duration, tasks int) Cost {
	per100k := func(d time.Duration) float64 { return d.Seconds() / float64(tasks) * 100_000 }
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	return Cost{
		CPUPer100k: per100k(self + redis), RedisCPUPer100k: per100k(redis),
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
