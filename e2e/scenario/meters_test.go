package scenario_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// meters reads a stack's page of numbers, as a monitoring system does.
func meters(t *testing.T, s *stack.Stack) map[string]int64 {
	t.Helper()
	var page bytes.Buffer
	if err := s.Metrics.WritePrometheus(&page); err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for line := range strings.Lines(page.String()) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all[name] += int64(n)
	}
	return all
}

// stored is how many messages each kind of stream has ever taken.
func stored(w *world, count int, stream func(int) string) (n int64) {
	w.t.Helper()
	js := w.inside()
	for i := range count {
		last, err := natslog.LastSeq(w.soon(), js, stream(i))
		if err != nil {
			w.t.Fatal(err)
		}
		n += int64(last)
	}
	return n
}

// meter waits for a number to reach a value.
func (w *world) meter(name string, least int64) {
	w.t.Helper()
	w.eventually(func() error {
		all := meters(w.t, w.stack)
		if _, known := all[name]; !known {
			w.t.Fatalf("there is no meter %s", name)
		}
		if all[name] < least {
			return fmt.Errorf("%s is %d, want %d", name, all[name], least)
		}
		return nil
	})
}
