package codec

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// publicMessages are all messages of the public API, empty.
func publicMessages(t *testing.T) (all []protoreflect.Message) {
	t.Helper()
	for _, file := range []protoreflect.FileDescriptor{yardv1.File_yard_v1_tasks_proto, yardv1.File_yard_v1_admin_proto, yardv1.File_yard_v1_schedules_proto, yardv1.File_yard_v1_timers_proto, yardv1.File_yard_v1_explain_proto, yardv1.File_yard_v1_audit_proto} {
		for i := range file.Messages().Len() {
			m, err := protoregistry.GlobalTypes.FindMessageByName(file.Messages().Get(i).FullName())
			checktest.NoError(t, err)
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
			checktest.NoError(t, err)
			back := m.New().Interface()
			if err := UnmarshalRequest(form, data, back.(Message)); err != nil || !proto.Equal(back, m.Interface()) {
				t.Errorf("%s in %s: %s\nread back: %v, %v", m.Descriptor().Name(), form, data, back, err)
			}
		}
	}
}

// A request in protobuf is read as strictly as one in JSON, in each of the messages that it holds, and the field is named.
func TestEveryRequestTellsOfUnknownFields(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1)
	for _, m := range publicMessages(t) {
		if !strings.HasSuffix(string(m.Descriptor().Name()), "Request") {
			continue
		}
		whole := func() map[string]protoreflect.Message {
			fresh := m.New()
			fill(fresh)
			return inner("", fresh)
		}
		for path := range whole() {
			one := whole()
			one[path].SetUnknown(unknown)
			data, err := Marshal(Protobuf, one[""].Interface().(Message))
			checktest.NoError(t, err)
			e := fault.From(UnmarshalRequest(Protobuf, data, m.New().Interface().(Message)))
			if e == nil || e.Code != fault.InvalidArgument || e.Path != path+"/#999" {
				t.Errorf("%s: an unknown field of %q: %v", m.Descriptor().Name(), path, e)
			}
		}
	}
}

// inner are a message and those in it, by their paths. Of each list the second one stands for all.
func inner(path string, m protoreflect.Message) map[string]protoreflect.Message {
	all := map[string]protoreflect.Message{path: m}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		below := path + "/" + string(f.Name())
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			list := m.Mutable(f).List()
			list.Append(protoreflect.ValueOfMessage(proto.Clone(list.Get(0).Message().Interface()).ProtoReflect()))
			maps.Copy(all, inner(below+"/1", list.Get(1).Message()))
		default:
			maps.Copy(all, inner(below, m.Get(f).Message()))
		}
	}
	return all
}

// In JSON every enum is written by name, as the documents say, and read back.
func TestEveryEnumHasNames(t *testing.T) {
	protoregistry.GlobalTypes.RangeEnums(func(e protoreflect.EnumType) bool {
		if e.Descriptor().ParentFile().Package() != "yard.v1" || e.Descriptor().Name() == "Encoding" { // how a payload is written tells that
			return true
		}
		for i := range e.Descriptor().Values().Len() {
			v := e.Descriptor().Values().Get(i)
			if strings.HasSuffix(string(v.Name()), "_UNSPECIFIED") {
				continue
			}
			one := e.New(v.Number())
			back := reflect.New(reflect.TypeOf(one))
			data, err := json.Marshal(one)
			checktest.NoError(t, err)
			name := strings.Trim(string(data), `"`)
			err = json.Unmarshal(data, back.Interface())
			if err != nil || name == string(data) || !strings.HasSuffix(string(v.Name()), "_"+strings.ToUpper(name)) || back.Elem().Interface() != one {
				t.Errorf("%s is written as %s, and read back as %v: %v", v.Name(), data, back.Elem(), err)
			}
		}
		return true
	})
}
