package api

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// schema describes the JSON form of a message as a JSON Schema. It is for people
// and generators to read; what is enforced is the frontend's validation.
func schema(d protoreflect.MessageDescriptor) string {
	var b strings.Builder
	writeMessage(&b, d)
	return b.String()
}

func writeMessage(b *strings.Builder, d protoreflect.MessageDescriptor) {
	if d.Name() == "Payload" { // any JSON value, or {"$binary": "<base64>"}
		b.WriteString(`{}`)
		return
	}
	b.WriteString(`{"type":"object","additionalProperties":false,"properties":{`)
	fields := d.Fields()
	for i := range fields.Len() {
		if i > 0 {
			b.WriteByte(',')
		}
		f := fields.Get(i)
		b.WriteString(`"` + string(f.Name()) + `":`)
		if f.IsList() {
			b.WriteString(`{"type":"array","items":`)
			writeField(b, f)
			b.WriteByte('}')
			continue
		}
		writeField(b, f)
	}
	b.WriteString(`}}`)
}

func writeField(b *strings.Builder, f protoreflect.FieldDescriptor) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		writeMessage(b, f.Message())
	case protoreflect.EnumKind:
		writeEnum(b, f.Enum())
	case protoreflect.BoolKind:
		b.WriteString(`{"type":"boolean"}`)
	case protoreflect.DoubleKind:
		b.WriteString(`{"type":"number"}`)
	case protoreflect.StringKind:
		b.WriteString(`{"type":"string"}`)
	case protoreflect.BytesKind:
		b.WriteString(`{"type":"string","contentEncoding":"base64"}`)
	default:
		b.WriteString(`{"type":"integer"}`)
	}
}

// writeEnum lists the names without their common prefix, which is the name of
// the unspecified value.
func writeEnum(b *strings.Builder, e protoreflect.EnumDescriptor) {
	b.WriteString(`{"type":"string","enum":[`)
	prefix := strings.TrimSuffix(string(e.Values().Get(0).Name()), "UNSPECIFIED")
	for i := 1; i < e.Values().Len(); i++ {
		if i > 1 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strings.ToLower(strings.TrimPrefix(string(e.Values().Get(i).Name()), prefix)) + `"`)
	}
	b.WriteString(`]}`)
}
