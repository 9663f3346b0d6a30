// Package jaeger reads traces from the query API of Jaeger.
//
// Owns: the form of the answers, and the tree of a trace. Never does: know a task, or write a span. On failure: UNAVAILABLE
// if Jaeger does not answer, NOT_FOUND if it does not have the trace.
package jaeger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// answerBytesMax bounds what is read of a trace.
const answerBytesMax = 64 << 20

// Span is one span of a trace.
type Span struct {
	Service    string            `json:"service"`
	Name       string            `json:"name"`
	ID         string            `json:"span_id"`
	Parent     string            `json:"parent_id,omitempty"`
	Start      time.Time         `json:"start"`
	DurationUS int64             `json:"duration_us"`
	Error      string            `json:"error,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	// Depth is how many spans of the trace are above it.
	Depth int `json:"depth"`
}

// End is when the span ended.
func (s *Span) End() time.Time { return s.Start.Add(time.Duration(s.DurationUS) * time.Microsecond) }

// Server is a Jaeger.
type Server struct{ base *url.URL }

// At is the Jaeger with this address of its query API, such as http://127.0.0.1:16686.
func At(address string) (Server, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return Server{}, errors.New("want a URL such as http://127.0.0.1:16686")
	}
	return Server{base}, nil
}

// answer is what is read of the query API.
type answer struct {
	Data []struct {
		Spans []struct {
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

// Trace returns the spans of a trace, each above those that hang under it, earlier ones first.
func (s Server) Trace(ctx context.Context, id string) ([]Span, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base.JoinPath("api", "traces", id).String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL, which may have a password
		}
		return nil, fault.New(fault.Unavailable, "Jaeger at %s does not answer: %v", s.base.Redacted(), err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is given up
	if resp.StatusCode == http.StatusNotFound {
		return nil, s.absent(id)
	}
	var a answer
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	} else {
		err = json.NewDecoder(io.LimitReader(resp.Body, answerBytesMax)).Decode(&a)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "Jaeger at %s does not answer with a trace of at most %d MiB: %v", s.base.Redacted(), answerBytesMax>>20, err)
	}
	all := a.spans()
	if len(all) == 0 {
		return nil, s.absent(id)
	}
	return tree(all), nil
}

func (s Server) absent(id string) error {
	return fault.New(fault.NotFound, "Jaeger at %s has no trace %s", s.base.Redacted(), id)
}

func (a *answer) spans() (all []Span) {
	for _, t := range a.Data {
		for _, s := range t.Spans {
			out := Span{
				Service: t.Processes[s.ProcessID].ServiceName, Name: s.OperationName, ID: s.SpanID,
				Start: time.UnixMicro(s.StartTime), DurationUS: s.Duration, Attributes: make(map[string]string, len(s.Tags)),
			}
			for _, r := range s.References {
				if r.RefType == "CHILD_OF" {
					out.Parent = r.SpanID
				}
			}
			for _, tag := range s.Tags {
				if n, ok := tag.Value.(float64); ok && n == float64(int64(n)) {
					tag.Value = int64(n)
				}
				out.Attributes[tag.Key] = fmt.Sprint(tag.Value)
			}
			if out.Attributes["otel.status_code"] == "ERROR" || out.Attributes["error"] == "true" {
				out.Error = "error"
				if why := out.Attributes["otel.status_description"]; why != "" {
					out.Error = why
				}
			}
			all = append(all, out)
		}
	}
	return all
}

// tree orders spans, and sets their depths. A span whose parent is not in the trace has depth 0.
func tree(all []Span) []Span {
	slices.SortStableFunc(all, func(a, b Span) int {
		if by := a.Start.Compare(b.Start); by != 0 {
			return by
		}
		return strings.Compare(a.ID, b.ID)
	})
	byID, below := map[string]int{}, map[string][]int{}
	for i, s := range all {
		byID[s.ID] = i
	}
	var roots []int
	for i, s := range all {
		if _, known := byID[s.Parent]; known && s.Parent != s.ID {
			below[s.Parent] = append(below[s.Parent], i)
		} else {
			roots = append(roots, i)
		}
	}
	ordered := make([]Span, 0, len(all))
	var add func(at []int, depth int)
	add = func(at []int, depth int) {
		for _, i := range at {
			s := all[i]
			s.Depth = depth
			ordered = append(ordered, s)
			under := below[s.ID]
			delete(below, s.ID) // two spans may have one id
			add(under, depth+1)
		}
	}
	add(roots, 0)
	return ordered
}
