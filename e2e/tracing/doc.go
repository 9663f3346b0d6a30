// Package tracing follows tasks through the whole system by their traces: one trace
// per task, from the client's span to the answer of its completion.
//
// Owns: names, parents and attributes of the spans that the services and the SDK
// send, as a collector receives them. The collector is one inside the test, and
// where YARD_JAEGER_URL names the query address of a Jaeger, such as
// http://127.0.0.1:16686, the same is asked of that one; it takes spans where
// OTEL_EXPORTER_OTLP_ENDPOINT says, by default on port 4318 of the same host.
//
// Never does: test the exporter, which is shared/telemetry's.
//
// On failure: the spans that did come are listed.
package tracing
