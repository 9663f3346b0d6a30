package gateway

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/settings"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/balance"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/scaling"
)

// Config is what an operator may tune.
type Config struct {
	// RequestsMax is how many requests may be under way at once. Default 20000.
	// Above it requests are refused with RESOURCE_EXHAUSTED; too low refuses load
	// that could be carried. Of this and of each limit below one domain may have three
	// quarters; the last quarter is for domains that have few, a sixteenth at most.
	RequestsMax int `koanf:"requests_max" usage:"requests under way at once"`
	// RequestBytesMax is how many bytes of requests may be under way at once.
	// Default 128 MiB. It bounds the memory an overload takes, about three times as much.
	// With less than 16 times the longest request, one may be refused to a domain that has
	// nothing else under way.
	RequestBytesMax int `koanf:"request_bytes_max" unit:"bytes" usage:"bytes of requests under way at once"`
	// QueriesMax is how many queries, changes of types, and submits that do not go with a group commit may be under way
	// at once; each costs a goroutine for each owner that it asks. Default 1000. Too few refuse
	// queries with RESOURCE_EXHAUSTED while an owner is away.
	QueriesMax int `koanf:"queries_max" usage:"queries under way at once"`
	// WaitsMax is how many requests may wait for the end of a task at once (`wait` of a submit,
	// `wait_ms` of a get); each costs a goroutine here and a place at history. Default 4000.
	// Too few refuse gets with RESOURCE_EXHAUSTED, and end the waits of submits at once.
	WaitsMax int `koanf:"waits_max" usage:"waits for the end of a task at once"`
	// PollsMax is how many polls may wait at once, in parts of 1 KiB; a poll without types is
	// one. Each is kept until matching has answered it. Default 65536. Too few refuse
	// polls with RESOURCE_EXHAUSTED. Those of one shard are bounded there too (shard.polls_max).
	PollsMax int `koanf:"polls_max" usage:"polls that wait at once, in parts of 1 KiB"`
	// PollBalancer is how polls of a tasklist of several partitions are spread over them: "weighted" (default) sends more where more waits, if
	// a partition has more than 100 ready tasks, and has them take turns else; "round_robin" has them always take turns; "random" takes
	// any. Whichever it is, matching sends on what finds nothing.
	PollBalancer balance.Strategy `koanf:"poll_balancer" usage:"how polls are spread over the partitions of a tasklist: weighted, round_robin or random"`
	// DirectStarts has tasks start with their submit where a poll waits in the same frontend. Default true. Without it each task goes through
	// matching, which costs a sync of the log more.
	DirectStarts bool `koanf:"direct_starts" usage:"tasks start with their submit where a poll waits"`
	// Scale is how the number of partitions of tasklists with a partitions_max is set. It must be the same for all frontends: they decide
	// alike, and one of them wins.
	Scale scaling.Config `koanf:"scale"`
	// RequestTimeout is the deadline of a request that brings none. Default 10 s.
	// Too short turns a takeover of a partition into errors.
	RequestTimeout time.Duration `koanf:"request_timeout" usage:"deadline of a request that brings none"`
	// AppendTimeout is how long one append to the log may take until its outcome
	// counts as unknown and it is repeated. Default 2 s.
	AppendTimeout time.Duration `koanf:"append_timeout" usage:"one append to the log may take"`
	// VerdictTimeout is how long a verdict may take until the events are sent
	// again; of cancels and updates twice as long after each time, up to four times. Default 2 s. Too short multiplies the log under load.
	VerdictTimeout time.Duration `koanf:"verdict_timeout" usage:"events are sent again after"`
	// DrainTimeout is how long a stop waits for requests under way. Default 10 s.
	DrainTimeout time.Duration `koanf:"drain_timeout" usage:"a stop waits for requests under way"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		RequestsMax:     20_000,
		RequestBytesMax: 128 << 20,
		QueriesMax:      1000,
		WaitsMax:        4000,
		PollsMax:        64 << 10,
		PollBalancer:    balance.Weighted,
		DirectStarts:    true,
		Scale:           scaling.Config{Every: 15 * time.Second, TasksPerSecond: 10_000, UpAfter: time.Minute, DownAfter: 2 * time.Minute},
		RequestTimeout:  10 * time.Second,
		AppendTimeout:   2 * time.Second,
		VerdictTimeout:  2 * time.Second,
		DrainTimeout:    10 * time.Second,
	}
}

// DeadlineMax bounds the deadline that a request may bring. An append of unknown
// outcome is repeated until then with the same id, which the log recognises for
// topology.DedupeWindow only.
const DeadlineMax = topology.DedupeWindow / 2

const (
	// messageBytesFloor is the least the log must take in one message: a full
	// group commit.
	messageBytesFloor = 512 << 10

	// scaleEveryMin and scaleEveryMax bound scaling.Config.Every.
	scaleEveryMin, scaleEveryMax = 10 * time.Millisecond, time.Hour
)

// Validate lists what is wrong with c.
func (c Config) Validate() []settings.Problem {
	var problems []settings.Problem
	for _, n := range []struct {
		path  string
		value int
	}{
		{"requests_max", c.RequestsMax},
		{"request_bytes_max", c.RequestBytesMax},
		{"queries_max", c.QueriesMax},
		{"waits_max", c.WaitsMax},
		{"polls_max", c.PollsMax},
		{"scale.tasks_per_second", c.Scale.TasksPerSecond},
	} {
		if n.value < 1 {
			problems = append(problems, settings.Problem{Path: n.path, What: "must be at least 1"})
		}
	}
	for _, d := range []struct {
		path     string
		value    time.Duration
		from, to time.Duration
	}{
		{"request_timeout", c.RequestTimeout, time.Millisecond, DeadlineMax},
		{"append_timeout", c.AppendTimeout, time.Millisecond, DeadlineMax},
		{"verdict_timeout", c.VerdictTimeout, time.Millisecond, DeadlineMax},
		{"drain_timeout", c.DrainTimeout, time.Millisecond, DeadlineMax},
		{"scale.every", c.Scale.Every, scaleEveryMin, scaleEveryMax},
		{"scale.up_after", c.Scale.UpAfter, time.Second, 24 * time.Hour},
		{"scale.down_after", c.Scale.DownAfter, time.Second, 24 * time.Hour},
	} {
		if d.value < d.from || d.value > d.to {
			problems = append(problems, settings.Problem{Path: d.path, What: "must be between " + d.from.String() + " and " + d.to.String()})
		}
	}
	if !c.PollBalancer.Known() {
		problems = append(problems, settings.Problem{Path: "poll_balancer", What: fmt.Sprintf("%q is none of %s, %s and %s", c.PollBalancer, balance.Weighted, balance.RoundRobin, balance.Random)})
	}
	return problems
}
