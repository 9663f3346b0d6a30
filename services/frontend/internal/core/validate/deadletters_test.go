package validate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const someTask = "06dabzyw00004emhrks7qr2x30"

func TestRedrivesAreChecked(t *testing.T) {
	good := func() *yardv1.RedriveRequest {
		return &yardv1.RedriveRequest{Filter: &yardv1.DeadLetterFilter{Type: "x"}, Limit: 100, Cursor: "3.9", Reason: "up", By: "ann", Tasklist: "slow", Retry: &yardv1.RetryPolicy{MaxAttempts: 3}}
	}
	s, err := Redrive(good(), Form{})
	if err != nil || s.After != 3 || s.UpTo != 9 || s.Limit != 100 || s.Reason != "redriven by ann: up" || s.To != "slow" || s.Policy.MaxAttempts != 3 || s.Cursor(5) != "5.9" {
		t.Fatalf("%+v %v", s, err)
	}
	for name, c := range map[string]struct {
		change func(r *yardv1.RedriveRequest)
		path   string
	}{
		"neither": {func(r *yardv1.RedriveRequest) { r.Filter = nil }, "/filter"},
		"both":    {func(r *yardv1.RedriveRequest) { r.TaskIds = []string{someTask} }, "/task_ids"},
		"filter and ids": {func(r *yardv1.RedriveRequest) {
			*r = yardv1.RedriveRequest{TaskIds: []string{someTask}, Filter: r.Filter}
		}, "/task_ids"},
		"limit and ids":    {func(r *yardv1.RedriveRequest) { *r = yardv1.RedriveRequest{TaskIds: []string{someTask}, Limit: 1} }, "/task_ids"},
		"cursor and ids":   {func(r *yardv1.RedriveRequest) { *r = yardv1.RedriveRequest{TaskIds: []string{someTask}, Cursor: "3.9"} }, "/task_ids"},
		"cursor's range":   {func(r *yardv1.RedriveRequest) { r.Cursor = "18446744073709551615.18446744073709551615" }, "/cursor"},
		"too many":         {func(r *yardv1.RedriveRequest) { *r = yardv1.RedriveRequest{TaskIds: make([]string, 101)} }, "/task_ids"},
		"no id":            {func(r *yardv1.RedriveRequest) { *r = yardv1.RedriveRequest{TaskIds: []string{someTask, "x"}} }, "/task_ids/1"},
		"large step":       {func(r *yardv1.RedriveRequest) { r.Limit = 101 }, "/limit"},
		"negative":         {func(r *yardv1.RedriveRequest) { r.Limit = -1 }, "/limit"},
		"cursor":           {func(r *yardv1.RedriveRequest) { r.Cursor = "9.3" }, "/cursor"},
		"no cursor":        {func(r *yardv1.RedriveRequest) { r.Cursor = "x" }, "/cursor"},
		"tasklist":         {func(r *yardv1.RedriveRequest) { r.Filter.Tasklist = "a.b" }, "/filter/tasklist"},
		"wildcard":         {func(r *yardv1.RedriveRequest) { r.Filter.Tasklist = ">" }, "/filter/tasklist"},
		"type":             {func(r *yardv1.RedriveRequest) { r.Filter.Type = "*" }, "/filter/type"},
		"group":            {func(r *yardv1.RedriveRequest) { r.Filter.Group = "a b" }, "/filter/group"},
		"error type":       {func(r *yardv1.RedriveRequest) { r.Filter.ErrorType = strings.Repeat("e", 129) }, "/filter/error_type"},
		"negative time":    {func(r *yardv1.RedriveRequest) { r.Filter.SinceMs = -1 }, "/filter/since_ms"},
		"times":            {func(r *yardv1.RedriveRequest) { r.Filter.SinceMs, r.Filter.UntilMs = 5, 5 }, "/filter/until_ms"},
		"reason":           {func(r *yardv1.RedriveRequest) { r.Reason = strings.Repeat("r", 801) }, "/reason"},
		"by":               {func(r *yardv1.RedriveRequest) { r.By = "\xff" }, "/by"},
		"policy":           {func(r *yardv1.RedriveRequest) { r.Retry.MaxAttempts = -1 }, "/retry/max_attempts"},
		"target":           {func(r *yardv1.RedriveRequest) { r.Tasklist = "a.b" }, "/tasklist"},
		"request":          {func(r *yardv1.RedriveRequest) { r.RequestId = "x" }, "/request_id"},
		"preview too long": {func(r *yardv1.RedriveRequest) { r.Preview, r.Limit = true, 1001 }, "/limit"},
	} {
		r := good()
		c.change(r)
		if _, err := Redrive(r, Form{}); fault.CodeOf(err) != fault.InvalidArgument || fault.From(err).Path != c.path {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := Redrive(&yardv1.RedriveRequest{Filter: &yardv1.DeadLetterFilter{}, Preview: true, Limit: 1000}, Form{}); err != nil || !s.Preview {
		t.Error(err)
	}
}

func TestAPurgeOfLettersIsChecked(t *testing.T) {
	for path, r := range map[string]*yardv1.PurgeDeadLettersRequest{
		"/by":     {TaskIds: []string{someTask}, By: "\xff"},
		"/filter": {},
		"/limit":  {Filter: &yardv1.DeadLetterFilter{}, Limit: 1001},
	} {
		if _, err := PurgeDeadLetters(r); fault.CodeOf(err) != fault.InvalidArgument || fault.From(err).Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// An entry of a request has one name, however often it is sent, and another one for each task.
func TestARedriveIsNamedByItsRequestAndTask(t *testing.T) {
	req := &yardv1.RedriveRequest{TaskIds: []string{someTask}, RequestId: "019aa4ee-0780-7000-8000-000000000002"}
	first, err := Redrive(req, Form{})
	again, err2 := Redrive(req, Form{})
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	id := first.IDs[0]
	if first.RequestOf(id) != again.RequestOf(id) || first.RequestOf(id) == 0 || first.RequestOf(id) == first.RequestOf(ids.TaskID{1}) {
		t.Error("entries are named wrongly")
	}
	req.RequestId = ""
	one, err := Redrive(req, Form{Fresh: ids.NewRequestID(time.Now())})
	two, err2 := Redrive(req, Form{Fresh: ids.NewRequestID(time.Now())})
	if err != nil || err2 != nil || one.RequestOf(id) == two.RequestOf(id) {
		t.Error("requests without an id are one")
	}
}

func TestLettersMatchAFilter(t *testing.T) {
	letter := &logv1.Record{Tasklist: "mail", Type: "x", Group: "acme", ErrorType: "network", FinishedAtMs: 50}
	for i, c := range []struct {
		f    *yardv1.DeadLetterFilter
		want bool
	}{
		{nil, true},
		{&yardv1.DeadLetterFilter{Tasklist: "mail", Type: "x", Group: "acme", ErrorType: "network", SinceMs: 50, UntilMs: 51}, true},
		{&yardv1.DeadLetterFilter{Tasklist: "bulk"}, false},
		{&yardv1.DeadLetterFilter{Type: "y"}, false},
		{&yardv1.DeadLetterFilter{Group: "other"}, false},
		{&yardv1.DeadLetterFilter{ErrorType: "disk"}, false},
		{&yardv1.DeadLetterFilter{SinceMs: 51}, false},
		{&yardv1.DeadLetterFilter{UntilMs: 50}, false},
	} {
		if s := (DeadLetterStep{Filter: c.f}); s.Matches(letter) != c.want {
			t.Errorf("filter %d: %v", i, c.f)
		}
	}
	testkit.Code(t, "error", testkit.Err(CountDeadLetters(&yardv1.CountDeadLettersRequest{PeriodMs: 999})), fault.InvalidArgument)
	if s, err := ListDeadLetters(&yardv1.ListDeadLettersRequest{}); err != nil || s.Limit != ListDefault {
		t.Error(err)
	}
	testkit.Code(t, "error", testkit.Err(PurgeDeadLetters(&yardv1.PurgeDeadLettersRequest{})), fault.InvalidArgument)
}

func TestTasksThatAreNamedTwiceAreOne(t *testing.T) {
	a, b := ids.NewTaskID(time.Now(), 0, 1), ids.NewTaskID(time.Now(), 0, 2)
	s, err := Letters([]string{a.String(), a.String(), b.String(), a.String()}, "")
	if err != nil || !slices.Equal(s.IDs, []ids.TaskID{a, b}) || !slices.Equal(s.Entries, []int{0, 0, 1, 0}) {
		t.Errorf("%v by %v: %v", s.IDs, s.Entries, err)
	}
}
