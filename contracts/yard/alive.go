package yard

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
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

// signs are the signs of life of one run of a worker.
type signs struct {
	sign  *yardv1.WorkerAlive
	began time.Time
	// off: it sends none, so its polls do not name it.
	off atomic.Bool
}

func newSigns(w *Worker) *signs {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	host, _ := os.Hostname()
	s := &signs{began: time.Now(), sign: &yardv1.WorkerAlive{
		WorkerId: hex.EncodeToString(id), EveryMs: w.cfg.signs.Milliseconds(), Worker: w.cfg.identity, Version: w.cfg.version,
		Host: clip(host, hostBytesMax), Tasklists: w.tasklists[:min(len(w.tasklists), signTasklistsMax)],
	}}
	s.off.Store(w.cfg.signs == 0)
	return s
}

// id is what polls name; empty = nothing.
func (s *signs) id() string {
	if s.off.Load() {
		return ""
	}
	return s.sign.WorkerId
}

// live sends signs of life until ctx ends.
func (s *session) live(ctx context.Context) {
	for !s.signs.off.Load() {
		wait := s.worker.cfg.signs
		switch err := s.sendSign(false); {
		case err == errNoSigns:
			s.signs.off.Store(true)
			s.log.Warn("the worker may not send signs of life: if it dies, its attempts wait for the end of their heartbeats or deadlines", "subject", topology.AliveHint(s.worker.client.domain))
			return
		case err != nil:
			wait = signAgain
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// sendSign sends a sign of life, or the last one.
func (s *session) sendSign(leaving bool) error {
	sign := s.signs.sign.CloneVT()
	sign.RunningForMs, sign.Leaving = time.Since(s.signs.began).Milliseconds(), leaving
	return s.engine.alive(sign)
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
