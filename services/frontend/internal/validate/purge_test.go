package validate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

func TestPurgeRefuses(t *testing.T) {
	good := func() *yardv1.PurgeTasklistRequest {
		return &yardv1.PurgeTasklistRequest{
			Name: "mail", Type: "email.send", States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY}, OlderThanMs: ms(AheadMax), Limit: PurgeMax,
			Reason: strings.Repeat("r", PurgeReasonBytesMax), By: strings.Repeat("b", PauserBytesMax), Cursor: goodID.String() + "..0.1.0.3",
		}
	}
	judge := func(r *yardv1.PurgeTasklistRequest) error {
		p, err := PurgeTasklist(r, now)
		if err == nil {
			err = text("/reason", p.Reason, ReasonBytesMax) // or the cancels would be refused
		}
		return err
	}
	table := map[string]row[*yardv1.PurgeTasklistRequest]{
		"no name":      {func(r *yardv1.PurgeTasklistRequest) { r.Name = "" }, "/name"},
		"bad type":     {func(r *yardv1.PurgeTasklistRequest) { r.Type = "a b" }, "/type"},
		"bad group":    {func(r *yardv1.PurgeTasklistRequest) { r.Group = "a b" }, "/group"},
		"running":      {func(r *yardv1.PurgeTasklistRequest) { r.States[0] = yardv1.TaskState_TASK_STATE_RUNNING }, "/states/0"},
		"many states":  {func(r *yardv1.PurgeTasklistRequest) { r.States = make([]yardv1.TaskState, 4) }, "/states"},
		"negative age": {func(r *yardv1.PurgeTasklistRequest) { r.OlderThanMs = -1 }, "/older_than_ms"},
		"long age":     {func(r *yardv1.PurgeTasklistRequest) { r.OlderThanMs++ }, "/older_than_ms"},
		"too many":     {func(r *yardv1.PurgeTasklistRequest) { r.Limit++ }, "/limit"},
		"negative":     {func(r *yardv1.PurgeTasklistRequest) { r.Limit = -1 }, "/limit"},
		"long reason":  {func(r *yardv1.PurgeTasklistRequest) { r.Reason += "r" }, "/reason"},
		"long name":    {func(r *yardv1.PurgeTasklistRequest) { r.By += "b" }, "/by"},
		"late position": {func(r *yardv1.PurgeTasklistRequest) {
			r.Cursor = goodID.String() + "." + laterID().String() + ".0.1.0.3"
		}, "/cursor"},
	}
	for name, cursor := range map[string]string{
		"a list's cursor": goodID.String(), "no id": "x..0.1.0.3", "no position": goodID.String() + ".x.0.1.0.3", "no number": goodID.String() + "..0.1.0.x", "negative number": goodID.String() + "..0.1.0.-1",
	} {
		table[name] = row[*yardv1.PurgeTasklistRequest]{func(r *yardv1.PurgeTasklistRequest) { r.Cursor = cursor }, "/cursor"}
	}
	refusals(t, good, judge, table)
	refusals(t, func() *yardv1.PurgeTypeRequest { return &yardv1.PurgeTypeRequest{Name: "email.send", Tasklist: "mail"} },
		func(r *yardv1.PurgeTypeRequest) error { _, err := PurgeType(r, now); return err },
		map[string]row[*yardv1.PurgeTypeRequest]{
			"no name":      {func(r *yardv1.PurgeTypeRequest) { r.Name = "" }, "/name"},
			"bad tasklist": {func(r *yardv1.PurgeTypeRequest) { r.Tasklist = "a.b" }, "/tasklist"},
			"bad group":    {func(r *yardv1.PurgeTypeRequest) { r.Group = "a b" }, "/group"},
			"bad limit":    {func(r *yardv1.PurgeTypeRequest) { r.Limit = PurgeMax + 1 }, "/limit"},
		})
	refusals(t, func() *yardv1.PurgeGroupRequest {
		return &yardv1.PurgeGroupRequest{Name: "acme", Tasklist: "mail", Type: "email.send"}
	},
		func(r *yardv1.PurgeGroupRequest) error { _, err := PurgeGroup(r, now); return err },
		map[string]row[*yardv1.PurgeGroupRequest]{
			"no name":      {func(r *yardv1.PurgeGroupRequest) { r.Name = "" }, "/name"},
			"bad tasklist": {func(r *yardv1.PurgeGroupRequest) { r.Tasklist = "a.b" }, "/tasklist"},
			"bad type":     {func(r *yardv1.PurgeGroupRequest) { r.Type = "a b" }, "/type"},
			"running":      {func(r *yardv1.PurgeGroupRequest) { r.States = make([]yardv1.TaskState, 1) }, "/states/0"},
			"negative age": {func(r *yardv1.PurgeGroupRequest) { r.OlderThanMs = -1 }, "/older_than_ms"},
			"bad limit":    {func(r *yardv1.PurgeGroupRequest) { r.Limit = PurgeMax + 1 }, "/limit"},
			"bad cursor":   {func(r *yardv1.PurgeGroupRequest) { r.Cursor = "x" }, "/cursor"},
			"long reason":  {func(r *yardv1.PurgeGroupRequest) { r.Reason = strings.Repeat("r", PurgeReasonBytesMax+1) }, "/reason"},
			"long by":      {func(r *yardv1.PurgeGroupRequest) { r.By = strings.Repeat("b", PauserBytesMax+1) }, "/by"},
		})
}

