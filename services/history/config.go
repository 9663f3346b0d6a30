package history

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/settings"
	"github.com/yardmaster-io/yardmaster/shared/storage"
)

// Config of the history service.
type Config struct {
	Partition partition.Config `koanf:"partition"`
	// LetterLimitsEvery is how often dead letters beyond the limits of their domain (dead_letters_max, dead_letters_max_age_ms) are deleted. Default 30s,
	// 100ms..30s: a limit holds within a minute.
	LetterLimitsEvery time.Duration `koanf:"letter_limits_every" usage:"how often dead letters beyond the limits of their domain are deleted"`
	// TopDomains is how many domains have metrics of their own, the busiest ones; the others are added up. Default 20, 0..200.
	TopDomains int `koanf:"top_domains" usage:"the busiest domains, which have metrics of their own"`
	// Storage says when the log takes no further tasks.
	Storage storage.Config `koanf:"storage"`
}

// DefaultConfig is the defaults given at the fields.
func DefaultConfig() Config {
	return Config{Partition: partition.DefaultConfig(), LetterLimitsEvery: 30 * time.Second, TopDomains: 20, Storage: storage.DefaultConfig()}
}

// Validate lists what is out of range.
func (c Config) Validate() []settings.Problem {
	var all []settings.Problem
	check := func(ok bool, path, what string) {
		if !ok {
			all = append(all, settings.Problem{Path: "partition." + path, What: what})
		}
	}
	p := c.Partition
	check(p.WindowTasks >= 1 && p.WindowTasks <= 1_000_000, "window_tasks", "want 1 to 1000000")
	check(p.WindowBytes >= 1<<20 && p.WindowBytes <= 16<<30, "window_bytes", "want 1 MiB to 16 GiB")
	check(p.OrderKeyTasks >= 1 && p.OrderKeyTasks <= 1_000_000, "order_key_tasks", "want 1 to 1000000")
	check(p.CheckpointEvery >= 100*time.Millisecond && p.CheckpointEvery <= time.Second, "checkpoint_every", "want 100ms to 1s")
	check(p.PurgeEvery >= time.Second && p.PurgeEvery <= time.Hour, "purge_every", "want 1s to 1h")
	check(p.SnapshotAfter >= 64<<10 && p.SnapshotAfter <= 16<<30, "snapshot_after", "want 64 KiB to 16 GiB")
	check(p.SnapshotEvery >= 100*time.Millisecond && p.SnapshotEvery <= 24*time.Hour, "snapshot_every", "want 100ms to 24h")
	check(p.DrainTimeout >= 100*time.Millisecond && p.DrainTimeout <= time.Minute, "drain_timeout", "want 100ms to 1m")
	if c.LetterLimitsEvery < 100*time.Millisecond || c.LetterLimitsEvery > 30*time.Second {
		all = append(all, settings.Problem{Path: "letter_limits_every", What: "want 100ms to 30s"})
	}
	if c.TopDomains < 0 || c.TopDomains > 200 {
		all = append(all, settings.Problem{Path: "top_domains", What: "want 0 to 200"})
	}
	if why := c.Storage.Valid(); why != "" {
		all = append(all, settings.Problem{Path: "storage", What: why})
	}
	return all
}
