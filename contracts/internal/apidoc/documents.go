package main

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/internal/columns"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

//go:embed *.tmpl
var templates embed.FS

const (
	// errorExample is the body of an error.
	errorExample = `{"code":"INVALID_ARGUMENT","message":"is negative","path":"/tasks/3/delay_ms"}`
	// eventsExample is a message of events.
	eventsExample = `{"kind":"dead","tasklist":"mail","tasks":[{"task_id":"06dabzyw00004emhrks7qr2x30","type":"email.send","state":"dead","at_ms":1764300000000,"grants":5,"error_type":"network"}]}`
	// payloadMessage is written as any JSON value; payloadEncoding is not seen in JSON.
	payloadMessage, payloadEncoding = "Payload", "Encoding"
	// These headers no package of contracts spells for others.
	traceparentAbout = "W3C trace context of the request; its tasks join that trace. A malformed one is ignored."
	timeoutAbout     = "How long the caller waits, in ms. Default: 10000; at most 60000. A request without an answer by then is answered UNAVAILABLE or UNKNOWN."
)

// render executes one template.
func (a *api) render(name string) ([]byte, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"json": toJSON, "pretty": pretty, "wrap": columns.Wrap, "jsonType": a.jsonType, "tsType": a.tsType, "anchor": anchor, "retry": retryAdvice,
		"codesOf": a.codesOf, "about": a.about, "strict": a.strict, "alwaysThere": alwaysThere, "join": strings.Join, "escape": func(s string) string { return strings.ReplaceAll(s, "*/", "*\\/") },
		"command": command, "link": link, "noteText": noteText,
		"isMessage": func(kind string) bool { return a.messages[kind] != nil }, "enumOf": func(kind string) *enum { return a.enums[kind] },
	}).ParseFS(templates, "*.tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.ExecuteTemplate(&out, name, map[string]any{
		"EventKinds": topology.EventKinds(), "EventNames": topology.EventNames(),
		"Endpoints": a.endpoints, "Addresses": addresses(a.endpoints), "Messages": a.messages, "Ordered": a.inOrder(), "Shared": a.shared,
		"Enums": a.enums, "PageEnums": []string{"TaskState", "TaskEventKind"}, "EnumNames": slices.DeleteFunc(slices.Sorted(maps.Keys(a.enums)), func(name string) bool { return name == payloadEncoding }),
		"Codes": a.codes, "CodeNames": a.codeNames(), "Examples": a.examples(), "TraceparentAbout": traceparentAbout, "TimeoutAbout": timeoutAbout, "CodeHeader": fault.HeaderCode, "TextHeader": fault.HeaderDescription, "Package": publicPackage,
		"ContentType": codec.HeaderContentType, "JSON": string(codec.JSON), "Protobuf": string(codec.Protobuf), "ErrorExample": errorExample, "EventsExample": eventsExample,
	})
	return out.Bytes(), err
}

// asyncAPI is the AsyncAPI 3.0 document, written from the server's side: it receives requests and replies.
func (a *api) asyncAPI() ([]byte, error) {
	raw, err := a.render("asyncapi.json.tmpl")
	if err != nil {
		return nil, err
	}
	text, err := pretty(string(raw))
	return []byte(text + "\n"), err
}

// example is a message with one, and the schema of its headers.
type example struct {
	Message          *message
	Example, Headers string
}

// examples has each request and response once: several endpoints share a response.
func (a *api) examples() (all []example) {
	add := func(name, text, headers string) {
		if !slices.ContainsFunc(all, func(e example) bool { return e.Message.Name == name }) {
			all = append(all, example{a.messages[name], text, headers})
		}
	}
	for _, e := range a.endpoints {
		add(e.Request, e.In, "requestHeaders")
		add(e.Response, e.Out, "replyHeaders")
	}
	return all
}

func (a *api) codeNames() (names []string) {
	for _, c := range a.codes {
		names = append(names, string(c.Code))
	}
	return names
}

// about is what the AsyncAPI document says of an endpoint.
func (a *api) about(e endpoint) string {
	var text strings.Builder
	for _, n := range e.Notes {
		text.WriteString(n.Text + "\n\n")
	}
	return text.String() + "Error codes: " + a.codesOf(e) + "."
}

// inOrder are all messages that are seen in JSON: those of the endpoints in their order, then those that they share.
func (a *api) inOrder() (all []*message) {
	add := func(m *message) {
		if m.Name != payloadMessage && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	for _, e := range a.endpoints {
		add(a.messages[e.Request])
		add(a.messages[e.Response])
	}
	for _, m := range a.shared {
		add(m)
	}
	return all
}

// alwaysThere: the field is in every request that is taken, or in every answer. The subject of a poll may name the tasklist instead.
func alwaysThere(m *message, f field) bool {
	return f.Always || f.Rules.Required && (m.Name != "PollRequest" || f.Name != "tasklist")
}

// strict reports whether unknown fields of a message are refused: those of requests are, and responses may gain fields.
func (a *api) strict(name string) bool {
	inRequest, inResponse := false, false
	for _, e := range a.endpoints {
		inRequest = inRequest || a.holds(e.Request, name)
		inResponse = inResponse || a.holds(e.Response, name)
	}
	return inRequest && !inResponse
}

// holds reports whether a message is name or has it inside.
func (a *api) holds(outer, name string) bool {
	return outer == name || slices.ContainsFunc(a.messages[outer].Fields, func(f field) bool {
		return f.Kind != outer && a.messages[f.Kind] != nil && a.holds(f.Kind, name)
	})
}

// jsonType is how a field is written in JSON, with links for API.md.
func (a *api) jsonType(f field) string {
	kind := f.Kind
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
	if f.Repeated {
		return "list of " + kind
	}
	return kind
}

// tsType is the type of a field in TypeScript.
func (a *api) tsType(f field) string {
	kind := map[string]string{payloadMessage: "unknown", mapKind: "Record<string, string>", "integer": "number"}[f.Kind]
	kind = cmp.Or(kind, f.Kind)
	if f.Repeated {
		kind += "[]"
	}
	return kind
}

// link leads to the description of a verb.
func link(verb string) string { return "[" + verb + "](#" + anchor(verb) + ")" }

// noteShort is the length of a note that the page repeats instead of leading to it.
const noteShort = 120

// noteText is a note on the page. A long one is written once.
func noteText(n note) string {
	switch {
	case n.Title == "" || len(n.Text) < noteShort:
		return n.Text
	case n.Of != "":
		return "**" + n.Title + "**: as for " + link(n.Of) + "."
	}
	return "**" + n.Title + ".** " + n.Text
}

// anchor is what a heading's link is called.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(heading), ".", "")
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

// command is the request of an endpoint as the nats command sends it.
func command(e endpoint) string {
	timeout := ""
	if e.Timeout != "" {
		timeout = "--timeout " + e.Timeout + " "
	}
	line := "nats request " + timeout + e.Subject("shop") + " '" + e.In + "'"
	if len(line) > columns.Width {
		if text, err := pretty(e.In); err == nil {
			return "nats request " + timeout + e.Subject("shop") + " '" + text + "'"
		}
	}
	return line
}

func toJSON(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// pretty indents JSON.
func pretty(s string) (string, error) {
	var b bytes.Buffer
	err := json.Indent(&b, []byte(s), "", "  ")
	return b.String(), err
}