func laterID() ids.TaskID { return ids.NewTaskID(now.Add(time.Hour), 1, 7) }

// A step knows from its cursor all that the one before knew, and tasks created later than the first are not its concern.
func TestAPurgeGoesOnWhereItWas(t *testing.T) {
	first, err := PurgeType(&yardv1.PurgeTypeRequest{Name: "x", OlderThanMs: 1000, By: "ann", Reason: "twice"}, now)
	if err != nil || !first.Begins || first.Filter.Limit != PurgeDefault || len(first.Filter.States) != 3 || first.Reason != "purged by ann: twice" {
		t.Fatalf("%+v %v", first, err)
	}
	if cursor := ids.NewTaskID(now.Add(-time.Second), 0, 0).String(); first.Filter.Cursor != cursor {
		t.Errorf("from %s, want %s", first.Filter.Cursor, cursor)
	}
	at := ids.NewTaskID(now.Add(-time.Minute), 1, 7).String()
	first.Busy, first.Again, first.Later, first.Idle = true, true, true, 4
	next, err := PurgeType(&yardv1.PurgeTypeRequest{Name: "x", Cursor: first.Cursor(at), Running: true}, now.Add(time.Hour))
	if err != nil || next.Begins || next.Before != first.Before || next.Filter.Cursor != at || !next.Busy || !next.Again || !next.Later || next.Idle != 4 || len(next.Filter.States) != 3 {
		t.Errorf("%+v %v", next, err)
	}
	pass, err := PurgeType(&yardv1.PurgeTypeRequest{Name: "x", Cursor: first.Cursor("")}, now.Add(time.Hour))
	if err != nil || !pass.Begins || pass.Filter.Cursor != first.Before.String() {
		t.Errorf("%+v %v", pass, err)
	}
}

// What narrows a purge is what it cancels: nothing else of a tasklist or a type.
func TestAPurgeTakesWhatItWasToldTo(t *testing.T) {
	ready, backoff := yardv1.TaskState_TASK_STATE_READY, yardv1.TaskState_TASK_STATE_BACKOFF
	some := []yardv1.TaskState{ready, backoff}
	list, err := PurgeTasklist(&yardv1.PurgeTasklistRequest{Name: "mail", Type: "x", Group: "b", States: some, Limit: 7}, now)
	if f := list.Filter; err != nil || f.Tasklist != "mail" || f.Type != "x" || f.Group != "b" || f.Limit != 7 || !slices.Equal(f.States, some) {
		t.Errorf("%+v %v", f, err)
	}
	group, err := PurgeGroup(&yardv1.PurgeGroupRequest{Name: "acme", Tasklist: "mail", Type: "x", States: some, Limit: 7}, now)
	if f := group.Filter; err != nil || f.Tasklist != "mail" || f.Type != "x" || f.Group != "acme" || f.Limit != 7 || !slices.Equal(f.States, some) {
		t.Errorf("%+v %v", f, err)
	}
	typ, err := PurgeType(&yardv1.PurgeTypeRequest{Name: "x", Tasklist: "mail", Group: "acme", States: some, Running: true}, now)
	if f := typ.Filter; err != nil || f.Tasklist != "mail" || f.Type != "x" || f.Group != "acme" || !slices.Equal(f.States, append(some, yardv1.TaskState_TASK_STATE_RUNNING)) {
		t.Errorf("%+v %v", f, err)
	}
}
