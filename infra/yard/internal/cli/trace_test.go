package cli_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// TestAProgramIsPartOfTheTrace: it gets the context of its span, which hangs under the submit of its task, and the log names both.
func TestAProgramIsPartOfTheTrace(t *testing.T) {
	sink := signalkit.RunTraceSink(t)
	for _, setting := range append(sink.Env(), "OTEL_BSP_SCHEDULE_DELAY=50", "TRACEPARENT=of-the-worker") {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	s := newShell(t)
	stop := s.work("--exec", `echo "$TRACEPARENT"`)
	id := s.yard("task", "submit", "-t", "mail", "greet")
	traceparent := strings.Split(strings.Trim(string(s.await(id, inState("completed")).Result), `"`), "-")
	if len(traceparent) != 4 {
		t.Fatalf("the program had TRACEPARENT=%v", traceparent)
	}
	var run, submit signalkit.Span
	testkit.Eventually(t, within, func() error {
		for _, span := range sink.Spans() {
			switch {
			case span.TraceID != traceparent[1]:
			case span.Name == "run":
				run = span
			case span.Name == "submit":
				submit = span
			}
		}
		if run.SpanID == "" || submit.SpanID == "" {
			return fmt.Errorf("the trace has no run or no submit: %q, %q", run.SpanID, submit.SpanID)
		}
		return nil
	})
	testkit.Equal(t, "the span of the program", run.SpanID, traceparent[2])
	testkit.Equal(t, "its parent", run.ParentID, submit.SpanID)
	testkit.Equal(t, "its service", run.Service, "yard-worker")
	testkit.Equal(t, "its task", run.Attrs["yardmaster.task_id"], id)
	t.Setenv("YARD_JAEGER", jaegerOf(t, sink))
	testkit.Eventually(t, within, func() error { // history's spans may come last
		drawn := s.yard("task", "trace", id)
		if !regexp.MustCompile(`(?m)^\S+ +\S+ +yard-worker +run +·*█+·* +-$`).MatchString(drawn) || !strings.Contains(drawn, "yard-history") {
			return fmt.Errorf("the trace is drawn as\n%s", drawn)
		}
		t.Log(drawn)
		return nil
	})
	if _, log := stop(); !strings.Contains(log, "task_id="+id) || !strings.Contains(log, "trace_id="+run.TraceID) {
		t.Errorf("the log does not name the task and its trace:\n%s", log)
	}
}

// jaegerOf starts a query API, in the form of Jaeger, of the spans that a sink has, and returns its address.
func jaegerOf(t *testing.T, sink *signalkit.TraceSink) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		type object map[string]any
		var spans []object
		processes := object{}
		for _, s := range sink.Spans() {
			if "/api/traces/"+s.TraceID != r.URL.Path {
				continue
			}
			tags := []object{}
			for key, value := range s.Attrs {
				tags = append(tags, object{"key": key, "type": "string", "value": value})
			}
			processes[s.Service] = object{"serviceName": s.Service}
			spans = append(spans, object{
				"traceID": s.TraceID, "spanID": s.SpanID, "operationName": s.Name, "processID": s.Service, "tags": tags,
				"startTime": s.Start.UnixMicro(), "duration": s.End.Sub(s.Start).Microseconds(),
				"references": []object{{"refType": "CHILD_OF", "traceID": s.TraceID, "spanID": s.ParentID}},
			})
		}
		_ = json.NewEncoder(w).Encode(object{"data": []object{{"spans": spans, "processes": processes}}}) // a lost answer shows at the other end
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// recordedTrace is an answer of Jaeger: a submit of two tasks, the second of which failed once.
const recordedTrace = `{"data":[{"traceID":"TRACE","spans":[
{"traceID":"TRACE","spanID":"a","operationName":"submit","references":[],"startTime":1700000000000000,"duration":10000,"processID":"p1",
 "tags":[{"key":"yardmaster.task_id","type":"string","value":"another"},{"key":"span.kind","type":"string","value":"server"}]},
{"traceID":"TRACE","spanID":"b","operationName":"wait","references":[{"refType":"CHILD_OF","traceID":"TRACE","spanID":"a"}],"startTime":1700000000010000,"duration":20000,"processID":"p2",
 "tags":[{"key":"yardmaster.task_id","type":"string","value":"another"}]},
{"traceID":"TRACE","spanID":"c","operationName":"match","references":[{"refType":"CHILD_OF","traceID":"TRACE","spanID":"a"}],"startTime":1700000000010000,"duration":30000,"processID":"p2",
 "tags":[{"key":"yardmaster.task_id","type":"string","value":"TASK"},{"key":"yardmaster.reason","type":"string","value":"no worker 30ms"}]},
{"traceID":"TRACE","spanID":"d","operationName":"fail","references":[{"refType":"CHILD_OF","traceID":"TRACE","spanID":"a"}],"startTime":1700000000040000,"duration":40,"processID":"p1",
 "tags":[{"key":"yardmaster.task_id","type":"string","value":"TASK"},{"key":"otel.status_code","type":"string","value":"ERROR"},{"key":"otel.status_description","type":"string","value":"the attempt failed: no\u001b[31mstock"}]}],
"processes":{"p1":{"serviceName":"yard-frontend"},"p2":{"serviceName":"yard-matching"}},"warnings":null}],"total":0,"limit":0,"offset":0,"errors":null}`

// TestATraceIsDrawn: the spans of the task and those above them, from a Jaeger that has the trace.
func TestATraceIsDrawn(t *testing.T) {
	s := newShell(t)
	id := s.yard("task", "submit", "-t", "mail", "greet")
	binary, err := ids.ParseTaskID(id)
	testkit.NoError(t, err)
	trace := hex.EncodeToString(binary[:])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/traces/"+trace {
			http.Error(w, `{"errors":[{"code":404,"msg":"trace not found"}]}`, http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprint(w, strings.NewReplacer("TRACE", trace, "TASK", id).Replace(recordedTrace))
	}))
	defer server.Close()

	t.Setenv("YARD_JAEGER", server.URL)
	drawn := strings.Split(s.yard("task", "trace", id), "\n")
	testkit.MustEqual(t, "lines", len(drawn), 10)
	testkit.Equal(t, "the trace", drawn[1], "trace   "+trace)
	if !regexp.MustCompile(`^began   2023-11-1\d \d\d:13:20\.000[+-]\d\d:\d\d$`).MatchString(drawn[2]) {
		t.Errorf("it began %q", drawn[2])
	}
	testkit.Equal(t, "the rest", drawn[3:], []string{
		"lasted  40.04ms",
		"spans   3, and 1 of other tasks: see --all",
		"",
		"OFFSET  DURATION  SERVICE        SPAN     TIMELINE                                  REASON",
		"0s      10ms      yard-frontend  submit   █████████·······························  -",
		"10ms    30ms      yard-matching    match  ·········██████████████████████████████·  no worker 30ms",
		"40ms    40µs      yard-frontend    fail   ·······································█  error: the attempt failed: no\ufffd[31mstock",
	})
	if all := s.yard("task", "trace", id, "--all"); strings.Count(all, "yard-matching") != 2 {
		t.Errorf("--all leaves something out:\n%s", all)
	}
	if text := s.yard("--json", "task", "trace", id); !strings.Contains(text, `"trace_id":"`+trace+`"`) || strings.Count(text, `"span_id"`) != 3 {
		t.Errorf("in JSON:\n%s", text)
	}

	other := s.yard("task", "submit", "-t", "mail", "greet")
	for want, args := range map[string][]string{
		"NOT_FOUND: Jaeger at " + server.URL + " has no trace ":               {other},
		"UNAVAILABLE: Jaeger at http://127.0.0.1:1 does not answer":           {id, "--jaeger", "http://127.0.0.1:1"},
		"--jaeger localhost:16686: want a URL such as http://127.0.0.1:16686": {id, "--jaeger", "localhost:16686"},
		"NOT_FOUND: there is no task 06gzvkw0fc003ewx4bxvk83r20":              {"06gzvkw0fc003ewx4bxvk83r20"},
	} {
		_, errs, code := run(t, "", append([]string{"--url", s.url, "-d", "shop", "task", "trace"}, args...)...)
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
}
