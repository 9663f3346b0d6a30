package frontend

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// bad is a request that is refused whole, and how. Every limit has its own row
// in package validate; here is one row per way to be wrong, over the wire.
type bad struct {
	verb string
	// json is the body; where it is empty, message in both forms is.
	json    string
	message codec.Message
	code    fault.Code
	path    string
}

func badRequests() map[string]bad {
	const submit = "tasks.submit"
	task := func(change func(*yardv1.NewTask)) codec.Message {
		r := tasks(4)
		change(r.Tasks[3])
		return r
	}
	return map[string]bad{
		"broken JSON":          {verb: submit, json: `{"tasks":[`, code: fault.InvalidArgument, path: "/tasks"},
		"unknown field":        {verb: submit, json: `{"tasklist":"a","taks":[]}`, code: fault.InvalidArgument, path: "/taks"},
		"unknown task field":   {verb: submit, json: `{"tasklist":"a","tasks":[{"type":"t","prio":1}]}`, code: fault.InvalidArgument, path: "/tasks/0/prio"},
		"wrong type":           {verb: submit, json: `{"tasklist":"a","tasks":[{"type":"t","priority":"high"}]}`, code: fault.InvalidArgument, path: "/tasks/0/priority"},
		"a fraction":           {verb: submit, json: `{"tasklist":"a","tasks":[{"type":"t","delay_ms":1.5}]}`, code: fault.InvalidArgument, path: "/tasks/0/delay_ms"},
		"duplicate member":     {verb: submit, json: `{"tasklist":"a","tasklist":"b","tasks":[{"type":"t"}]}`, code: fault.InvalidArgument, path: "/tasklist"},
		"null task":            {verb: submit, json: `{"tasklist":"a","tasks":[null]}`, code: fault.InvalidArgument, path: "/tasks/0"},
		"bad base64":           {verb: submit, json: `{"tasklist":"a","tasks":[{"type":"t","payload":{"$binary":"?"}}]}`, code: fault.InvalidArgument, path: "/tasks/0/payload"},
		"empty body":           {verb: submit, json: ` `, code: fault.InvalidArgument},
		"empty object":         {verb: submit, json: `{}`, code: fault.InvalidArgument, path: "/tasks"},
		"unknown state":        {verb: "tasks.list", json: `{"states":["lost"]}`, code: fault.InvalidArgument, path: "/states/0"},
		"empty batch":          {verb: submit, message: tasks(0), code: fault.InvalidArgument, path: "/tasks"},
		"1001 tasks":           {verb: submit, message: tasks(1001), code: fault.InvalidArgument, path: "/tasks"},
		"no type":              {verb: submit, message: task(func(t *yardv1.NewTask) { t.Type = "" }), code: fault.InvalidArgument, path: "/tasks/3/type"},
		"bad tasklist":         {verb: submit, message: task(func(t *yardv1.NewTask) { t.Tasklist = ">" }), code: fault.InvalidArgument, path: "/tasks/3/tasklist"},
		"large payload":        {verb: submit, message: task(func(t *yardv1.NewTask) { t.Payload.Data = []byte(strings.Repeat("1", 256<<10+1)) }), code: fault.InvalidArgument, path: "/tasks/3/payload"},
		"priority":             {verb: submit, message: task(func(t *yardv1.NewTask) { t.Priority = 6 }), code: fault.InvalidArgument, path: "/tasks/3/priority"},
		"negative delay":       {verb: submit, message: task(func(t *yardv1.NewTask) { t.DelayMs = -1 }), code: fault.InvalidArgument, path: "/tasks/3/delay_ms"},
		"long delay":           {verb: submit, message: task(func(t *yardv1.NewTask) { t.DelayMs = 31_622_400_001 }), code: fault.InvalidTime, path: "/tasks/3/delay_ms"},
		"run_at in the past":   {verb: submit, message: task(func(t *yardv1.NewTask) { t.RunAtMs = 1 }), code: fault.InvalidTime, path: "/tasks/3/run_at_ms"},
		"both times":           {verb: submit, message: task(func(t *yardv1.NewTask) { t.RunAtMs, t.DelayMs = 1, 1 }), code: fault.InvalidArgument, path: "/tasks/3/delay_ms"},
		"retry":                {verb: submit, message: task(func(t *yardv1.NewTask) { t.Retry = &yardv1.RetryPolicy{MaxAttempts: -1} }), code: fault.InvalidArgument, path: "/tasks/3/retry/max_attempts"},
		"error type twice":     {verb: submit, message: task(func(t *yardv1.NewTask) { t.Retry = &yardv1.RetryPolicy{NonRetryable: []string{"a", "a"}} }), code: fault.InvalidArgument, path: "/tasks/3/retry/non_retryable/1"},
		"error type missing":   {verb: submit, message: task(func(t *yardv1.NewTask) { t.Retry = &yardv1.RetryPolicy{ByError: []*yardv1.ErrorRetry{{}}} }), code: fault.InvalidArgument, path: "/tasks/3/retry/by_error/0/error_type"},
		"unknown jitter":       {verb: submit, json: `{"tasklist":"a","tasks":[{"type":"t","retry":{"jitter":"some"}}]}`, code: fault.InvalidArgument, path: "/tasks/0/retry/jitter"},
		"timeout":              {verb: submit, message: task(func(t *yardv1.NewTask) { t.StartToCloseMs = 1 }), code: fault.InvalidArgument, path: "/tasks/3/start_to_close_ms"},
		"wait for several":     {verb: submit, message: &yardv1.SubmitRequest{Tasklist: "a", Tasks: tasks(2).Tasks, Wait: true}, code: fault.InvalidArgument, path: "/wait"},
		"bad request id":       {verb: submit, message: &yardv1.SubmitRequest{Tasklist: "a", Tasks: tasks(1).Tasks, RequestId: "x"}, code: fault.InvalidArgument, path: "/request_id"},
		"poll of several":      {verb: "tasks.poll", json: `{"max_tasks":1,"tasklists":[{"name":"main","weight":2}]}`, code: fault.InvalidArgument, path: "/tasklists"},
		"poll for none":        {verb: "tasks.poll", message: &yardv1.PollRequest{Tasklist: "main"}, code: fault.InvalidArgument, path: "/max_tasks"},
		"poll too long":        {verb: "tasks.poll", message: &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WaitMs: 60_001}, code: fault.InvalidArgument, path: "/wait_ms"},
		"poll version long":    {verb: "tasks.poll", message: &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WorkerVersion: strings.Repeat("x", 65)}, code: fault.InvalidArgument, path: "/worker_version"},
		"pollers of nothing":   {verb: "tasklists.pollers", message: &yardv1.TasklistPollersRequest{}, code: fault.InvalidArgument, path: "/tasklist"},
		"pollers too many":     {verb: "tasklists.pollers", message: &yardv1.TasklistPollersRequest{Tasklist: "main", Limit: 1001}, code: fault.InvalidArgument, path: "/limit"},
		"pollers cursor long":  {verb: "tasklists.pollers", message: &yardv1.TasklistPollersRequest{Tasklist: "main", Cursor: strings.Repeat("x", 129)}, code: fault.InvalidArgument, path: "/cursor"},
		"top too many":         {verb: "limits.top", message: &yardv1.TopLimitsRequest{Limit: 101}, code: fault.InvalidArgument, path: "/limit"},
		"top negative":         {verb: "limits.top", message: &yardv1.TopLimitsRequest{Each: -1}, code: fault.InvalidArgument, path: "/each"},
		"top of something":     {verb: "limits.top", json: `{"order":"waiting"}`, code: fault.InvalidArgument, path: "/order"},
		"complete nothing":     {verb: "tasks.complete", message: &yardv1.CompleteRequest{}, code: fault.InvalidArgument, path: "/tasks"},
		"complete bad id":      {verb: "tasks.complete", message: &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{{TaskId: "x"}}}, code: fault.InvalidArgument, path: "/tasks/0/task_id"},
		"fail bad token":       {verb: "tasks.fail", message: &yardv1.FailRequest{Tasks: []*yardv1.Failure{{TaskId: ids.TaskID{}.String(), Token: "x"}}}, code: fault.InvalidArgument, path: "/tasks/0/token"},
		"heartbeat nothing":    {verb: "tasks.heartbeat", message: &yardv1.HeartbeatRequest{}, code: fault.InvalidArgument, path: "/tasks"},
		"cancel bad id":        {verb: "tasks.cancel", message: &yardv1.CancelRequest{TaskIds: []string{"x"}}, code: fault.InvalidArgument, path: "/task_ids/0"},
		"get bad id":           {verb: "tasks.get", message: &yardv1.GetRequest{TaskId: "x"}, code: fault.InvalidArgument, path: "/task_id"},
		"get of no partition":  {verb: "tasks.get", message: &yardv1.GetRequest{TaskId: ids.NewTaskID(farPast, 1000, 1).String()}, code: fault.NotFound},
		"list too many":        {verb: "tasks.list", message: &yardv1.ListRequest{Limit: 1001}, code: fault.InvalidArgument, path: "/limit"},
		"describe nothing":     {verb: "tasklists.describe", message: &yardv1.DescribeTasklistRequest{}, code: fault.InvalidArgument, path: "/tasklist"},
		"tasklist priority":    {verb: "tasklists.put", message: &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "mail", Priority: 6}}, code: fault.InvalidArgument, path: "/tasklist/priority"},
		"tasklist unknown":     {verb: "tasklists.put", json: `{"tasklist":{"name":"mail","colour":"red"}}`, code: fault.InvalidArgument, path: "/tasklist/colour"},
		"tasklist without set": {verb: "tasklists.get", message: &yardv1.GetTasklistRequest{Name: "nothing"}, code: fault.NotFound, path: "/name"},
		"tasklists too many":   {verb: "tasklists.list", message: &yardv1.ListTasklistsRequest{Limit: 1001}, code: fault.InvalidArgument, path: "/limit"},
		"type without a name":  {verb: "types.put", message: &yardv1.PutTypeRequest{Type: &yardv1.TaskType{}}, code: fault.InvalidArgument, path: "/type/name"},
		"type that is no key":  {verb: "types.put", message: &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "a..b"}}, code: fault.InvalidArgument, path: "/type/name"},
		"type deliveries":      {verb: "types.put", message: &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "a", Retry: &yardv1.RetryPolicy{MaxDeliveries: -1}}}, code: fault.InvalidArgument, path: "/type/retry/max_deliveries"},
		"pause without name":   {verb: "tasklists.pause", message: &yardv1.PauseRequest{}, code: fault.InvalidArgument, path: "/name"},
		"pause too short":      {verb: "tasklists.pause", message: &yardv1.PauseRequest{Name: "main", ForMs: 999}, code: fault.InvalidArgument, path: "/for_ms"},
		"pause of no key":      {verb: "types.pause", message: &yardv1.PauseRequest{Name: "a..b"}, code: fault.InvalidArgument, path: "/name"},
		"tasklist not paused":  {verb: "tasklists.resume", message: &yardv1.ResumeRequest{Name: "main"}, code: fault.NotFound, path: "/name"},
		"type not paused":      {verb: "types.resume", message: &yardv1.ResumeRequest{Name: "pay"}, code: fault.NotFound, path: "/name"},
		"type without setting": {verb: "types.get", message: &yardv1.GetTypeRequest{Name: "nothing"}, code: fault.NotFound, path: "/name"},
	}
}

