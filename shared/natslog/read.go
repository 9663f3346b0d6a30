package natslog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// PrefetchBytesDefault is how much a reader holds that was not handled yet.
const PrefetchBytesDefault = 4 << 20

// How long a reader waits before it tries again to reach its stream.
const (
	reopenWaitFirst = 10 * time.Millisecond
	reopenWaitLast  = time.Second
)

// ReadConfig says what to read.
type ReadConfig struct {
	Stream string
	// Filters are the subjects wanted, of which no two overlap. None means all.
	Filters []string
	// StartSeq is the first sequence wanted; 0 and 1 are the beginning.
	StartSeq uint64
	// PrefetchBytes bounds what was sent by the server and not handled yet, in
	// bytes. Default PrefetchBytesDefault; never less than the server's largest
	// message, which could not be read else.
	PrefetchBytes int
	// CaughtUp, if there is one, is called once: when all is handled that matched at the start. Only Read calls it.
	CaughtUp func()
	// Log tells of interruptions. Default: nothing does.
	Log *slog.Logger
}

// Read hands out every matching record from StartSeq on, once and in order, for
// ever. Where handle blocks, nothing more is asked of the server; it may block for
// as long as it likes. A message that is purged before it was read is skipped.
//
// Read survives disconnection and restarts of the server by itself. It returns
// nil when ctx ends, the error of handle, or why reading is pointless: the stream
// does not exist, the connection was closed for good.
func Read(ctx context.Context, js jetstream.JetStream, cfg ReadConfig, handle func(Record) error) error {
	c := newCursor(js, cfg, false)
	defer c.stop()
	for {
		r, err := c.next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", cfg.Stream, err)
		}
		if err := handle(r); err != nil {
			return err
		}
		// The server may count one as pending that was replaced meanwhile.
		if c.ahead = max(c.ahead, 1) - 1; c.ahead == 0 || r.Pending == 0 {
			c.caughtUp()
		}
	}
}

// ReadRange hands out every matching record from StartSeq to upTo, inclusive, and
// returns. Where upTo is 0, it is the stream's last sequence at the start. It
// returns too where the last matching record lies before upTo, or there is none.
//
// An error is ctx's, handle's, or one that Read would return: without one, all
// records of the range were handled.
func ReadRange(ctx context.Context, js jetstream.JetStream, cfg ReadConfig, upTo uint64, handle func(Record) error) error {
	if upTo == 0 {
		last, err := LastSeq(ctx, js, cfg.Stream)
		if err != nil {
			return err
		}
		upTo = last
	}
	c := newCursor(js, cfg, true)
	defer c.stop()
	for wait := backoff.New(reopenWaitFirst, reopenWaitLast); c.want <= upTo; {
		r, err := c.next(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("read %s: %w", cfg.Stream, ctx.Err())
		case errors.Is(err, errEnd):
			// The reader's server has no more. It may be a follower that lags, so
			// the leader is asked.
			seq, err := nextMatch(ctx, js, cfg.Stream, cfg.Filters, c.want)
			switch {
			case errors.Is(err, jetstream.ErrStreamNotFound):
				return err
			case err == nil && (seq == 0 || seq > upTo):
				return nil
			}
			if !wait.Sleep(ctx) {
				return fmt.Errorf("read %s: %w", cfg.Stream, ctx.Err())
			}
		case err != nil:
			return fmt.Errorf("read %s: %w", cfg.Stream, err)
		case r.Seq > upTo:
			return nil
		default:
			wait.Reset()
			if err := handle(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadAll is ReadRange up to what is the last sequence at the start.
func ReadAll(ctx context.Context, js jetstream.JetStream, cfg ReadConfig, handle func(Record) error) error {
	return ReadRange(ctx, js, cfg, 0, handle)
}
