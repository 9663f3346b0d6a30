// Package signals names what the services report about themselves: every metric, and
// every key that log lines, spans and metrics share.
//
// Owns: the names, units, attributes and meaning of metrics (METRICS.md is made from
// them), and the one list of keys.
//
// Never does: count, log or trace. shared/telemetry does, and the SDK.
//
// On failure: nothing here can fail; a metric that is made with the wrong number of
// attributes is a mistake in the program, and shared/telemetry panics.
//
// Names are a contract with dashboards and alerts: one that is renamed is named in the
// release's notes.
package signals

//go:generate go run ../internal/metricsdoc ../METRICS.md
