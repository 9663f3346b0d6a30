package yard

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard/internal/signs"
)

const (
	// signsDefault is how often a worker sends a sign of life. The engine waits for two, and the loss of a NATS server, of which a
	// client learns within 3 s, must not look like silence.
	signsDefault       = 3 * time.Second
	signsMin, signsMax = 500 * time.Millisecond, 30 * time.Second
	// signAgain is how soon one is repeated that was not sent: behind a broken connection the first one comes at once.
	signAgain = 100 * time.Millisecond
	// hostBytesMax and signTasklistsMax bound what it says.
	hostBytesMax, signTasklistsMax = 64, 16
)

// errNoSigns: the worker has no right to send signs of life.
var errNoSigns = errors.New("no right to publish signs of life")

// WithSignsOfLife sets how often the worker sends a sign of life to the engine: one small message for all its attempts, 500 ms to 30 s. If
// the process dies, or its host is cut off, all attempts are ready again for others after twice that time, without a failure. Below 3 s the
// loss of a NATS server may look like that. With 0 it sends none; then attempts of a dead worker wait for the end of their heartbeats or deadlines.
// Default 3 s. The worker needs the right to publish on yard.v1.<domain>.hint.alive.
func WithSignsOfLife(every time.Duration) WorkerOption {
	return func(c *workerConfig) { c.signs = every }
}

func newSigns(w *Worker) *signs.Signs {
	host, _ := os.Hostname()
	return signs.New(&yardv1.WorkerAlive{
		Worker: w.cfg.identity, Version: w.cfg.version,
		Host: clip(host, hostBytesMax), Tasklists: w.tasklists[:min(len(w.tasklists), signTasklistsMax)],
	}, w.cfg.signs, signAgain)
}

// live sends signs of life until ctx ends.
func (s *session) live(ctx context.Context) {
	s.signs.Run(ctx, func() error {
		err := s.sendSign(false)
		if err == errNoSigns {
			s.signs.Off()
			s.log.Warn("the worker may not send signs of life: if it dies, its attempts wait for the end of their heartbeats or deadlines", "subject", topology.AliveHint(s.worker.client.domain))
		}
		return err
	})
}

// sendSign sends a sign of life, or the last one.
func (s *session) sendSign(leaving bool) error {
	running, unreported := s.slots.left()
	return s.engine.alive(s.signs.Next(running+unreported > 0, leaving))
}

// alive implements engine.
func (c *Client) alive(sign *yardv1.WorkerAlive) error {
	subject := topology.AliveHint(c.domain)
	if err := c.nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), subject) {
		return errNoSigns
	}
	if !c.nc.IsConnected() {
		return notSent(context.Background(), c.nc)
	}
	data, err := codec.Marshal(codec.JSON, sign)
	if err != nil {
		return err
	}
	return c.nc.Publish(subject, data)
}
