package yard

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// The log and the error of an attempt that had no more time say so, and how to give it more, also if its handler does not care.
func TestAnAttemptThatTakesTooLongSaysHowToGiveItMore(t *testing.T) {
	for _, want := range []error{errors.New("not done"), nil} {
		inBubble(t, func(t *testing.T) {
			var log bytes.Buffer
			b := newBench(WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			ended := make(chan struct{})
			b.worker.HandleFunc("x", func(ctx context.Context, _ *Attempt) (Payload, error) {
				defer close(ended)
				<-ctx.Done()
				return Payload{}, want
			})
			b.start()
			task := granted("x", 1)
			task[0].TimeoutMs = (5 * time.Minute).Milliseconds()
			b.engine.push(task...)
			<-ended
			b.finish(t)
			if said := log.String(); !strings.Contains(said, "raise StartToClose") || !strings.Contains(said, "duration=5m0s") {
				t.Errorf("with %v: %s", want, said)
			}
		})
	}
	s := &session{log: slog.New(slog.DiscardHandler)}
	cause := errors.New("not done")
	err := s.tookTooLong(&activeAttempt{}, 5*time.Minute, cause)
	if !errors.Is(err, cause) || ErrorType(err) != ErrorType(cause) || !strings.Contains(err.Error(), "5m0s: raise StartToClose") {
		t.Errorf("%v, of type %s", err, ErrorType(err))
	}
}
