package report

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine is where it was measured.
type Machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	MemoryGB int    `json:"memory_gb"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
}

// ThisMachine describes the machine; a property that it does not say is empty.
func ThisMachine() Machine {
	kb, _ := strconv.Atoi(strings.TrimSuffix(property("/proc/meminfo", "MemTotal"), " kB")) // 0 if it is not there
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")                                  // empty if it is not there
	return Machine{
		CPU: property("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), MemoryGB: kb >> 20,
		Kernel: "Linux " + strings.TrimSpace(string(kernel)), Go: runtime.Version(),
	}
}

// property is the first value of a name in a file of /proc.
func property(file, name string) string {
	text, _ := os.ReadFile(file) // empty if it is not there
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
