package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler. Members whose value is nil or "" are left out.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	first := true
	for _, m := range o {
		if m.value == nil || m.value == "" {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func ref(path ...string) object {
	return object{{"$ref", "#/" + strings.Join(path, "/")}}
}

// asyncAPI is the AsyncAPI 3.0 document, written from the server's side: it
// receives requests and replies.
func asyncAPI(a *api) ([]byte, error) {
	var channels, operations, messages, schemas object
	for _, e := range addresses(a.endpoints) {
		id := strings.NewReplacer(".", "_", tasklistToken, "tasklist").Replace(e.Verb)
		channels = append(channels, member{id, requestChannel(e)}, member{id + "_reply", replyChannel(e)})
		operations = append(operations, member{id, object{
			{"action", "receive"},
			{"channel", ref("channels", id)},
			{"summary", e.Does},
			{"description", strings.Join(append(e.Notes, "Error codes: "+joinCodes(a.codesOf(e))+"."), "\n\n")},
			{"messages", []object{ref("channels", id, "messages", e.Request)}},
			{"reply", object{
				{"channel", ref("channels", id+"_reply")},
				{"messages", []object{ref("channels", id+"_reply", "messages", e.Response), ref("channels", id+"_reply", "messages", "Error")}},
			}},
		}})
		messages = appendMessage(messages, a, e.Request, e.In, "requestHeaders")
		messages = appendMessage(messages, a, e.Response, e.Out, "replyHeaders")
	}
	messages = append(messages, member{"Error", errorMessage()})
	for _, e := range a.endpoints {
		schemas = appendSchema(schemas, a, e.Request)
		schemas = appendSchema(schemas, a, e.Response)
	}
	for _, m := range a.shared {
		schemas = appendSchema(schemas, a, m.Name)
	}
	schemas = append(schemas, headerSchemas(a)...)
	doc := object{
		{"asyncapi", "3.0.0"},
		{"info", object{
			{"title", "Yardmaster"},
			{"version", "1.0.0"},
			{"description", "A durable, multi-tenant task engine on NATS. Every verb is a request with a reply. API.md in this folder has the same for people, with the rules for all verbs."},
			{"license", object{{"name", "Apache-2.0"}, {"url", "https://www.apache.org/licenses/LICENSE-2.0"}}},
		}},
		{"defaultContentType", string(codec.JSON)},
		{"servers", object{{"local", object{
			{"host", "127.0.0.1:4222"},
			{"protocol", "nats"},
			{"description", "The server that `yard dev` starts. Use any NATS server that the services are connected to."},
		}}}},
		{"channels", channels},
		{"operations", operations},
		{"components", object{{"messages", messages}, {"schemas", schemas}}},
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// subject is where an endpoint is asked, with {domain} where it is a domain's.
func subject(e endpoint, domain string) string {
	if e.admin {
		return topology.Admin(e.Verb)
	}
	return topology.API(domain, e.Verb)
}

// tasklistToken stands for a tasklist in a subject.
const tasklistToken = "{tasklist}"

// addresses has an endpoint for each subject.
func addresses(endpoints []endpoint) (all []endpoint) {
	for _, e := range endpoints {
		all = append(all, e)
		if e.ofTasklist {
			e.Verb += "." + tasklistToken
			all = append(all, e)
		}
	}
	return all
}

func requestChannel(e endpoint) object {
	var parameters object
	if !e.admin {
		parameters = append(parameters, member{"domain", object{{"description", "The tenant: [A-Za-z0-9_-]{1,64}, created with domains.put."}}})
	}
	if strings.HasSuffix(e.Verb, tasklistToken) {
		parameters = append(parameters, member{"tasklist", object{{"description", "The tasklist of the tasks: [A-Za-z0-9_-]{1,64}."}}})
	}
	return object{
		{"address", subject(e, "{domain}")},
		{"messages", object{{e.Request, ref("components", "messages", e.Request)}}},
		{"parameters", optional(parameters)},
	}
}

// optional is nil for an object without members.
func optional(o object) any {
	if len(o) == 0 {
		return nil
	}
	return o
}

func replyChannel(e endpoint) object {
	return object{
		{"description", "The inbox of the client: the reply subject of the request."},
		{"messages", object{
			{e.Response, ref("components", "messages", e.Response)},
			{"Error", ref("components", "messages", "Error")},
		}},
	}
}

// appendMessage adds a message once; several endpoints share a response.
func appendMessage(to object, a *api, name, example, headers string) object {
	for _, m := range to {
		if m.name == name {
			return to
		}
	}
	return append(to, member{name, object{
		{"name", publicPackage + "." + name},
		{"summary", a.messages[name].Comment},
		{"contentType", string(codec.JSON)},
		{"headers", ref("components", "schemas", headers)},
		{"payload", ref("components", "schemas", name)},
		{"examples", []object{{{"payload", json.RawMessage(example)}}}},
	}})
}

func errorMessage() object {
	return object{
		{"name", "Error"},
		{"summary", "Sent instead of a response; distinguished by the header " + fault.HeaderCode + "."},
		{"contentType", string(codec.JSON)},
		{"headers", ref("components", "schemas", "errorHeaders")},
		{"payload", ref("components", "schemas", "Error")},
		{"examples", []object{{{"payload", json.RawMessage(errorExample)}}}},
	}
}

func appendSchema(to object, a *api, name string) object {
	for _, m := range to {
		if m.name == name {
			return to
		}
	}
	return append(to, member{name, schemaOf(a, a.messages[name])})
}

// schemaOf is the JSON schema of a message.
func schemaOf(a *api, m *message) object {
	if m.Name == payloadMessage {
		return object{{"description", "Any JSON value, or {\"$binary\": \"<base64>\"}. At most 256 KiB."}}
	}
	properties := object{}
	var must []string
	for _, f := range m.fields {
		properties = append(properties, member{f.name, fieldSchema(a, f)})
		if f.rules.required {
			must = append(must, f.name)
		}
	}
	schema := object{{"type", "object"}, {"description", m.Comment}, {"properties", properties}}
	if len(must) > 0 {
		schema = append(schema, member{"required", must})
	}
	if a.strict(m.Name) {
		schema = append(schema, member{"additionalProperties", false})
	}
	return schema
}

// payloadMessage is written as any JSON value.
const payloadMessage = "Payload"

// strict tells whether unknown fields of a message are refused: those of
// requests are, and responses may gain fields.
func (a *api) strict(name string) bool {
	inRequest, inResponse := false, false
	for _, e := range a.endpoints {
		inRequest = inRequest || a.holds(e.Request, name)
		inResponse = inResponse || a.holds(e.Response, name)
	}
	return inRequest && !inResponse
}

// holds tells whether a message is name or has it inside.
func (a *api) holds(outer, name string) bool {
	if outer == name {
		return true
	}
	for _, f := range a.messages[outer].fields {
		if f.kind != outer && a.messages[f.kind] != nil && a.holds(f.kind, name) {
			return true
		}
	}
	return false
}

func fieldSchema(a *api, f field) object {
	var s object
	switch {
	case f.kind == mapKind:
		return object{
			{"type", "object"},
			{"description", f.comment},
			{"additionalProperties", object{{"type", "string"}}},
			{"maxProperties", number(f.rules.max)},
		}
	case a.messages[f.kind] != nil:
		s = ref("components", "schemas", f.kind)
	case a.enums[f.kind] != nil:
		var names []string
		for _, v := range a.enums[f.kind].values {
			names = append(names, v.Name)
		}
		s = object{{"type", "string"}, {"enum", names}}
	default:
		s = object{{"type", f.kind}, {"pattern", f.rules.pattern}}
	}
	if f.repeated {
		return object{
			{"type", "array"},
			{"description", f.comment},
			{"items", s},
			{"minItems", number(f.rules.min)},
			{"maxItems", number(f.rules.max)},
		}
	}
	if a.messages[f.kind] != nil {
		if f.comment != "" {
			s = append(s, member{"description", f.comment})
		}
		return s
	}
	return append(
		s,
		member{"description", f.comment},
		member{"minimum", number(f.rules.min)}, member{"maximum", number(f.rules.max)},
		member{"default", number(f.rules.fallback)},
	)
}

// number is a JSON number, or nothing.
func number(s string) any {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// headerSchemas are the headers of requests and replies, and the body of errors.
func headerSchemas(a *api) object {
	text := func(about string) object { return object{{"type", "string"}, {"description", about}} }
	contentType := object{
		{"type", "string"},
		{"enum", []string{string(codec.JSON), string(codec.Protobuf)}},
		{"default", string(codec.JSON)},
		{"description", "The format of the body; the answer has the same format."},
	}
	var codes []string
	for _, c := range a.codes {
		codes = append(codes, string(c.Code))
	}
	return object{
		{"requestHeaders", object{{"type", "object"}, {"properties", object{
			{codec.HeaderContentType, contentType},
			{headerTraceparent, text(traceparentAbout)},
			{headerTimeout, text(timeoutAbout)},
		}}}},
		{"replyHeaders", object{{"type", "object"}, {"properties", object{{codec.HeaderContentType, contentType}}}}},
		{"errorHeaders", object{{"type", "object"}, {"properties", object{
			{fault.HeaderCode, object{{"type", "string"}, {"enum", codes}}},
			{fault.HeaderDescription, text("What is wrong, in one line, for people.")},
			{codec.HeaderContentType, text("Always application/json.")},
		}}, {"required", []string{fault.HeaderCode, fault.HeaderDescription}}}},
		{"Error", object{{"type", "object"}, {"properties", object{
			{"code", object{{"type", "string"}, {"enum", codes}}},
			{"message", text("What is wrong, in one sentence, for people.")},
			{"path", text("The field at fault as a JSON pointer; absent where no field is.")},
			{"detail", object{{"type", "object"}, {"additionalProperties", object{{"type", "string"}}}, {"description", "Details for programs, such as `now_ms` if the time in a request id is rejected."}}},
			{"retry_after_ms", object{{"type", "integer"}, {"description", "How long to wait before a retry; absent if there is no advice."}}},
		}}, {"required", []string{"code", "message"}}}},
	}
}
