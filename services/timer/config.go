package timer

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/settings"
	"github.com/yardmaster-io/yardmaster/shared/storage"
)

// Config of the timer service.
type Config struct {
	Firing firing.Config `koanf:"firing"`
	// Storage says when nothing is fired, since the log takes no further tasks. It should say the same
	// as history's.
	Storage storage.Config `koanf:"storage"`
}

// DefaultConfig is the defaults given at the fields.
func DefaultConfig() Config {
	return Config{Firing: firing.DefaultConfig(), Storage: storage.DefaultConfig()}
}

// Validate lists what is out of range.
func (c Config) Validate() []settings.Problem {
	var all []settings.Problem
	check := func(ok bool, path, what string) {
		if !ok {
			all = append(all, settings.Problem{Path: "firing." + path, What: what})
		}
	}
	f := c.Firing
	check(f.ChunkTasksMax >= 1 && f.ChunkTasksMax <= 100_000, "chunk_tasks_max", "want 1 to 100000")
	check(f.ChunkBytesMax >= 1<<10 && f.ChunkBytesMax <= 16<<20, "chunk_bytes_max", "want 1 KiB to 16 MiB")
	check(f.FetchParallel >= 1 && f.FetchParallel <= 256, "fetch_parallel", "want 1 to 256")
	check(f.CacheBytes >= 0 && f.CacheBytes <= 4<<30, "cache_bytes", "want 0 to 4 GiB")
	check(f.PurgeEvery >= 10*time.Millisecond && f.PurgeEvery <= time.Hour, "purge_every", "want 10ms to 1h")
	check(f.FiredKeep >= 0 && f.FiredKeep <= 24*time.Hour, "fired_keep", "want 0 to 24h")
	check(f.FiredKeepMax >= 0 && f.FiredKeepMax <= 10_000_000, "fired_keep_max", "want 0 to 10000000")
	check(f.EarlyFor >= 10*time.Millisecond && f.EarlyFor <= 10*time.Second, "early_for", "want 10ms to 10s")
	check(f.CriticalFailures >= 1 && f.CriticalFailures <= 1_000_000, "critical_failures", "want 1 to 1000000")
	check(f.Horizon >= 2*time.Minute && f.Horizon <= time.Hour, "horizon", "want 2m to 1h")
	check(f.NearMax >= 1000 && f.NearMax <= 100_000_000, "near_max", "want 1000 to 100000000")
	if why := c.Storage.Valid(); why != "" {
		all = append(all, settings.Problem{Path: "storage", What: why})
	}
	return all
}
