package jaeger_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/jaeger"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// span is a span in the form of Jaeger.
func span(id, parent, name string, start, duration int, tags string) string {
	references := ""
	if parent != "" {
		references = `{"refType":"CHILD_OF","traceID":"ab","spanID":"` + parent + `"}`
	}
	return fmt.Sprintf(`{"traceID":"ab","spanID":%q,"operationName":%q,"references":[%s],"startTime":%d,"duration":%d,"tags":[%s],"logs":[],"processID":"p1","warnings":null}`,
		id, name, references, 1700000000000000+start, duration, tags)
}

// answering starts a Jaeger that has the trace ab.
func answering(t *testing.T, spans ...string) jaeger.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/api/traces/ab" {
			http.Error(w, `{"data":null,"errors":[{"code":404,"msg":"trace not found"}]}`, http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintf(w, `{"data":[{"traceID":"ab","spans":[%s],"processes":{"p1":{"serviceName":"yard-history","tags":[]}},"warnings":null}],"total":0,"limit":0,"offset":0,"errors":null}`, strings.Join(spans, ","))
	}))
	t.Cleanup(server.Close)
	at, err := jaeger.At(server.URL + "/base")
	testkit.NoError(t, err)
	return at
}

// The spans come as a tree: a span whose parent is elsewhere is at the top, and siblings are in the order of their start.
func TestATraceIsATree(t *testing.T) {
	at := answering(
		t,
		span("c", "a", "wait", 30, 5, `{"key":"yardmaster.partition","type":"int64","value":3}`),
		span("d", "c", "grab", 31, 1, ""),
		span("b", "a", "append", 10, 2500, `{"key":"otel.status_code","type":"string","value":"ERROR"},{"key":"otel.status_description","type":"string","value":"no disk"}`),
		span("a", "elsewhere", "submit", 0, 20, `{"key":"error","type":"bool","value":true}`),
	)
	all, err := at.Trace(t.Context(), "ab")
	testkit.NoError(t, err)
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprint(s.Depth, " ", s.Name, " ", s.Service, " ", s.Start.UnixMicro()-1700000000000000, " ", s.DurationUS, " ", s.Error, s.Attributes["yardmaster.partition"]))
	}
	testkit.Equal(t, "the tree", got, []string{
		"0 submit yard-history 0 20 error", "1 append yard-history 10 2500 no disk", "1 wait yard-history 30 5 3", "2 grab yard-history 31 1 ",
	})
}

// Spans of a broken trace come once each: those under themselves are left out, and a second span of an id has no others under it.
func TestABrokenTraceEnds(t *testing.T) {
	at := answering(t, span("a", "", "submit", 0, 1, ""), span("a", "", "submit", 1, 1, ""), span("b", "a", "append", 2, 1, ""), span("c", "d", "x", 3, 1, ""), span("d", "c", "y", 4, 1, ""), span("e", "e", "z", 5, 1, ""))
	all, err := at.Trace(t.Context(), "ab")
	testkit.NoError(t, err)
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprint(s.Depth, s.Name))
	}
	testkit.Equal(t, "the tree", got, []string{"0submit", "1append", "0submit", "0z"})
}

func TestWithoutATrace(t *testing.T) {
	for name, c := range map[string]struct {
		at   jaeger.Server
		id   string
		code fault.Code
		text string
	}{
		"it has no such trace":   {answering(t), "cd", fault.NotFound, "has no trace cd"},
		"the trace has no spans": {answering(t), "ab", fault.NotFound, "has no trace ab"},
		"it answers nonsense":    {answering(t, "nonsense"), "ab", fault.Unavailable, "does not answer with a trace"},
	} {
		_, err := c.at.Trace(t.Context(), c.id)
		if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	away, err := jaeger.At("http://ann:secret@127.0.0.1:1")
	testkit.NoError(t, err)
	if _, err := away.Trace(t.Context(), "ab"); fault.CodeOf(err) != fault.Unavailable || strings.Contains(err.Error(), "secret") {
		t.Errorf("it is away: %v", err)
	}
	for _, address := range []string{"", "127.0.0.1:16686", "ftp://host", "http://"} {
		if _, err := jaeger.At(address); err == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
}
