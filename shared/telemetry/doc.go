// Package telemetry is what a process tells about itself: a logger, metrics,
// health and traces. All four are values that are passed where they are needed.
//
// Owns: the format of log lines, the instruments of metrics and their page, the health page, the
// export of spans, and the compact form in which a trace context travels inside
// batches of records.
//
// Never does: name what is measured (contracts/signals), keep a global logger, registry or tracer, or make the caller pay for
// tracing that is off. Nothing here is needed for correctness.
//
// On failure: a wrong setting is an error at the start. Later, a collector that
// cannot be reached costs spans and nothing else; the hot path never waits for it.
package telemetry
