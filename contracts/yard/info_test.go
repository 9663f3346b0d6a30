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
	// The counts of its partitions are for pages, which read the API's own form.
	if own, api := reflect.TypeFor[TasklistInfo]().NumField()+1, list.ProtoReflect().Descriptor().Fields().Len(); own != api {
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

// The same of settings, beside which some answers have more. They go both ways whole: filled, and empty.
func TestOwnSettingsHaveAllThatTheAPITells(t *testing.T) {
	settingsGoBothWays(t, domainOf, Domain.Wire, &yardv1.Domain{}, "Pause", "Drain", "Use")
	settingsGoBothWays(t, taskTypeOf, TaskType.Wire, &yardv1.TaskType{}, "SlotsInUse", "Pause", "Drain")
	settingsGoBothWays(t, tasklistOf, Tasklist.Wire, &yardv1.Tasklist{}, "PartitionsNow", "Pause", "Drain")
	settingsGoBothWays(t, groupOf, Group.Wire, &yardv1.Group{Weight: new(1.0)}, "Idle", "Pause", "Drain")
	settingsGoBothWays(t, groupOf, Group.Wire, &yardv1.Group{Weight: new(0.0)}, "Idle", "Pause", "Drain")
	settingsGoBothWays(t, limitOf, Limit.Wire, &yardv1.Limit{}, "SlotsInUse")
	settingsGoBothWays(t, pauseOf, func(p Pause) *yardv1.Pause { return p.Wire() }, &yardv1.Pause{SinceMs: 1})
}

// A group whose weight is not set keeps its weight of 1; one of weight 0 is idle.
func TestAGroupWithoutAWeight(t *testing.T) {
	if w := (Group{Name: "a", MaxConcurrency: 3}).Wire(); w.Weight != nil {
		t.Errorf("sent is %v", w)
	}
	if g := groupOf(&yardv1.Group{Name: "a"}); g.Weight != 1 || g.Idle {
		t.Errorf("%+v", g)
	}
	if w := (Group{Name: "b", Idle: true}).Wire(); w.Weight == nil || *w.Weight != 0 {
		t.Errorf("sent is %v", w)
	}
	if g := groupOf(&yardv1.Group{Name: "b", Weight: new(0.0)}); g.Weight != 0 || !g.Idle {
		t.Errorf("%+v", g)
	}
}

// settingsGoBothWays checks one type, of which some fields are not the settings'.
func settingsGoBothWays[T any, W proto.Message](t *testing.T, of func(W) T, wire func(T) W, empty W, apart ...string) {
	t.Helper()
	full := empty.ProtoReflect().New().Interface().(W)
	fill(full.ProtoReflect())
	own := reflect.ValueOf(of(full))
	var missing []string
	for _, path := range unset(own, "") {
		missing = append(missing, path[1:])
	}
	slices.Sort(missing)
	if slices.Sort(apart); !slices.Equal(missing, apart) {
		t.Errorf("%s: not filled: %v, want %v", own.Type(), missing, apart)
	}
	if n, api := own.NumField()-len(apart), full.ProtoReflect().Descriptor().Fields().Len(); n != api {
		t.Errorf("%s has %d fields of the API's %d", own.Type(), n, api)
	}
	for _, w := range []W{full, empty} {
		if back := wire(of(w)); !proto.Equal(back, w) {
			t.Errorf("%v came back as %v", w, back)
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
