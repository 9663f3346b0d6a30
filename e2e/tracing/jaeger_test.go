package tracing_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
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

func (j *jaeger) trace(id string) ([]testkit.Span, error) {
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
func (a *answer) spans() (all []testkit.Span) {
	for _, t := range a.Data {
		for _, s := range t.Spans {
			start := time.UnixMicro(s.StartTime)
			out := testkit.Span{
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
			if text, failed := out.Attrs["otel.status_description"]; failed {
				out.Raw.Status = &tracepb.Status{Message: text}
			}
			all = append(all, out)
		}
	}
	return all
}
