package yard

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// fill gives every field of a message a value that is not its zero one; lists and maps get one entry.
func fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap():
			m.Mutable(f).Map().Set(protoreflect.ValueOfString("k").MapKey(), protoreflect.ValueOfString("v"))
		case f.IsList() && f.Message() != nil:
			fill(m.Mutable(f).List().AppendMutable().Message())
		case f.IsList() && f.Kind() == protoreflect.Int32Kind:
			m.Mutable(f).List().Append(protoreflect.ValueOfInt32(int32(f.Number())))
		case f.IsList():
			m.Mutable(f).List().Append(protoreflect.ValueOfString(string(f.Name())))
		case f.Message() != nil:
			fill(m.Mutable(f).Message())
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(string(f.Name())))
		case f.Kind() == protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes([]byte("data")))
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		case f.Kind() == protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(1))
		case f.Kind() == protoreflect.Int32Kind:
			m.Set(f, protoreflect.ValueOfInt32(int32(f.Number())))
		case f.Kind() == protoreflect.DoubleKind:
			m.Set(f, protoreflect.ValueOfFloat64(float64(f.Number())))
		default:
			m.Set(f, protoreflect.ValueOfInt64(int64(f.Number())))
		}
	}
}

// unset names the fields of v, and of what it holds, that have their zero value.
func unset(v reflect.Value, path string) (names []string) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time](), v.Kind() != reflect.Struct && v.Kind() != reflect.Slice, v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Struct:
		if v.IsZero() {
			return []string{path}
		}
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 {
			return []string{path}
		}
		return unset(v.Index(0), path)
	default:
		for i := range v.NumField() {
			names = append(names, unset(v.Field(i), path+"."+v.Type().Field(i).Name)...)
		}
	}
	return names
}

// What the API tells of a task or a tasklist, the SDK's own types tell, field by field: a new field of theirs is filled,
// and so is one of the API, if it is not forgotten there.
func TestOwnTypesHaveAllThatTheAPITells(t *testing.T) {
	var task yardv1.Task
	fill(task.ProtoReflect())
	if missing := unset(reflect.ValueOf(*infoOf(&task)), "TaskInfo"); len(missing) > 0 {
		t.Errorf("not filled: %v", missing)
	}
	if own, api := reflect.TypeFor[TaskInfo]().NumField(), task.ProtoReflect().Descriptor().Fields().Len(); own != api {
		t.Errorf("TaskInfo has %d fields, the API's task %d", own, api)
	}
	if own, api := reflect.TypeFor[Event]().NumField(), new(yardv1.TaskEvent).ProtoReflect().Descriptor().Fields().Len(); own != api {
		t.Errorf("Event has %d fields, the API's %d", own, api)
	}
	var list yardv1.DescribeTasklistResponse
	fill(list.ProtoReflect())
	if missing := unset(reflect.ValueOf(tasklistInfoOf(&list)), "TasklistInfo"); len(missing) > 0 {
		t.Errorf("not filled: %v", missing)
	}
	if own, api := reflect.TypeFor[TasklistInfo]().NumField(), list.ProtoReflect().Descriptor().Fields().Len(); own != api {
		t.Errorf("TasklistInfo has %d fields, the API's %d", own, api)
	}
	var batch yardv1.Batch
	fill(batch.ProtoReflect())
	if missing := unset(reflect.ValueOf(*batchOf(&batch)), "BatchInfo"); len(missing) > 0 {
		t.Errorf("not filled: %v", missing)
	}
	// It has the API's own form besides.
	if own, api := reflect.TypeFor[BatchInfo]().NumField()-1, batch.ProtoReflect().Descriptor().Fields().Len(); own != api {
		t.Errorf("BatchInfo has %d fields, the API's %d", own, api)
	}
	var slots yardv1.SlotUse
	if own, api := reflect.TypeFor[SlotUse]().NumField(), slots.ProtoReflect().Descriptor().Fields().Len(); own != api {
		t.Errorf("SlotUse has %d fields, the API's %d", own, api)
	}
	if got := infoOf(&yardv1.Task{DueAtMs: 1500}); !got.CreatedAt.IsZero() || got.DueAt.UnixMilli() != 1500 || got.Events != nil {
		t.Errorf("%+v", got)
	}
}

// The same of settings, beside which some answers tell how many slots are in use.
func TestOwnSettingsHaveAllThatTheAPITells(t *testing.T) {
	var domain yardv1.Domain
	var typ yardv1.TaskType
	var tasklist yardv1.Tasklist
	var limit yardv1.Limit
	var pause yardv1.Pause
	for _, m := range []proto.Message{&domain, &typ, &tasklist, &limit, &pause} {
		fill(m.ProtoReflect())
	}
	for name, c := range map[string]struct {
		own   any
		api   proto.Message
		apart []string
	}{
		"Domain":   {domainOf(&domain), &domain, nil},
		"TaskType": {taskTypeOf(&typ), &typ, []string{"TaskType.SlotsInUse", "TaskType.Pause", "TaskType.Drain"}},
		"Tasklist": {tasklistOf(&tasklist), &tasklist, []string{"Tasklist.PartitionsNow", "Tasklist.Pause", "Tasklist.Drain"}},
		"Pause":    {pauseOf(&pause), &pause, nil},
		"Limit":    {limitOf(&limit), &limit, []string{"Limit.SlotsInUse"}},
	} {
		own := reflect.ValueOf(c.own)
		if missing := unset(own, name); !slices.Equal(missing, c.apart) {
			t.Errorf("not filled: %v, want %v", missing, c.apart)
		}
		if n, api := own.NumField()-len(c.apart), c.api.ProtoReflect().Descriptor().Fields().Len(); n != api {
			t.Errorf("%s has %d fields of the API's %d", name, n, api)
		}
	}
}

// Every state has a constant, the same name as in the API, and the same end.
func TestStatesAreThoseOfTheAPI(t *testing.T) {
	own := []State{
		StateWaiting, StateQueued, StateReady, StateRunning, StateBackoff, StateCompleted, StateDead, StateCancelled, StateExpired,
	}
	for n := range yardv1.TaskState_name {
		if s := yardv1.TaskState(n); n > 0 && (!slices.Contains(own, State(s.Name())) || State(s.Name()).Finished() != s.Finished()) {
			t.Errorf("%s is not a state of the SDK, or does not end there as here", s.Name())
		}
	}
	want := &yardv1.ListRequest{Tasklist: "a", Type: "b", Limit: 7, States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_DEAD, -1}, Headers: map[string]string{"k": "v"}}
	got := Filter{Tasklist: "a", Type: "b", Limit: 7, States: []State{StateDead, "unknown"}, Headers: map[string]string{"k": "v"}}.wire()
	if !proto.Equal(got, want) {
		t.Errorf("the filter is %v", got)
	}
}
