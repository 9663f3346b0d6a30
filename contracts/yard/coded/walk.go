package coded

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Encode encodes the content of a request, in place. Nil encodes nothing. The error is INVALID_ARGUMENT, or UNAVAILABLE if a
// codec server is away.
func Encode(c Codec, request codec.Message) error {
	if c == nil {
		return nil
	}
	m, ok := request.(protoreflect.ProtoMessage)
	if !ok {
		return fault.New(fault.InvalidArgument, "%T has no content that a codec knows", request)
	}
	return visit(m.ProtoReflect(), content{
		payload: func(p *yardv1.Payload) error { return encodePayload(c, p) },
		failure: func(text string) (string, error) { return encodeText(c, text) },
	})
}

// Decode decodes the content of an answer, in place. Nil decodes nothing, and content that does not decode stays as it is.
func Decode(c Codec, answer codec.Message) {
	m, ok := answer.(protoreflect.ProtoMessage)
	if c == nil || !ok {
		return
	}
	change := func(text string) (string, error) {
		plain, _ := decodeText(c, text) // with an error it is as it was
		return plain, nil
	}
	_ = visit(m.ProtoReflect(), content{ // no part of it returns an error
		payload: func(p *yardv1.Payload) error {
			_ = decodePayload(c, p)
			return nil
		},
		failure: change, stored: change,
	})
}

// content is what is done with each part. Nil leaves it.
type content struct {
	payload func(*yardv1.Payload) error
	// failure is for the text of a failure that a worker reports, stored for the texts of those that the engine has.
	failure, stored func(string) (string, error)
}

// text is a field that may have an encoded text, by the names of its message and of itself.
type text struct{ message, field protoreflect.Name }

var (
	reported = text{"Failure", "message"}
	last     = text{"Task", "error_message"}
	event    = text{"TaskEvent", "message"}
)

func textOf(field protoreflect.FieldDescriptor) text {
	return text{field.Parent().Name(), field.Name()}
}

// parts are the fields of a message that have content, or messages with some.
var parts sync.Map // protoreflect.FullName to []protoreflect.FieldDescriptor

func visit(m protoreflect.Message, do content) error {
	if p, ok := m.Interface().(*yardv1.Payload); ok {
		return do.payload(p)
	}
	for _, field := range partsOf(m.Descriptor()) {
		if !m.Has(field) {
			continue
		}
		if err := visitField(m, field, do); err != nil {
			return err
		}
	}
	return nil
}

func visitField(m protoreflect.Message, field protoreflect.FieldDescriptor, do content) error {
	switch {
	case field.Kind() == protoreflect.StringKind:
		change := do.stored
		if textOf(field) == reported {
			change = do.failure
		}
		if change == nil {
			return nil
		}
		text, err := change(m.Get(field).String())
		if err == nil {
			m.Set(field, protoreflect.ValueOfString(text))
		}
		return err
	case field.IsList():
		for list, i := m.Get(field).List(), 0; i < list.Len(); i++ {
			if err := visit(list.Get(i).Message(), do); err != nil {
				return err
			}
		}
		return nil
	}
	return visit(m.Get(field).Message(), do)
}

// partsOf looks into a kind of message once.
func partsOf(d protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if known, ok := parts.Load(d.FullName()); ok {
		return known.([]protoreflect.FieldDescriptor)
	}
	var found []protoreflect.FieldDescriptor
	for i := range d.Fields().Len() {
		if field := d.Fields().Get(i); hasContent(field, map[protoreflect.FullName]bool{}) {
			found = append(found, field)
		}
	}
	parts.Store(d.FullName(), found)
	return found
}

// hasContent reports whether a field, or a message in it, has content. Seen are the messages that are being looked into.
func hasContent(field protoreflect.FieldDescriptor, seen map[protoreflect.FullName]bool) bool {
	switch textOf(field) {
	case reported, last, event:
		return true
	}
	inner := field.Message()
	if inner == nil || field.IsMap() || seen[inner.FullName()] {
		return false
	}
	if inner.FullName() == (*yardv1.Payload)(nil).ProtoReflect().Descriptor().FullName() {
		return true
	}
	seen[inner.FullName()] = true
	for i := range inner.Fields().Len() {
		if hasContent(inner.Fields().Get(i), seen) {
			return true
		}
	}
	return false
}
