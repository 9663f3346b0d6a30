package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/services/frontend"
	"github.com/yardmaster-io/yardmaster/services/history"
	"github.com/yardmaster-io/yardmaster/services/matching"
	"github.com/yardmaster-io/yardmaster/services/timer"
	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// build makes one service.
type build struct {
	name string
	make func(process.Env) (process.Service, error)
}

// builds lists the services in the order they start: the frontend last, so that
// nothing is let in before it can be carried out, and first out.
func builds(c Services) []build {
	return []build{
		{"history", func(e process.Env) (process.Service, error) {
			return history.New(history.Deps{Env: e, Config: c.History})
		}},
		{"timer", func(e process.Env) (process.Service, error) { return timer.New(timer.Deps{Env: e, Config: c.Timer}) }},
		{"matching", func(e process.Env) (process.Service, error) {
			return matching.New(matching.Deps{Env: e, Config: c.Matching})
		}},
		{"frontend", func(e process.Env) (process.Service, error) {
			return frontend.New(frontend.Deps{Env: e, Config: c.Frontend})
		}},
	}
}

// addServices builds the services, each with a connection, a log and a tracer of
// its own, and adds them to the parts.
func (s *Stack) addServices(ctx context.Context, parts *lifecycle.Group, health *telemetry.Health, c Services) error {
	node := process.NodeName()
	for _, b := range builds(c) {
		nc, err := s.connect(b.name)
		if err != nil {
			return err
		}
		tracing, err := telemetry.NewTracing(ctx, "yard-"+b.name, node, s.Metrics)
		if err != nil {
			return err
		}
		s.traces = append(s.traces, tracing)
		log := s.log.With("service", b.name)
		replies := natsrpc.NewReplies(s.inboxes, b.name, s.Metrics, log)
		service, err := b.make(process.Env{
			NATS: nc, Partitioning: s.Partitioning, Replies: replies, Node: node, Log: log, Tracing: tracing, Metrics: s.Metrics,
			Connect: func(_ context.Context, purpose string) (*nats.Conn, error) {
				return natsrpc.ConnectInProcess(s.server, s.user(b.name), "yard-"+b.name+" "+purpose, log)
			},
		})
		if err != nil {
			return err
		}
		health.AddCheck(b.name, func() error { return process.Serving(service) })
		health.AddWarning("cluster, by "+b.name, service.Warn)
		owner, _ := service.(process.Owner)
		parts.Add("presence of "+b.name, &process.Presence{Service: b.name, Node: node, NATS: nc, Replies: replies, Health: health, Owner: owner, Log: log})
		parts.Add(b.name, service)
	}
	return nil
}

// withTables puts the tables where they were decided to be.
func withTables(all Services, url string) (Services, error) {
	if url == "" {
		all.Matching.Tables = matching.TablesMemory
		return all, nil
	}
	opts, err := parseRedis(url)
	if err != nil {
		return all, err
	}
	if opts.DB != 0 {
		return all, fmt.Errorf("redis %s: only database 0 is used, so that a cluster serves as well", redact(url))
	}
	all.Matching.Tables = matching.TablesRedis
	all.Matching.Redis = matching.RedisConfig{
		Addrs: []string{opts.Addr}, Username: opts.Username, Password: opts.Password, TLS: matching.RedisTLSConfig{Enabled: opts.TLSConfig != nil},
	}
	return all, nil
}

// parseRedis reads a URL. The error of one that cannot be read would quote it with its password.
func parseRedis(text string) (*redis.Options, error) {
	opts, err := redis.ParseURL(text)
	if errors.As(err, new(*url.Error)) {
		err = errors.New("it cannot be read; escape special characters in the password")
	}
	if err != nil {
		return nil, fmt.Errorf("redis %s: %w", redact(text), err)
	}
	return opts, nil
}

// redisTimeout is how long a Redis that was named may take to answer.
const redisTimeout = 5 * time.Second

// reachRedis returns an error if the Redis at url does not answer. A system that starts without the
// one that was asked for would take tasks and hand out few.
func reachRedis(ctx context.Context, url string) error {
	opts, err := parseRedis(url)
	if err != nil {
		return err
	}
	client := redis.NewClient(opts)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("redis %s does not answer: %w; name another one with --redis, or use --tables memory", redact(url), err)
	}
	return nil
}

// redact hides the password of a Redis URL.
func redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}
