// Package usage reads what processes and Redis use, CPU time, memory and commands, and what machine they are on.
//
// Owns: the sampling of memory during a run. Never does: decide what a run is. On failure: a number that the system does not give
// is 0, and a process that cannot be watched is an error.
package usage

import (
	"time"

	"github.com/prometheus/procfs"
)

// CPU is that of another process, user and system, 0 where the system does not tell.
func CPU(pid int) time.Duration {
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
