package usage

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// RedisUse is what the Redis of the tables did for a run, as its own counters tell, for each task.
type RedisUse struct {
	// CPUPerTask is the CPU time of the server, µs.
	CPUPerTask float64 `json:"cpu_us_per_task"`
	// ScriptsPerTask are the calls that came in: the tables are used by scripts. CommandsPerTask are those that the scripts made.
	ScriptsPerTask  float64 `json:"scripts_per_task"`
	CommandsPerTask float64 `json:"commands_per_task"`
}

// Redis is what a Redis has done so far.
type Redis struct {
	cpu               time.Duration
	scripts, commands int64
}

// RedisOf reads the sections CPU and Commandstats.
func RedisOf(info map[string]map[string]string) (u Redis, err error) {
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

// Since is what so many tasks took.
func (u Redis) Since(before Redis, tasks int) *RedisUse {
	per := func(n float64) float64 { return n / float64(tasks) }
	return &RedisUse{
		CPUPerTask:     per(float64((u.cpu - before.cpu).Microseconds())),
		ScriptsPerTask: per(float64(u.scripts - before.scripts)), CommandsPerTask: per(float64(u.commands - before.commands)),
	}
}
