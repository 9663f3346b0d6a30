package stack

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/natsserver"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/redischild"
	"github.com/yardmaster-io/yardmaster/services/frontend"
	"github.com/yardmaster-io/yardmaster/services/history"
	"github.com/yardmaster-io/yardmaster/services/matching"
	"github.com/yardmaster-io/yardmaster/services/timer"
)

// Tables says where the triggering tables and slots are.
type Tables string

// The places for tables.
const (
	// TablesAuto takes the Redis that is named, else a redis-server found on the
	// machine, else memory.
	TablesAuto Tables = "auto"
	// TablesMemory keeps them in this process: fast, and for one process only.
	TablesMemory Tables = "memory"
	// TablesRedis wants a Redis, named or found; without one Start fails.
	TablesRedis Tables = "redis"
)

// SyncAlways is the default of Config.Sync.
const SyncAlways = string(natsserver.SyncAlways)

// Config of a stack. The zero value of a field is its default, so the zero Config
// is a stack on a free port whose data go when it is closed.
type Config struct {
	// DataDir holds the streams; a stack started on it again has all accepted tasks.
	// Default: a temporary folder that Close removes.
	DataDir string
	// Host to listen on. Default 127.0.0.1. There is no authentication: on another
	// address everybody who reaches it can use it.
	Host string
	// Port for NATS clients. Default 0 = a free one.
	Port int
	// NoSocket: no port is opened. Only Stack.Connect and Stack.Dial reach it, over pipes in memory, so that all of it can
	// run in a bubble of testing/synctest. Host and Port have no effect then.
	NoSocket bool
	// Sync is when accepted tasks go to disk: "always" (the default), that is before
	// the answer, or every so often, such as "2m".
	Sync string
	// Auth is a folder that auth.Render wrote: the server takes its users only, each
	// service is one of them, and each domain has inboxes of its own. Default: none,
	// and everybody who reaches the server may do everything.
	Auth string
	// Partitioning of a cluster that is created. Default: 2 and 2, or, in a data
	// directory that has a cluster, what it was created with; other numbers than
	// those are refused.
	Partitioning topology.Partitioning
	// Tables is where the tables are. Default TablesAuto.
	Tables Tables
	// Redis is a URL such as redis://127.0.0.1:6379/0 or unix:///run/redis.sock.
	Redis string
	// HTTP is the address of the health and metrics pages. Default: off.
	HTTP string
	// Services are the services' own settings. Default: DefaultServices.
	Services *Services
	// Log hears all parts. Default: none.
	Log *slog.Logger
}

// Services holds the settings of each service.
type Services struct {
	Frontend frontend.Config
	Matching matching.Config // its tables are set by the stack
	History  history.Config
	Timer    timer.Config
}

// DefaultServices is the services' own defaults.
func DefaultServices() Services {
	return Services{
		Frontend: frontend.DefaultConfig(),
		Matching: matching.DefaultConfig(),
		History:  history.DefaultConfig(),
		Timer:    timer.DefaultConfig(),
	}
}

// embeddedPartitioning is what a cluster in one process is created with: one machine
// and one disk are faster with few partitions (contracts/decisions/0008).
func embeddedPartitioning() topology.Partitioning {
	return topology.Partitioning{History: 2, Matching: 2}
}

// tables decides where the tables are: the URL of a Redis, or the path of a
// redis-server to start, or neither, which means memory.
func (c Config) tables() (url, binary string, err error) {
	switch c.Tables {
	case "", TablesAuto, TablesRedis:
	case TablesMemory:
		if c.Redis != "" {
			return "", "", errors.New("tables in memory and a Redis were both given: choose one")
		}
		return "", "", nil
	default:
		return "", "", fmt.Errorf("tables %q: want auto, memory or redis", c.Tables)
	}
	if c.Redis != "" {
		return c.Redis, "", nil
	}
	if path, found := redischild.Find(); found {
		return "", path, nil
	}
	if c.Tables == TablesRedis {
		return "", "", fmt.Errorf("tables in Redis need --redis or a %s in PATH", redischild.Binary)
	}
	return "", "", nil
}
