package tracing_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// jaegerEnv names the query address of a Jaeger.
const jaegerEnv = "YARD_JAEGER_URL"

// jaeger is a real collector, asked by the API of its web page.
type jaeger struct {
	query, otlp string
	http        *http.Client
}

func newJaeger(t *testing.T, query string) *jaeger {
	t.Helper()
	u, err := url.Parse(query)
	if err != nil {
		t.Fatalf("%s: %v", jaegerEnv, err)
	}
	j := &jaeger{query: query, otlp: os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), http: &http.Client{Timeout: within}}
	if j.otlp == "" {
		j.otlp = "http://" + u.Hostname() + ":4318"
	}
	t.Cleanup(j.http.CloseIdleConnections)
	return j
}

func (j *jaeger) env() []string { return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + j.otlp} }

// answer is what is read of a trace.
type answer struct {
	Data []struct {
		Spans []struct {
			TraceID       string `json:"traceID"`
			SpanID        string `json:"spanID"`
			OperationName string `json:"operationName"`
			ProcessID     string `json:"processID"`
			StartTime     int64  `json:"startTime"` // µs
			Duration      int64  `json:"duration"`  // µs
			References    []struct {
				RefType string `json:"refType"`
				SpanID  string `json:"spanID"`
			} `json:"references"`
			Tags []struct {
				Key   string `json:"key"`
				Value any    `json:"value"`
			} `json:"tags"`
		} `json:"spans"`
		Processes map[string]struct {
			ServiceName string `json:"serviceName"`
		} `json:"processes"`
	} `json:"data"`
}

func (j *jaeger) trace(id string) ([]signalkit.Span, error) {
	resp, err := j.http.Get(j.query + "/api/traces/" + id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or given up
	if resp.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("jaeger: %s, %w", resp.Status, err)
	}
	return a.spans(), nil
}

// spans puts the answer into the sink's form.
func (a *answer) spans() (all []signalkit.Span) {
	for _, t := range a.Data {
		for _, s := range t.Spans {
			start := time.UnixMicro(s.StartTime)
			out := signalkit.Span{
				Service: t.Processes[s.ProcessID].ServiceName, Name: s.OperationName, TraceID: s.TraceID, SpanID: s.SpanID,
				Start: start, End: start.Add(time.Duration(s.Duration) * time.Microsecond),
				Attrs: map[string]string{}, Raw: &tracepb.Span{},
			}
			for _, r := range s.References {
				if r.RefType == "CHILD_OF" {
					out.ParentID = r.SpanID
				}
			}
			for _, tag := range s.Tags {
				out.Attrs[tag.Key] = fmt.Sprint(tag.Value)
			}
			if out.Attrs["otel.status_code"] == "ERROR" {
				out.Raw.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: out.Attrs["otel.status_description"]}
			}
			all = append(all, out)
		}
	}
	return all
}

// TestJaegerIsUnderstood reads an answer in the form that Jaeger documents, so that
// the adapter is tried where there is no Jaeger.
func TestJaegerIsUnderstood(t *testing.T) {
	const text = `{"data":[{"traceID":"4bf92f3577b34da6a3ce929d0e0e4736","spans":[{"traceID":"4bf92f3577b34da6a3ce929d0e0e4736",
		"spanID":"00f067aa0ba902b7","operationName":"wait","references":[{"refType":"CHILD_OF","traceID":"4bf92f3577b34da6a3ce929d0e0e4736",
		"spanID":"b7ad6b7169203331"}],"startTime":1700000000000001,"duration":2500,"tags":[{"key":"yardmaster.partition","type":"int64","value":3},
		{"key":"yardmaster.domain","type":"string","value":"shop"}],"logs":[],"processID":"p1","warnings":null}],
		"processes":{"p1":{"serviceName":"yard-history","tags":[]}},"warnings":null}],"total":0,"limit":0,"offset":0,"errors":null}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/traces/4bf92f3577b34da6a3ce929d0e0e4736" {
			w.WriteHeader(http.StatusNotFound) // as Jaeger does
			return
		}
		_, _ = w.Write([]byte(text)) // a lost answer shows at the other end
	}))
	defer server.Close()
	j := newJaeger(t, server.URL)
	if none, err := j.trace("00000000000000000000000000000001"); len(none) > 0 || err != nil {
		t.Errorf("got %v, %v for a trace that is not there", none, err)
	}
	all, err := j.trace("4bf92f3577b34da6a3ce929d0e0e4736")
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	s := all[0]
	equal(t, "name", s.Name, "wait")
	equal(t, "service", s.Service, "yard-history")
	equal(t, "span", s.SpanID, "00f067aa0ba902b7")
	equal(t, "parent", s.ParentID, "b7ad6b7169203331")
	equal(t, "start", s.Start.UnixMicro(), 1700000000000001)
	equal(t, "duration", s.End.Sub(s.Start), 2500*time.Microsecond)
	equal(t, "partition", s.Attrs["yardmaster.partition"], "3")
	equal(t, "domain", s.Attrs["yardmaster.domain"], "shop")
}
