package scenario_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// meters reads a stack's page of numbers, as a monitoring system does.
func meters(t *testing.T, s *stack.Stack) map[string]int64 {
	t.Helper()
	values, err := s.Metrics.Values()
	testkit.NoError(t, err)
	all := map[string]int64{}
	for series, value := range values {
		name, _, _ := strings.Cut(series, "{")
		all[name] += int64(value)
	}
	return all
}

// stored is how many messages each kind of stream has ever taken.
func stored(w *world, count int, stream func(int) string) (n int64) {
	w.t.Helper()
	js := w.inside()
	for i := range count {
		last, err := natslog.LastSeq(w.soon(), js, stream(i))
		testkit.NoError(w.t, err)
		n += int64(last)
	}
	return n
}

// meter waits for a number to reach a value.
func (w *world) meter(of signals.Metric, least int64) {
	w.t.Helper()
	name := of.Prometheus()
	w.eventually(func() error {
		if got := meters(w.t, w.stack)[name]; got < least {
			return fmt.Errorf("%s is %d, want %d", name, got, least)
		}
		return nil
	})
}