// badSettings are of groups and of limits that types share.
func badSettings() map[string]bad {
	return map[string]bad{
		"type of no limit":    {verb: "types.put", message: &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "a", Limits: []string{"nothing"}}}, code: fault.FailedPrecondition, path: "/type/limits/0"},
		"group of nothing":    {verb: "groups.put", message: &yardv1.PutGroupRequest{}, code: fault.InvalidArgument, path: "/group"},
		"group without":       {verb: "groups.get", message: &yardv1.GetGroupRequest{Name: "nothing"}, code: fault.NotFound, path: "/name"},
		"groups too many":     {verb: "groups.list", message: &yardv1.ListGroupsRequest{Limit: 1001}, code: fault.InvalidArgument, path: "/limit"},
		"group deleted twice": {verb: "groups.delete", message: &yardv1.DeleteGroupRequest{Name: "nothing"}, code: fault.NotFound, path: "/name"},
		"limit of nothing":    {verb: "limits.put", message: &yardv1.PutLimitRequest{Limit: &yardv1.Limit{Name: "acme"}}, code: fault.InvalidArgument, path: "/limit"},
		"limit not created":   {verb: "limits.get", message: &yardv1.GetLimitRequest{Name: "nothing"}, code: fault.NotFound, path: "/name"},
		"limits too many":     {verb: "limits.list", message: &yardv1.ListLimitsRequest{Limit: 1001}, code: fault.InvalidArgument, path: "/limit"},
		"limit deleted twice": {verb: "limits.delete", message: &yardv1.DeleteLimitRequest{Name: "nothing"}, code: fault.NotFound, path: "/name"},
	}
}

