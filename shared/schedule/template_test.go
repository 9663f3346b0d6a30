package schedule_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/schedule"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var sizes = schedule.Sizes{Payload: 1000, HeaderValue: 100, Headers: 200}

// wantInvalid checks the path of an error, and that its message has a text. Without a text there must be no error.
func wantInvalid(t *testing.T, err error, path, text string) {
	t.Helper()
	if text == "" {
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return
	}
	var refusal *fault.Error
	if !errors.As(err, &refusal) || refusal.Code != fault.InvalidArgument || refusal.Path != path || !strings.Contains(refusal.Message, text) {
		t.Fatalf("got %v, want a refusal of %q with the text %q", err, path, text)
	}
}

func TestExpand(t *testing.T) {
	times := parse(t, &yardv1.Schedule{Cron: []string{"@daily"}, TimeZone: "Europe/Berlin"})
	at := instantOf(t, "2026-12-31T23:30:00.25Z")
	payload := []byte(`{"at":"{{run_at}}","ms":"{{run_at_ms}}","file":"{{schedule}}-{{run_date}}.csv","as it is":"\u007b{run_at}}"}`)
	headers := []*logv1.Header{{Name: "day", Value: "{{run_date}}"}, {Name: "other", Value: "x"}}
	record := &logv1.Record{Payload: payload, Headers: headers}
	times.Expand(record, "nightly", at)

	var got map[string]string
	if err := json.Unmarshal(record.Payload, &got); err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "payload", got, map[string]string{
		"at": "2027-01-01T00:30:00.25+01:00", "ms": "1798759800250", "file": "nightly-2027-01-01.csv", "as it is": "{{run_at}}",
	})
	testkit.Equal(t, "first header", record.Headers[0].GetValue(), "2027-01-01")
	testkit.Equal(t, "second header", record.Headers[1].GetValue(), "x")
	if !strings.Contains(string(payload), "{{run_at}}") || headers[0].GetValue() != "{{run_date}}" {
		t.Fatal("the template itself was changed")
	}

	binary := &logv1.Record{Payload: []byte("{{run_at}}"), PayloadEncoding: int32(yardv1.Encoding_ENCODING_BINARY)}
	times.Expand(binary, "nightly", at)
	testkit.Equal(t, "binary payload", string(binary.Payload), "{{run_at}}")
}

func TestCheckTask(t *testing.T) {
	payload := func(text string) *yardv1.NewTask {
		return &yardv1.NewTask{Payload: &yardv1.Payload{Data: []byte(text)}}
	}
	header := func(value string) *yardv1.NewTask {
		return &yardv1.NewTask{Headers: map[string]string{"x": value}}
	}
	for _, c := range []struct {
		name       string
		task       *yardv1.NewTask
		path, text string
	}{
		{"no task", nil, "/task", "missing"},
		{"no payload", &yardv1.NewTask{}, "", ""},
		{"delay", &yardv1.NewTask{DelayMs: 1}, "/task/delay_ms", "the schedule says"},
		{"time", &yardv1.NewTask{RunAtMs: 1}, "/task/run_at_ms", "the schedule says"},
		{"all placeholders", payload(`"{{run_at}}{{run_at_ms}}{{run_date}}{{schedule}}"`), "", ""},
		{"a typo", payload(`{"a":{"b":"{{runat}}"}}`), "/task/payload", `"{{runat}}`},
		{"white space", payload(`"{{ run_at }}"`), "/task/payload", "the placeholders are"},
		{"not closed", payload(`"{{run_at"`), "/task/payload", "{{run_at"},
		{"three brackets", payload(`"{{{run_at}}}"`), "/task/payload", "{{{run_at"},
		{"closing brackets", payload(`{"a":{"b":{}}}`), "", ""},
		{"written otherwise", payload(`"\u007b{x}}"`), "", ""},
		{"binary", &yardv1.NewTask{Payload: &yardv1.Payload{Data: []byte("{{x}}"), Encoding: yardv1.Encoding_ENCODING_BINARY}}, "", ""},
		{"a header", header("{{run_date}}"), "", ""},
		{"a typo in a header", header("{{date}}"), "/task/headers/x", "{{date}}"},
		{"a payload that grows", payload(`"` + strings.Repeat("{{run_at}}", 40) + `"`), "/task/payload", "is 1162 bytes long"},
		{"a payload that shrinks", payload(`"` + strings.Repeat("{{run_at_ms}}{{schedule}}", 45) + `"`), "", ""},
		{"a header that grows", header(strings.Repeat("{{run_at}}", 4)), "/task/headers/x", "is 116 bytes long"},
		{"headers together", &yardv1.NewTask{Headers: map[string]string{"a": strings.Repeat("{{run_at}}", 3), "b": strings.Repeat("{{run_at}}", 3), "c": strings.Repeat("{{run_at}}", 1)}}, "/task/headers", "takes 206 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantInvalid(t, schedule.CheckTask(&yardv1.Schedule{Name: "nightly", Task: c.task}, sizes), c.path, c.text)
		})
	}
	wantInvalid(t, schedule.CheckTask(&yardv1.Schedule{Name: `a"b`, Task: &yardv1.NewTask{}}, sizes), "/name", "only A-Z")
}

// The longest texts that CheckTask counts with are as long as any that Expand writes.
func TestTheLongestTexts(t *testing.T) {
	const text = "{{run_at}} {{run_at_ms}} {{run_date}} {{schedule}}"
	times := parse(t, &yardv1.Schedule{Cron: []string{"@daily"}, TimeZone: "Australia/Lord_Howe"})
	record := &logv1.Record{Payload: []byte(text)}
	times.Expand(record, "nightly", instantOf(t, "9999-12-30T23:59:59.999Z"))

	task := &yardv1.NewTask{Payload: &yardv1.Payload{Data: []byte(text)}}
	s := &yardv1.Schedule{Name: "nightly", Task: task}
	wantInvalid(t, schedule.CheckTask(s, schedule.Sizes{Payload: len(record.Payload)}), "", "")
	wantInvalid(t, schedule.CheckTask(s, schedule.Sizes{Payload: len(record.Payload) - 1}), "/task/payload", "bytes long")
}
