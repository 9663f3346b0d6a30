package redistable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestR56_RedisThatIsAwayIsToldOf: readiness tells that Redis is away, and that it is back.
func TestR56_RedisThatIsAwayIsToldOf(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits until Redis is missed")
	r := testkit.RunRedis(t)
	client, err := redistable.Connect(redistable.Config{Addrs: []string{r.Addr}})
	testkit.NoError(t, err)
	h := redistable.NewHealth(client)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- h.Run(ctx) }()
	await := func(wrong bool) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			if err := h.Check(); (err != nil) != wrong {
				return errors.Join(errors.New("readiness is otherwise"), err)
			}
			return nil
		})
	}
	await(false)
	r.Stop()
	await(true)
	r.Restart(t)
	await(false)
	stop()
	testkit.Check(t, errors.Join(<-done, client.Close()))
}
