package signalkit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// TraceSink is an OTLP collector inside the test process: it keeps every span it
// is sent, over gRPC or HTTP, both on one port.
type TraceSink struct {
	// Endpoint is a value for OTEL_EXPORTER_OTLP_ENDPOINT, with either protocol.
	Endpoint string

	mu    sync.Mutex
	spans []Span
}

// Span is one received span in a form that is easy to compare.
type Span struct {
	Service  string // resource attribute service.name
	Instance string // resource attribute service.instance.id
	Name     string
	TraceID  string // 32 hex digits
	SpanID   string // 16 hex digits
	ParentID string // 16 hex digits, or empty for a root
	Kind     tracepb.Span_SpanKind
	Start    time.Time
	End      time.Time
	// Attrs are the span's attributes as text: numbers in decimal, booleans as
	// true and false.
	Attrs map[string]string
	// Raw is the span as it came.
	Raw *tracepb.Span
}

// RunTraceSink starts a sink on a free loopback port and stops it when the test
// ends.
func RunTraceSink(tb testing.TB) *TraceSink {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen for traces: %v", err)
	}
	sink := &TraceSink{Endpoint: "http://" + l.Addr().String()}
	rpc := grpc.NewServer()
	collector.RegisterTraceServiceServer(rpc, traceService{sink: sink})
	srv := &http.Server{Handler: sink.handler(rpc), Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	tb.Cleanup(func() {
		rpc.Stop()
		_ = srv.Close() // what it could say is said by Serve below
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			tb.Errorf("trace sink: %v", err)
		}
	})
	return sink
}

// Env returns the environment variables, as NAME=value, that make a process send
// its spans here.
func (s *TraceSink) Env() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.Endpoint,
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
	}
}

// handler takes gRPC calls, which are HTTP/2, and plain posts of OTLP over HTTP.
func (s *TraceSink) handler(rpc http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		if err := s.takePost(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer is a whole one
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") == "application/grpc" {
			rpc.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *TraceSink) takePost(body io.Reader) error {
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var req collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &req); err != nil {
		return err
	}
	s.keep(&req)
	return nil
}

// Spans returns the spans received until now, in order of arrival.
func (s *TraceSink) Spans() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Span(nil), s.spans...)
}

// Reset forgets the spans received until now.
func (s *TraceSink) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = nil
}

type traceService struct {
	collector.UnimplementedTraceServiceServer
	sink *TraceSink
}

// Export keeps the spans of one request.
func (t traceService) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	t.sink.keep(req)
	return &collector.ExportTraceServiceResponse{}, nil
}

func (s *TraceSink) keep(req *collector.ExportTraceServiceRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range req.GetResourceSpans() {
		of := textAttrs(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			for _, raw := range scope.GetSpans() {
				s.spans = append(s.spans, readSpan(of, raw))
			}
		}
	}
}

func readSpan(resource map[string]string, raw *tracepb.Span) Span {
	return Span{
		Service:  resource["service.name"],
		Instance: resource["service.instance.id"],
		Name:     raw.GetName(),
		TraceID:  hex.EncodeToString(raw.GetTraceId()),
		SpanID:   hex.EncodeToString(raw.GetSpanId()),
		ParentID: hex.EncodeToString(raw.GetParentSpanId()),
		Kind:     raw.GetKind(),
		Start:    time.Unix(0, int64(raw.GetStartTimeUnixNano())),
		End:      time.Unix(0, int64(raw.GetEndTimeUnixNano())),
		Attrs:    textAttrs(raw.GetAttributes()),
		Raw:      raw,
	}
}

func textAttrs(attrs []*commonpb.KeyValue) map[string]string {
	text := make(map[string]string, len(attrs))
	for _, kv := range attrs {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			text[kv.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			text[kv.GetKey()] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_BoolValue:
			text[kv.GetKey()] = fmt.Sprint(v.BoolValue)
		case *commonpb.AnyValue_DoubleValue:
			text[kv.GetKey()] = fmt.Sprint(v.DoubleValue)
		default:
			text[kv.GetKey()] = kv.GetValue().String()
		}
	}
	return text
}
