package usage

import (
	"runtime"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/procfs"
)

// Unknown is what the system does not tell.
const Unknown = "unknown"

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

// ThisMachine reads what the system knows of itself, where it has /proc.
func ThisMachine() Machine {
	m := Machine{
		CPU: Unknown, Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH, Kernel: Unknown,
		Go: runtime.Version(), NATSServer: server.VERSION, NATSClient: nats.Version,
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m
	}
	if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 && cpus[0].ModelName != "" {
		m.CPU = cpus[0].ModelName
	}
	if memory, err := proc.Meminfo(); err == nil && memory.MemTotalBytes != nil {
		m.MemoryMB = int64(*memory.MemTotalBytes >> 20)
	}
	if release, err := proc.SysctlStrings("kernel.osrelease"); err == nil && len(release) > 0 {
		m.Kernel = release[0]
	}
	return m
}
