package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	// watchEvery is how often the server's clock is looked at; watchFirst looks come at once.
	watchEvery = 2 * time.Second
	watchFirst = 3
	// askTimeout bounds one look; noticeEvery is how often it is said that the first one fails.
	askTimeout  = 2 * time.Second
	noticeEvery = 10 * time.Second
	// warnAbove is the skew that is warned about; warnBelow ends that.
	warnAbove = time.Second
	warnBelow = 800 * time.Millisecond
)

// SkewMaxDefault is how far a clock may be off by default: a clock that is set by NTP is within
// milliseconds, so more is a fault of the machine.
const SkewMaxDefault = 10 * time.Second

// level is what is to be said about a skew.
type level int

const (
	right level = iota
	off
	tooFar
)

// level is the level of a clock that is off by at least d; most 0 = never too far.
func levelOf(d, most time.Duration, before level) level {
	switch {
	case most > 0 && d > most:
		return tooFar
	case d > warnAbove, d > warnBelow && before != right:
		return off
	}
	return right
}

// Watch teaches a clock, and says when the node's own is off. It is a part for lifecycle.Group, ready when
// the clock is known and not too far off: a node with a wrong clock is not let in. Once ready, a clock that goes too far
// off is an alarm and makes Check fail, and nothing more: the node's time is the server's all the same.
type Watch struct {
	Clock *Clock
	// Ask is what the server's clock says.
	Ask func(context.Context) (time.Time, error)
	// SkewMax is how far off the node's clock may be; 0 = any.
	SkewMax time.Duration
	Log     *slog.Logger

	once  sync.Once
	ready chan struct{}
}

// Ready is closed when the clock is known, and was not too far off.
func (w *Watch) Ready() <-chan struct{} {
	w.once.Do(func() { w.ready = make(chan struct{}) })
	return w.ready
}

// Check is an error where the clock is not known, or too far off.
func (w *Watch) Check() error {
	s, ok := w.Clock.Skew()
	switch {
	case !ok:
		return errors.New("the server's clock is not known yet")
	case levelOf(s.Least(), w.SkewMax, right) == tooFar:
		return w.tooFar(s)
	}
	return nil
}

func (w *Watch) tooFar(s Skew) error {
	return fmt.Errorf("this node's clock is %s the NATS server's, more than the %v of clock.skew_max: set the clock that is wrong (NTP)", s, w.SkewMax)
}

// String tells it to people, such as "1m0.2s ahead of".
func (s Skew) String() string {
	way := "ahead of"
	if s.Ahead < 0 {
		way = "behind"
	}
	return s.Ahead.Abs().Round(time.Millisecond).String() + " " + way
}

// Run looks at the server's clock until ctx ends. It returns nil.
func (w *Watch) Run(ctx context.Context) error {
	noticed, said, open := time.Time{}, right, false
	for looks := 0; ctx.Err() == nil; {
		err := w.look(ctx)
		if s, ok := w.Clock.Skew(); ok {
			said = w.say(s, said)
			if !open && said != tooFar {
				w.Ready()
				close(w.ready)
				open = true
			}
		}
		switch looks++; {
		case err == nil && looks < watchFirst:
			continue
		case err != nil && !open && ctx.Err() == nil && time.Since(noticed) >= noticeEvery:
			noticed = time.Now()
			w.Log.Warn("waiting for the server's clock", "error", err)
		}
		backoff.Sleep(ctx, watchEvery)
	}
	return nil
}

// look asks once.
func (w *Watch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	asked := time.Now()
	server, err := w.Ask(ctx)
	if err != nil {
		return err
	}
	w.Clock.Learn(server, asked, time.Now())
	return nil
}

// say tells the log where the level has changed, and returns it.
func (w *Watch) say(s Skew, before level) level {
	now := levelOf(s.Least(), w.SkewMax, before)
	if now == before {
		return now
	}
	about := []any{"skew", s.Ahead.Round(time.Millisecond), "give_or_take", s.Within.Round(time.Microsecond)}
	switch now {
	case tooFar:
		w.Log.Error("this node is not ready", append(about, "error", w.tooFar(s))...)
	case off:
		w.Log.Warn("this node's clock is off; the server's time is used instead: set the clock that is wrong (NTP)", about...)
	case right:
		w.Log.Info("this node's clock is right again", about...)
	}
	return now
}