func TestBadRequestsAreRefusedWholeAndStoreNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	check := func(t *testing.T, c bad, form codec.ContentType, body []byte) {
		t.Helper()
		answer := s.raw(topology.API("shop", c.verb), nats.Header{codec.HeaderContentType: {string(form)}}, body)
		e := refusalOf(answer)
		if e == nil {
			t.Fatalf("%s: accepted: %s", form, answer.Data)
		}
		if e.Code != c.code || e.Path != c.path || e.Message == "" {
			t.Errorf("%s: got %s at %q (%s), want %s at %q", form, e.Code, e.Path, e.Message, c.code, c.path)
		}
	}
	all := badRequests()
	maps.Copy(all, badSettings())
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			if c.json != "" {
				check(t, c, codec.JSON, []byte(c.json))
				return
			}
			for _, form := range []codec.ContentType{codec.JSON, codec.Protobuf} {
				body, err := codec.Marshal(form, c.message)
				testkit.NoError(t, err)
				check(t, c, form, body)
			}
		})
	}
	t.Run("protobuf with an unknown field", func(t *testing.T) {
		body, err := codec.Marshal(codec.Protobuf, tasks(1))
		testkit.NoError(t, err)
		check(t, bad{verb: "tasks.submit", code: fault.InvalidArgument, path: "/#100"}, codec.Protobuf, append(body, 0xa0, 0x06, 0x01))
	})
	t.Run("broken protobuf", func(t *testing.T) {
		check(t, bad{verb: "tasks.submit", code: fault.InvalidArgument}, codec.Protobuf, []byte("{}"))
	})
	t.Run("JSON payload that is none, in protobuf", func(t *testing.T) {
		req := tasks(1)
		req.Tasks[0].Payload.Data = []byte("{")
		body, err := codec.Marshal(codec.Protobuf, req)
		testkit.NoError(t, err)
		check(t, bad{verb: "tasks.submit", code: fault.InvalidArgument, path: "/tasks/0/payload"}, codec.Protobuf, body)
	})
	t.Run("JSON payload that no answer in JSON could hold, in protobuf", func(t *testing.T) {
		req := tasks(1)
		req.Tasks[0].Payload.Data = []byte(strings.Repeat("[", 9999) + strings.Repeat("]", 9999))
		body, err := codec.Marshal(codec.Protobuf, req)
		testkit.NoError(t, err)
		check(t, bad{verb: "tasks.submit", code: fault.InvalidArgument, path: "/tasks/0/payload"}, codec.Protobuf, body)
	})
	t.Run("a content type as long as a message", func(t *testing.T) {
		check(t, bad{verb: "tasks.submit", code: fault.InvalidArgument}, codec.ContentType(strings.Repeat("x", 1900<<10)), []byte("{}"))
	})
	t.Run("unknown content type", func(t *testing.T) {
		check(t, bad{verb: "tasks.submit", code: fault.InvalidArgument}, "text/plain", []byte("{}"))
	})
	testkit.Equal(t, "messages were stored", s.stored(), 0)
}

func TestBadDomainsAreRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for domain, code := range map[string]fault.Code{"nobody": fault.NotFound, "admin": fault.InvalidArgument, strings.Repeat("x", 65): fault.InvalidArgument} {
		for verb, message := range map[string]codec.Message{
			"tasks.submit": tasks(1), "tasks.poll": &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1},
			"tasks.complete": &yardv1.CompleteRequest{}, "tasks.get": &yardv1.GetRequest{}, "tasks.list": &yardv1.ListRequest{}, "tasks.explain": &yardv1.ExplainRequest{}, "tasks.stuck": &yardv1.StuckTasksRequest{}, "tasks.end": &yardv1.EndTasksRequest{},
			"tasklists.describe": &yardv1.DescribeTasklistRequest{}, "tasklists.put": &yardv1.PutTasklistRequest{}, "tasklists.list": &yardv1.ListTasklistsRequest{}, "types.put": &yardv1.PutTypeRequest{}, "types.get": &yardv1.GetTypeRequest{},
			"tasklists.pause": &yardv1.PauseRequest{}, "tasklists.resume": &yardv1.ResumeRequest{}, "types.pause": &yardv1.PauseRequest{}, "types.resume": &yardv1.ResumeRequest{},
			"tasklists.pollers": &yardv1.TasklistPollersRequest{}, "limits.top": &yardv1.TopLimitsRequest{},
			"tasklists.drain": &yardv1.PauseRequest{}, "tasklists.purge": &yardv1.PurgeRequest{}, "types.drain": &yardv1.PauseRequest{}, "types.purge": &yardv1.PurgeRequest{},
			"deadletters.list": &yardv1.ListDeadLettersRequest{}, "deadletters.count": &yardv1.CountDeadLettersRequest{}, "deadletters.get": &yardv1.GetDeadLetterRequest{},
			"deadletters.redrive": &yardv1.RedriveRequest{}, "deadletters.purge": &yardv1.PurgeDeadLettersRequest{},
			"workers.list": &yardv1.ListWorkersRequest{}, "workers.drain": &yardv1.DrainWorkerRequest{}, "workers.stop": &yardv1.StopWorkerRequest{}, "workers.resume": &yardv1.ResumeWorkerRequest{},
			"timers.count": &yardv1.CountTimersRequest{}, "audit.list": &yardv1.ListAuditRequest{},
			"keys.list": &yardv1.ListKeysRequest{}, "keys.get": &yardv1.GetKeyRequest{}, "keys.unblock": &yardv1.UnblockKeyRequest{}, "keys.skip": &yardv1.SkipKeyRequest{},
			"limits.put": &yardv1.PutLimitRequest{}, "limits.get": &yardv1.GetLimitRequest{}, "limits.list": &yardv1.ListLimitsRequest{}, "limits.delete": &yardv1.DeleteLimitRequest{},
			"groups.put": &yardv1.PutGroupRequest{}, "groups.get": &yardv1.GetGroupRequest{}, "groups.list": &yardv1.ListGroupsRequest{}, "groups.delete": &yardv1.DeleteGroupRequest{},
			"groups.pause": &yardv1.PauseRequest{}, "groups.resume": &yardv1.ResumeRequest{}, "groups.drain": &yardv1.PauseRequest{}, "groups.purge": &yardv1.PurgeRequest{},
		} {
			if e := s.ask(topology.API(domain, verb), message, nil); fault.CodeOf(e) != code {
				t.Errorf("%s of %q: got %v, want %s", verb, domain, e, code)
			}
		}
	}
	for _, name := range []string{"admin", "a.b", ""} {
		e := s.ask(topology.Admin("domains.put"), &yardv1.PutDomainRequest{Domain: &yardv1.Domain{Name: name}}, nil)
		if fault.CodeOf(e) != fault.InvalidArgument || e.Path != "/domain/name" {
			t.Errorf("put %q: %v", name, e)
		}
	}
	testkit.Equal(t, "messages were stored", s.stored(), 0)
}

