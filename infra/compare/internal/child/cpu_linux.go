package child

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc.
const tick = time.Second / 100

// Places in /proc/PID/stat, after the name of the command.
const (
	statParent  = 1
	statCPUFrom = 11 // user, system, and both of the children that have ended
	statCPUTo   = 15
)

// cpuOfTree is the CPU time of a process with its descendants.
func cpuOfTree(root int) time.Duration {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	used, children := map[int]time.Duration{}, map[int][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < statCPUTo {
			continue
		}
		parent, _ := strconv.Atoi(fields[statParent]) // the kernel writes numbers
		children[parent] = append(children[parent], pid)
		used[pid] = ticks(fields[statCPUFrom:statCPUTo])
	}
	return sumTree(root, used, children)
}

func sumTree(root int, used map[int]time.Duration, children map[int][]int) time.Duration {
	sum := used[root]
	for _, pid := range children[root] {
		sum += sumTree(pid, used, children)
	}
	return sum
}

func ticks(fields []string) (sum time.Duration) {
	for _, f := range fields {
		n, _ := strconv.ParseInt(f, 10, 64) // the kernel writes numbers
		sum += time.Duration(n) * tick
	}
	return sum
}

// Busy is the CPU time that all programs of the machine have used together.
func Busy() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0
	}
	// user, nice, system, then idle and waiting, then interrupts and what the hypervisor took.
	return ticks(fields[1:4]) + ticks(fields[6:9])
}
