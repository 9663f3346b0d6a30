package validate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestPurgeRefuses(t *testing.T) {
	good := func() *yardv1.PurgeRequest {
		return &yardv1.PurgeRequest{
			Name: "mail", Type: "email.send", States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY}, OlderThanMs: ms(AheadMax), Limit: PurgeMax,
			Reason: strings.Repeat("r", PurgeReasonBytesMax), By: strings.Repeat("b", PauserBytesMax), Cursor: goodID.String() + "..0.1.0.3",
		}
	}
	judge := func(r *yardv1.PurgeRequest) error {
		p, err := Tasklist.Purge(r, now)
		if err == nil {
			err = text("/reason", p.Reason, ReasonBytesMax) // or the cancels would be refused
		}
		return err
	}
	table := map[string]row[*yardv1.PurgeRequest]{
		"no name":      {func(r *yardv1.PurgeRequest) { r.Name = "" }, "/name"},
		"bad type":     {func(r *yardv1.PurgeRequest) { r.Type = "a b" }, "/type"},
		"bad group":    {func(r *yardv1.PurgeRequest) { r.Group = "a b" }, "/group"},
		"running":      {func(r *yardv1.PurgeRequest) { r.States[0] = yardv1.TaskState_TASK_STATE_RUNNING }, "/states/0"},
		"many states":  {func(r *yardv1.PurgeRequest) { r.States = make([]yardv1.TaskState, 4) }, "/states"},
		"negative age": {func(r *yardv1.PurgeRequest) { r.OlderThanMs = -1 }, "/older_than_ms"},
		"long age":     {func(r *yardv1.PurgeRequest) { r.OlderThanMs++ }, "/older_than_ms"},
		"too many":     {func(r *yardv1.PurgeRequest) { r.Limit++ }, "/limit"},
		"negative":     {func(r *yardv1.PurgeRequest) { r.Limit = -1 }, "/limit"},
		"long reason":  {func(r *yardv1.PurgeRequest) { r.Reason += "r" }, "/reason"},
		"long name":    {func(r *yardv1.PurgeRequest) { r.By += "b" }, "/by"},
		"late position": {func(r *yardv1.PurgeRequest) {
			r.Cursor = goodID.String() + "." + laterID().String() + ".0.1.0.3"
		}, "/cursor"},
	}
	for name, cursor := range map[string]string{
		"a list's cursor": goodID.String(), "no id": "x..0.1.0.3", "no position": goodID.String() + ".x.0.1.0.3", "no number": goodID.String() + "..0.1.0.x", "negative number": goodID.String() + "..0.1.0.-1",
	} {
		table[name] = row[*yardv1.PurgeRequest]{func(r *yardv1.PurgeRequest) { r.Cursor = cursor }, "/cursor"}
	}
	refusals(t, good, judge, table)
	for k, req := range map[Kind]*yardv1.PurgeRequest{
		Tasklist: {Name: "mail", Type: "email.send", Group: "acme"}, Type: {Name: "email.send", Tasklist: "mail", Group: "acme"}, Group: {Name: "acme", Tasklist: "mail", Type: "email.send"},
	} {
		refusals(t, req.CloneVT, func(r *yardv1.PurgeRequest) error { _, err := k.Purge(r, now); return err }, map[string]row[*yardv1.PurgeRequest]{
			"no name":      {func(r *yardv1.PurgeRequest) { r.Name = "" }, "/name"},
			"bad name":     {func(r *yardv1.PurgeRequest) { r.Name = "a b" }, "/name"},
			"bad tasklist": {func(r *yardv1.PurgeRequest) { r.Tasklist = "a.b" }, "/tasklist"},
			"named twice":  {func(r *yardv1.PurgeRequest) { r.Tasklist, r.Type, r.Group = "mail", "email.send", "acme" }, "/" + string(k)},
		})
	}
}

func laterID() ids.TaskID { return ids.NewTaskID(now.Add(time.Hour), 1, 7) }

// A step knows from its cursor all that the one before knew, and tasks created later than the first are not its concern.
func TestAPurgeGoesOnWhereItWas(t *testing.T) {
	first, err := Type.Purge(&yardv1.PurgeRequest{Name: "x", OlderThanMs: 1000, By: "ann", Reason: "twice"}, now)
	if err != nil || !first.Begins || first.Filter.Limit != PurgeDefault || len(first.Filter.States) != 3 || first.Reason != "purged by ann: twice" {
		t.Fatalf("%+v %v", first, err)
	}
	testkit.Equal(t, "from", first.Filter.Cursor, ids.NewTaskID(now.Add(-time.Second), 0, 0).String())
	at := ids.NewTaskID(now.Add(-time.Minute), 1, 7).String()
	first.Busy, first.Again, first.Later, first.Idle = true, true, true, 4
	next, err := Type.Purge(&yardv1.PurgeRequest{Name: "x", Cursor: first.Cursor(at), Running: true}, now.Add(time.Hour))
	if err != nil || next.Begins || next.Before != first.Before || next.Filter.Cursor != at || !next.Busy || !next.Again || !next.Later || next.Idle != 4 || len(next.Filter.States) != 3 {
		t.Errorf("%+v %v", next, err)
	}
	last, err := Type.Purge(&yardv1.PurgeRequest{Name: "x", Cursor: first.Cursor("~1-2-3-4")}, now)
	if err != nil || last.Begins || last.Filter.Cursor != "~1-2-3-4" {
		t.Errorf("the last pages of a list: %+v %v", last, err)
	}
	pass, err := Type.Purge(&yardv1.PurgeRequest{Name: "x", Cursor: first.Cursor("")}, now.Add(time.Hour))
	if err != nil || !pass.Begins || pass.Filter.Cursor != first.Before.String() {
		t.Errorf("%+v %v", pass, err)
	}
}

// What narrows a purge is what it cancels: nothing else of a tasklist or a type.
func TestAPurgeTakesWhatItWasToldTo(t *testing.T) {
	ready, backoff := yardv1.TaskState_TASK_STATE_READY, yardv1.TaskState_TASK_STATE_BACKOFF
	some := []yardv1.TaskState{ready, backoff}
	list, err := Tasklist.Purge(&yardv1.PurgeRequest{Name: "mail", Type: "x", Group: "b", States: some, Limit: 7}, now)
	if f := list.Filter; err != nil || f.Tasklist != "mail" || f.Type != "x" || f.Group != "b" || f.Limit != 7 || !slices.Equal(f.States, some) {
		t.Errorf("%+v %v", f, err)
	}
	group, err := Group.Purge(&yardv1.PurgeRequest{Name: "acme", Tasklist: "mail", Type: "x", States: some, Limit: 7}, now)
	if f := group.Filter; err != nil || f.Tasklist != "mail" || f.Type != "x" || f.Group != "acme" || f.Limit != 7 || !slices.Equal(f.States, some) {
		t.Errorf("%+v %v", f, err)
	}
	typ, err := Type.Purge(&yardv1.PurgeRequest{Name: "x", Tasklist: "mail", Group: "acme", States: some, Running: true}, now)
	if f := typ.Filter; err != nil || f.Tasklist != "mail" || f.Type != "x" || f.Group != "acme" || !slices.Equal(f.States, append(some, yardv1.TaskState_TASK_STATE_RUNNING)) {
		t.Errorf("%+v %v", f, err)
	}
}
