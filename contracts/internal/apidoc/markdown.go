package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"

	_ "embed"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// The headers of requests that no package of contracts spells for others.
const (
	headerTraceparent = "traceparent"
	traceparentAbout  = "W3C trace context of the request; its tasks join that trace. A malformed one is ignored."
	headerTimeout     = "Yard-Timeout-Ms"
	timeoutAbout      = "How long the caller waits, in ms. Default: 10000; at most 60000. What has no answer by then is answered UNAVAILABLE or UNKNOWN."
)

// errorExample is the body of an error.
const errorExample = `{"code":"INVALID_ARGUMENT","message":"is negative","path":"/tasks/3/delay_ms"}`

//go:embed page.md.tmpl
var pageTemplate string

// markdown is API.md.
func markdown(a *api) ([]byte, error) {
	page := template.New("page").Funcs(template.FuncMap{
		"subject":      subject,
		"fields":       func(name string) string { return fieldTable(a, a.messages[name]) },
		"pretty":       pretty,
		"joinCodes":    joinCodes,
		"codesOf":      a.codesOf,
		"command":      command,
		"retry":        retryAdvice,
		"trim":         func(s string) string { return strings.TrimSuffix(s, ".") },
		"anchor":       anchor,
		"enumValues":   func(name string) []enumValue { return a.enums[name].values },
		"usedInTables": usedInTables,
	})
	page, err := page.Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = page.Execute(&out, map[string]any{
		"Endpoints": a.endpoints, "Shared": a.shared, "Enums": []string{"TaskState", "TaskEventKind"}, "Codes": a.codes,
		"CodeHeader": fault.HeaderCode, "TextHeader": fault.HeaderDescription,
		"ContentType": codec.HeaderContentType, "JSON": codec.JSON, "Protobuf": codec.Protobuf,
		"Traceparent": headerTraceparent, "TraceparentAbout": traceparentAbout,
		"Timeout": headerTimeout, "TimeoutAbout": timeoutAbout, "ErrorExample": errorExample,
	})
	return out.Bytes(), err
}

// usedInTables tells whether a shared message has a section of its own.
func usedInTables(name string) bool { return name != payloadMessage }

// fieldTable is the fields of a message as a Markdown table.
func fieldTable(a *api, m *message) string {
	if len(m.fields) == 0 {
		return "No fields.\n"
	}
	var b strings.Builder
	b.WriteString("| field | JSON | meaning |\n|---|---|---|\n")
	for _, f := range m.fields {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.name, jsonType(a, f), strings.ReplaceAll(f.comment, "|", "\\|"))
	}
	return b.String()
}

// jsonType is how a field is written in JSON.
func jsonType(a *api, f field) string {
	kind := f.kind
	switch {
	case kind == mapKind:
		return "object of strings"
	case kind == payloadMessage:
		kind = "any JSON value"
	case a.messages[kind] != nil:
		kind = "[" + kind + "](#" + anchor(kind) + ")"
	case a.enums[kind] != nil:
		kind = "string, a [" + kind + "](#" + anchor(kind) + ")"
	}
	if f.repeated {
		return "list of " + kind
	}
	return kind
}

// anchor is what a heading's link is called.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(heading), ".", "")
}

func joinCodes(codes []fault.Code) string {
	var names []string
	for _, c := range codes {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

// retryAdvice is what a client does on a code.
func retryAdvice(c fault.Code) string {
	switch {
	case c == fault.Unknown:
		return "yes, unchanged; a submit only with its `request_id`"
	case c == fault.Internal:
		return "once or twice; then report it to an operator"
	case c.Retryable():
		return "yes, after `retry_after_ms`, or with growing pauses"
	}
	return "no"
}

// command is the request as the nats command sends it.
func command(e endpoint) string {
	timeout := ""
	if e.timeout != "" {
		timeout = "--timeout " + e.timeout + " "
	}
	return "nats request " + timeout + subject(e, "shop") + " '" + e.In + "'"
}

// pretty indents an example.
func pretty(s string) (string, error) {
	var b bytes.Buffer
	err := json.Indent(&b, []byte(s), "", "  ")
	return b.String(), err
}
