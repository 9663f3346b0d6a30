package matching

import (
	"fmt"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/settings"
)

// Where the triggering tables are.
const (
	// TablesRedis shares them between any number of matching processes.
	TablesRedis = "redis"
	// TablesMemory keeps them in this process, which must be the only one.
	TablesMemory = "memory"
)

// Config is the settings of the matching service.
type Config struct {
	// Tables says where the triggering tables and bookings are: "redis" (default)
	// or "memory". Memory in two processes would grant each limit twice.
	Tables string `koanf:"tables" usage:"where the triggering tables are: redis, or memory for a single process"`
	// Redis is used where Tables says so.
	Redis RedisConfig `koanf:"redis"`
	// Shard tunes each shard.
	Shard ShardConfig `koanf:"shard"`
}

// RedisConfig says how to reach Redis.
type RedisConfig = redistable.Config

// RedisTLSConfig is the TLS of RedisConfig.
type RedisTLSConfig = redistable.TLSConfig

// ShardConfig is what may be tuned about a shard.
type ShardConfig = shard.Config

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Tables: TablesRedis, Redis: redistable.DefaultConfig(), Shard: shard.DefaultConfig()}
}

// Validate tells what is wrong; the nested structs check themselves.
func (c Config) Validate() []settings.Problem {
	if c.Tables != TablesRedis && c.Tables != TablesMemory {
		return []settings.Problem{{Path: "tables", What: fmt.Sprintf("%q is neither %s nor %s", c.Tables, TablesRedis, TablesMemory)}}
	}
	return nil
}
