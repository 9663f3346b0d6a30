package signalkit

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Metrics returns metrics of a test's own.
func Metrics(tb testing.TB) *telemetry.Metrics {
	tb.Helper()
	m, err := telemetry.NewMetrics()
	if err != nil {
		tb.Fatal(err)
	}
	return m
}
