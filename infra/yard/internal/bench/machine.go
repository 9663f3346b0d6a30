package bench

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Machine is what the numbers were measured on; without it they mean nothing.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	MemoryMB   int64  `json:"memory_mb"`
	OS         string `json:"os"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
	NATSServer string `json:"nats_server"`
	NATSClient string `json:"nats_client"`
}

func machine() Machine {
	m := Machine{
		CPU: "unknown", Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: firstLine("/proc/sys/kernel/osrelease"), Go: runtime.Version(),
		NATSServer: server.VERSION, NATSClient: nats.Version,
	}
	if model := fieldOf("/proc/cpuinfo", "model name"); model != "" {
		m.CPU = model
	}
	m.MemoryMB = kilobytes(fieldOf("/proc/meminfo", "MemTotal")) >> 10
	return m
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// fieldOf returns the value of the first "name: value" line.
func fieldOf(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kilobytes reads "24051712 kB".
func kilobytes(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64) // 0 where the system does not tell
	return n
}
