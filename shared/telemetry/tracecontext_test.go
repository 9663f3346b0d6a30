package telemetry_test

import (
	"bytes"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	sampledParent   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampledParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

func TestTraceparent(t *testing.T) {
	for _, c := range []struct {
		name, in, out string
		sampled       bool
	}{
		{"sampled", sampledParent, sampledParent, true},
		{"not sampled", unsampledParent, unsampledParent, false},
		{"other flags", sampledParent[:53] + "fe", sampledParent[:53] + "fe", false},
		{"later version", "01" + sampledParent[2:] + "-extra", sampledParent, true},
		{"empty", "", "", false},
		{"short", sampledParent[:54], "", false},
		{"version ff", "ff" + sampledParent[2:], "", false},
		{"version 00 with more", sampledParent + "-extra", "", false},
		{"later version glued", "01" + sampledParent[2:] + "extra", "", false},
		{"upper case", "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "", false},
		{"not hex", "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", "", false},
		{"no dashes", "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01", "", false},
		{"zero trace", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "", false},
		{"zero span", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "", false},
	} {
		b := telemetry.ParseTraceparent(c.in)
		testkit.Equal(t, c.name+": got", telemetry.FormatTraceparent(b), c.out)
		if (b == nil) != (c.out == "") {
			t.Errorf("%s: parsed as %x", c.name, b)
		}
		testkit.Equal(t, c.name+": sampled", telemetry.Sampled(b), c.sampled)
	}
}

func TestContextRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cfg trace.SpanContextConfig
		copy(cfg.TraceID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "trace"))
		copy(cfg.SpanID[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "span"))
		cfg.TraceFlags = trace.TraceFlags(rapid.Byte().Draw(t, "flags"))
		cfg.Remote = true
		sc := trace.NewSpanContext(cfg)
		b := telemetry.FromSpan(sc)
		if !sc.IsValid() {
			if b != nil {
				t.Fatalf("an invalid context became %x", b)
			}
			return
		}
		if got := telemetry.ToSpanContext(b); !got.Equal(sc) {
			t.Fatalf("got %v, want %v", got, sc)
		}
		if got := telemetry.ParseTraceparent(telemetry.FormatTraceparent(b)); !bytes.Equal(got, b) {
			t.Fatalf("got %x, want %x", got, b)
		}
		testkit.MustEqual(t, "sampled", telemetry.Sampled(b), sc.IsSampled())
	})
}

func TestNoContext(t *testing.T) {
	for _, b := range [][]byte{nil, {}, make([]byte, 24), make([]byte, 26)} {
		if telemetry.Sampled(b) || telemetry.FormatTraceparent(b) != "" || telemetry.ToSpanContext(b).IsValid() {
			t.Errorf("%d bytes pass for a context", len(b))
		}
	}
}
