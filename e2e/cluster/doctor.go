package cluster

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
)

// examineWithin bounds one examination.
const examineWithin = 5 * time.Minute

// CheckAll is Check, and fails the test where the doctor finds something in what is stored. All services must run.
func (c *Cluster) CheckAll() {
	c.tb.Helper()
	c.Check()
	report := c.Examine()
	for _, f := range report.Findings {
		c.tb.Errorf("the doctor finds %s at %s, task %q: %s (%s)", f.Code, f.Where, f.Task, f.What, f.Means)
	}
	c.tb.Logf("the doctor looked at %+v; it did not check %q", report.Scanned, report.Unchecked)
}

// Examine has the doctor look at all that is stored, as the inspector.
func (c *Cluster) Examine() *doctor.Report {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), examineWithin)
	defer cancel()
	nc := c.connect(append(c.login(permissions.User{Role: permissions.Inspector}), nats.MaxReconnects(-1)))
	defer nc.Close()
	js, err := jetstream.New(nc)
	c.must(err)
	var tables *doctor.Tables
	if client := c.redisClient(); client != nil {
		defer func() { _ = client.Close() }() // nothing is under way
		tables = doctor.NewTables(client, nc)
	}
	report, err := doctor.Examine(ctx, js, tables, doctor.Options{})
	c.must(err)
	return report
}

// redisClient reaches the tables; nil if only its own user gets in.
func (c *Cluster) redisClient() redis.UniversalClient {
	if c.shape.redisSecured {
		return nil
	}
	return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{c.Redis.Addr}, IsClusterMode: c.RedisNodes != nil, DisableIdentity: true})
}
