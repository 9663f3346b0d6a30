package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisTimeout bounds a question to Redis.
const redisTimeout = 5 * time.Second

// RedisUse is what the Redis of the tables did for a run, as its own counters tell, for each task.
type RedisUse struct {
	// CPUPerTask is the CPU time of the server, µs.
	CPUPerTask float64 `json:"cpu_us_per_task"`
	// ScriptsPerTask are the calls that came in: the tables are used by scripts. CommandsPerTask are those that the scripts made.
	ScriptsPerTask  float64 `json:"scripts_per_task"`
	CommandsPerTask float64 `json:"commands_per_task"`
}

// redisUse is what a Redis has done so far.
type redisUse struct {
	cpu               time.Duration
	scripts, commands int64
}

// openRedis connects to the Redis of the tables, "" where there is none.
func (t *target) openRedis(url string) error {
	if url == "" {
		return nil
	}
	opts, err := redis.ParseURL(url)
	if err != nil {
		return errors.New("the address of Redis is not valid: want redis://, rediss:// or unix://") // the parser's error may hold a password
	}
	opts.ReadTimeout, opts.DialTimeout = redisTimeout, redisTimeout
	t.redis = redis.NewClient(opts)
	return nil
}

// redisUse asks Redis what it has done. Without one it is nothing.
func (t *target) redisUse(ctx context.Context) (redisUse, error) {
	if t.redis == nil {
		return redisUse{}, nil
	}
	info, err := t.redis.InfoMap(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return redisUse{}, fmt.Errorf("ask Redis what it has done: %w", err)
	}
	return redisUseOf(info)
}

// redisUseOf reads the sections CPU and Commandstats.
func redisUseOf(info map[string]map[string]string) (u redisUse, err error) {
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, bad := strconv.ParseFloat(info["CPU"][name], 64)
		err = errors.Join(err, bad)
		u.cpu += time.Duration(seconds * float64(time.Second))
	}
	for name, value := range info["Commandstats"] {
		calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		n, bad := strconv.ParseInt(calls, 10, 64)
		err = errors.Join(err, bad)
		switch strings.TrimPrefix(name, "cmdstat_") {
		case "eval", "evalsha", "fcall":
			u.scripts += n
		default:
			u.commands += n
		}
	}
	return u, err
}

// since is what so many tasks took.
func (u redisUse) since(before redisUse, tasks int) *RedisUse {
	per := func(n float64) float64 { return n / float64(tasks) }
	return &RedisUse{
		CPUPerTask:     per(float64((u.cpu - before.cpu).Microseconds())),
		ScriptsPerTask: per(float64(u.scripts - before.scripts)), CommandsPerTask: per(float64(u.commands - before.commands)),
	}
}