// R55: a verb of a later version is answered, so that its client need not take us for one that is away. No one answers a verb that no version plans.
func TestR55_VerbsOfLaterVersionsAreUnimplemented(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, verb := range topology.APIPlanned() {
		verb = strings.ReplaceAll(verb, "*", "whatever")
		testkit.Code(t, verb, s.ask(topology.API("shop", verb), &yardv1.GetRequest{}, nil), fault.Unimplemented)
	}
	for _, subject := range []string{topology.API("shop", "tasks.whatever"), topology.API("shop", "whatever.get"), topology.Admin("whatever.get")} {
		if _, err := s.client.Request(subject, nil, time.Second); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%s: %v", subject, err)
		}
	}
}

// The subject of a poll may name its tasklist, and then nothing else may.
func TestAPollsSubjectNamesItsTasklist(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	polls := make(chan *nats.Msg, 9)
	s.matching(func(m *nats.Msg) { polls <- m })
	subject := topology.PollOf("shop", "main")
	for _, named := range []string{"", "main"} {
		m := &nats.Msg{Subject: subject, Reply: s.client.NewInbox(), Data: testkit.Encoded(t, &yardv1.PollRequest{Tasklist: named, MaxTasks: 1}), Header: nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}}}
		var poll *nats.Msg
		testkit.Eventually(t, 30*time.Second, func() error { // on a busy machine a poll without a wait may be over before it is sent on
			testkit.NoError(t, s.client.PublishMsg(m))
			select {
			case poll = <-polls:
				return nil
			case <-time.After(time.Second):
				return errors.New("matching has no poll")
			}
		})
		var got rpcv1.Poll
		if err := got.UnmarshalVT(poll.Data); err != nil || got.Tasklist != "main" || got.Domain != "shop" {
			t.Errorf("tasklist %q: %v %v", named, &got, err)
		}
	}
	for named, subject := range map[string]string{"other": subject, "": topology.PollOf("shop", "a,b")} {
		e := s.ask(subject, &yardv1.PollRequest{Tasklist: named, MaxTasks: 1}, nil)
		if fault.CodeOf(e) != fault.InvalidArgument || e.Path != "/tasklist" {
			t.Errorf("%q to %s: %v", named, subject, e)
		}
	}
}
