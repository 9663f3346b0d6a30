package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/usage"
)

// redisTimeout bounds a question to Redis.
const redisTimeout = 5 * time.Second

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
func (t *target) redisUse(ctx context.Context) (usage.Redis, error) {
	if t.redis == nil {
		return usage.Redis{}, nil
	}
	info, err := t.redis.InfoMap(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return usage.Redis{}, fmt.Errorf("ask Redis what it has done: %w", err)
	}
	return usage.RedisOf(info)
}
