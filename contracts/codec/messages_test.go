package codec

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// publicMessages are all messages of the public API, empty.
func publicMessages(t *testing.T) (all []protoreflect.Message) {
	t.Helper()
	for _, file := range []protoreflect.FileDescriptor{yardv1.File_yard_v1_tasks_proto, yardv1.File_yard_v1_admin_proto} {
		for i := range file.Messages().Len() {
			m, err := protoregistry.GlobalTypes.FindMessageByName(file.Messages().Get(i).FullName())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, m.New())
		}
	}
	return all
}

// fill gives every field of m a value, and those of the messages in it.
func fill(m protoreflect.Message) {
	if p, ok := m.Interface().(*yardv1.Payload); ok {
		p.Data = []byte("1")
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap():
			m.Mutable(f).Map().Set(protoreflect.ValueOfString("name").MapKey(), sample(f.MapValue()))
		case f.IsList() && f.Message() != nil:
			fill(m.Mutable(f).List().AppendMutable().Message())
		case f.IsList():
			m.Mutable(f).List().Append(sample(f))
		case f.Message() != nil:
			fill(m.Mutable(f).Message())
		default:
			m.Set(f, sample(f))
		}
	}
}

func sample(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("text")
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte("bytes"))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(8)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(1.5)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(1).Number())
	}
	panic("no sample of a " + f.Kind().String())
}

// Some messages have a JSON form of their own, written by hand: no field may be missing there.
func TestEveryFieldSurvivesBothForms(t *testing.T) {
	for _, m := range publicMessages(t) {
		fill(m)
		whole := m.Interface().(Message)
		for _, form := range []ContentType{JSON, Protobuf} {
			data, err := Marshal(form, whole)
			if err != nil {
				t.Fatal(err)
			}
			back := m.New().Interface()
			if err := UnmarshalRequest(form, data, back.(Message)); err != nil || !proto.Equal(back, m.Interface()) {
				t.Errorf("%s in %s: %s\nread back: %v, %v", m.Descriptor().Name(), form, data, back, err)
			}
		}
	}
}

// A request in protobuf is read as strictly as one in JSON.
func TestEveryRequestTellsOfUnknownFields(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1)
	for _, m := range publicMessages(t) {
		if !strings.HasSuffix(string(m.Descriptor().Name()), "Request") {
			continue
		}
		if err := UnmarshalRequest(Protobuf, unknown, m.Interface().(Message)); err == nil {
			t.Errorf("%s: an unknown field was taken", m.Descriptor().Name())
		}
	}
}
