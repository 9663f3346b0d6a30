package process

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Clock says how right the node's clock must be.
type Clock struct {
	// SkewMax is how far it may be off the NATS server's. Default 10 s; 0 = any, else 2 s..24 h. A process that starts with
	// more waits, and is not ready, until its clock is set; one that runs goes on by the server's time, but
	// is not ready. Raise it to start services while the server's clock is the wrong one.
	SkewMax time.Duration `koanf:"skew_max" usage:"how far this node's clock may be off the NATS server's; 0 = any"`
}

// Bounds of SkewMax. Below, it would refuse what is not yet warned about.
const (
	skewMaxMin = 2 * time.Second
	skewMaxMax = 24 * time.Hour
)

// serverTime is what the clock of NATS says: every answer about a stream tells it.
func (p *body) serverTime(ctx context.Context) (time.Time, error) {
	js, err := jetstream.New(p.conn.Load())
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the server's time: %w", err)
	}
	stream, err := js.Stream(ctx, topology.BucketStream(topology.MembersBucket))
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the server's time: %w", err)
	}
	at := stream.CachedInfo().TimeStamp
	if at.IsZero() {
		return at, errors.New("ask for the server's time: its answer has no time")
	}
	return at, nil
}

// showSkew makes the number that an alert is for.
func showSkew(m *telemetry.Metrics, c *clock.Clock) {
	m.GaugeFunc(signals.ClockSkew, func() float64 {
		s, ok := c.Skew()
		if !ok {
			return math.NaN()
		}
		return s.Ahead.Seconds()
	})
}
