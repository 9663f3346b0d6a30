package telemetry

import (
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// A trace context travels as 25 bytes: trace id (16), span id (8), flags (1).
// This is W3C traceparent without its text, 30 bytes shorter in each record of a
// batch. No bytes mean no context. Tracestate is not carried.
const (
	traceIDLen      = 16
	spanIDLen       = 8
	contextLen      = traceIDLen + spanIDLen + 1
	traceparentLen  = 55 // version 00: "00-" 32 "-" 16 "-" 2
	flagSampledMask = 0x01
)

// ParseTraceparent returns the compact form of a W3C traceparent header, or nil
// if it is not a valid one. Versions after 00 are read by their first four fields,
// as the standard asks.
func ParseTraceparent(s string) []byte {
	if len(s) < traceparentLen || s[2] != '-' || s[35] != '-' || s[52] != '-' || strings.ContainsAny(s[:traceparentLen], "ABCDEF") {
		return nil
	}
	version, traceID, spanID, flags := s[:2], s[3:35], s[36:52], s[53:55]
	if len(s) > traceparentLen && (version == "00" || s[traceparentLen] != '-') {
		return nil
	}
	b, err := hex.DecodeString(version + traceID + spanID + flags)
	if err != nil || version == "ff" || !ToSpanContext(b[1:]).IsValid() {
		return nil
	}
	return b[1:]
}

// FormatTraceparent returns the W3C header of a compact context, or "" if b is
// none.
func FormatTraceparent(b []byte) string {
	if len(b) != contextLen {
		return ""
	}
	text := hex.EncodeToString(b)
	traceID, spanID, flags := text[:2*traceIDLen], text[2*traceIDLen:2*contextLen-2], text[2*contextLen-2:]
	return "00-" + traceID + "-" + spanID + "-" + flags
}

// Sampled tells whether b is a context whose trace is being recorded. It costs
// nothing and is meant to be asked per record.
func Sampled(b []byte) bool {
	return len(b) == contextLen && b[contextLen-1]&flagSampledMask != 0
}

// FromSpan returns the compact form of a span's context, or nil if it is not
// valid.
func FromSpan(sc trace.SpanContext) []byte {
	if !sc.IsValid() {
		return nil
	}
	traceID, spanID := sc.TraceID(), sc.SpanID()
	b := make([]byte, 0, contextLen)
	b = append(b, traceID[:]...)
	b = append(b, spanID[:]...)
	return append(b, byte(sc.TraceFlags()))
}

// ToSpanContext returns b as the context of a span elsewhere; it is not valid if
// b is none.
func ToSpanContext(b []byte) trace.SpanContext {
	if len(b) != contextLen {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    trace.TraceID(b[:traceIDLen]),
		SpanID:     trace.SpanID(b[traceIDLen : traceIDLen+spanIDLen]),
		TraceFlags: trace.TraceFlags(b[contextLen-1]),
		Remote:     true,
	})
}
