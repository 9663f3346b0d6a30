package validate

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var (
	goodID    = ids.NewTaskID(now, 1, 7)
	tokens    = ids.NewTokens([ids.TokenSecretBytes]byte{1})
	goodToken = ids.Token{Position: ids.NewPosition(9, 3), Version: 2, Nonce: 5}
)

// refusals runs a table of bad inputs against one way of checking.
func refusals[Req any](t *testing.T, good func() Req, judge func(Req) error, table map[string]struct {
	change func(Req)
	path   string
},
) {
	t.Helper()
	testkit.NoError(t, judge(good()))
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.change(r)
			wants{fault.InvalidArgument, c.path}.check(t, judge(r))
		})
	}
}

type row[Req any] = struct {
	change func(Req)
	path   string
}

func TestPollRefuses(t *testing.T) {
	refusals(t, func() *yardv1.PollRequest {
		return &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1000, WaitMs: 60_000, Types: []string{"a", "b.c"}, Worker: "w", WorkerId: "aZ09-_aZ09-_aZ09"}
	}, func(r *yardv1.PollRequest) error { return Poll(r, "", WaitMax) }, map[string]row[*yardv1.PollRequest]{
		"no tasklist":     {func(r *yardv1.PollRequest) { r.Tasklist = "" }, "/tasklist"},
		"no tasks":        {func(r *yardv1.PollRequest) { r.MaxTasks = 0 }, "/max_tasks"},
		"negative":        {func(r *yardv1.PollRequest) { r.MaxTasks = -1 }, "/max_tasks"},
		"too many":        {func(r *yardv1.PollRequest) { r.MaxTasks = 1001 }, "/max_tasks"},
		"negative wait":   {func(r *yardv1.PollRequest) { r.WaitMs = -1 }, "/wait_ms"},
		"long wait":       {func(r *yardv1.PollRequest) { r.WaitMs = 60_001 }, "/wait_ms"},
		"bad type":        {func(r *yardv1.PollRequest) { r.Types[1] = "" }, "/types/1"},
		"many types":      {func(r *yardv1.PollRequest) { r.Types = make([]string, 101) }, "/types"},
		"long worker":     {func(r *yardv1.PollRequest) { r.Worker = strings.Repeat("w", 129) }, "/worker"},
		"worker no UTF-8": {func(r *yardv1.PollRequest) { r.Worker = "\xff" }, "/worker"},
		"a short id":      {func(r *yardv1.PollRequest) { r.WorkerId = r.WorkerId[1:] }, "/worker_id"},
		"a long id":       {func(r *yardv1.PollRequest) { r.WorkerId = strings.Repeat("w", 65) }, "/worker_id"},
		"an id with dots": {func(r *yardv1.PollRequest) { r.WorkerId = "aZ09-_.aZ09-_aZ09" }, "/worker_id"},
		"many inboxes":    {func(r *yardv1.PollRequest) { r.Unanswered = make([]string, 17) }, "/unanswered"},
		"long inbox":      {func(r *yardv1.PollRequest) { r.Unanswered = []string{"a", strings.Repeat("i", 257)} }, "/unanswered/1"},
	})
}

func TestCompleteRefuses(t *testing.T) {
	refusals(t, func() *yardv1.CompleteRequest {
		entry := func() *yardv1.Completion {
			return &yardv1.Completion{TaskId: goodID.String(), Token: tokens.Print(goodID, goodToken), Result: &yardv1.Payload{Data: []byte("1")}}
		}
		return &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{entry(), entry()}}
	}, func(r *yardv1.CompleteRequest) error { _, err := Complete(r, "shop", tokens, Form{}); return err },
		map[string]row[*yardv1.CompleteRequest]{
			"none":         {func(r *yardv1.CompleteRequest) { r.Tasks = nil }, "/tasks"},
			"many":         {func(r *yardv1.CompleteRequest) { r.Tasks = make([]*yardv1.Completion, 1001) }, "/tasks"},
			"null":         {func(r *yardv1.CompleteRequest) { r.Tasks[1] = nil }, "/tasks/1"},
			"bad id":       {func(r *yardv1.CompleteRequest) { r.Tasks[1].TaskId = "x" }, "/tasks/1/task_id"},
			"bad token":    {func(r *yardv1.CompleteRequest) { r.Tasks[1].Token = "x" }, "/tasks/1/token"},
			"large result": {func(r *yardv1.CompleteRequest) { r.Tasks[1].Result.Data = make([]byte, 256<<10+1) }, "/tasks/1/result"},
			"no JSON":      {func(r *yardv1.CompleteRequest) { r.Tasks[1].Result.Data = []byte("x") }, "/tasks/1/result"},
		})
}

func TestFailRefuses(t *testing.T) {
	refusals(t, func() *yardv1.FailRequest {
		return &yardv1.FailRequest{Tasks: []*yardv1.Failure{{TaskId: goodID.String(), Token: tokens.Print(goodID, goodToken), DelayMs: 2_592_000_000}}}
	}, func(r *yardv1.FailRequest) error { _, err := Fail(r, "shop", tokens); return err },
		map[string]row[*yardv1.FailRequest]{
			"none":           {func(r *yardv1.FailRequest) { r.Tasks = nil }, "/tasks"},
			"null":           {func(r *yardv1.FailRequest) { r.Tasks[0] = nil }, "/tasks/0"},
			"bad id":         {func(r *yardv1.FailRequest) { r.Tasks[0].TaskId = "" }, "/tasks/0/task_id"},
			"bad token":      {func(r *yardv1.FailRequest) { r.Tasks[0].Token = "" }, "/tasks/0/token"},
			"long message":   {func(r *yardv1.FailRequest) { r.Tasks[0].Message = strings.Repeat("m", 4097) }, "/tasks/0/message"},
			"no UTF-8":       {func(r *yardv1.FailRequest) { r.Tasks[0].Message = "\xff" }, "/tasks/0/message"},
			"long type":      {func(r *yardv1.FailRequest) { r.Tasks[0].ErrorType = strings.Repeat("m", 129) }, "/tasks/0/error_type"},
			"negative delay": {func(r *yardv1.FailRequest) { r.Tasks[0].DelayMs = -1 }, "/tasks/0/delay_ms"},
			"last and delay": {func(r *yardv1.FailRequest) { r.Tasks[0].NonRetryable, r.Tasks[0].DelayMs = true, 5 }, "/tasks/0/delay_ms"},
			"long delay":     {func(r *yardv1.FailRequest) { r.Tasks[0].DelayMs = 2_592_000_001 }, "/tasks/0/delay_ms"},
			"not started with delay": {
				func(r *yardv1.FailRequest) { r.Tasks[0].NotStarted = true }, "/tasks/0/not_started",
			},
			"snooze without delay": {
				func(r *yardv1.FailRequest) { r.Tasks[0].Snooze, r.Tasks[0].DelayMs = true, 0 }, "/tasks/0/delay_ms",
			},
			"snooze with error type": {
				func(r *yardv1.FailRequest) { r.Tasks[0].Snooze, r.Tasks[0].ErrorType = true, "x" }, "/tasks/0/snooze",
			},
			"last and snooze": {
				func(r *yardv1.FailRequest) { r.Tasks[0].Snooze, r.Tasks[0].NonRetryable = true, true }, "/tasks/0/delay_ms",
			},
			"not started and snooze": {
				func(r *yardv1.FailRequest) { r.Tasks[0].Snooze, r.Tasks[0].NotStarted = true, true }, "/tasks/0/not_started",
			},
		})
}

func TestHeartbeatRefuses(t *testing.T) {
	refusals(t, func() *yardv1.HeartbeatRequest {
		return &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{TaskId: goodID.String(), Token: tokens.Print(goodID, goodToken), Progress: &yardv1.Payload{Data: []byte("1")}}}}
	}, func(r *yardv1.HeartbeatRequest) error { _, err := Heartbeat(r, "shop", tokens, Form{}); return err },
		map[string]row[*yardv1.HeartbeatRequest]{
			"none":           {func(r *yardv1.HeartbeatRequest) { r.Tasks = nil }, "/tasks"},
			"null":           {func(r *yardv1.HeartbeatRequest) { r.Tasks[0] = nil }, "/tasks/0"},
			"bad id":         {func(r *yardv1.HeartbeatRequest) { r.Tasks[0].TaskId = "" }, "/tasks/0/task_id"},
			"bad token":      {func(r *yardv1.HeartbeatRequest) { r.Tasks[0].Token = "" }, "/tasks/0/token"},
			"large progress": {func(r *yardv1.HeartbeatRequest) { r.Tasks[0].Progress.Data = make([]byte, 4097) }, "/tasks/0/progress"},
		})
}

func TestCancelRefuses(t *testing.T) {
	refusals(t, func() *yardv1.CancelRequest {
		return &yardv1.CancelRequest{TaskIds: []string{goodID.String(), goodID.String()}, Reason: "r"}
	}, func(r *yardv1.CancelRequest) error { _, err := Cancel(r, "shop"); return err },
		map[string]row[*yardv1.CancelRequest]{
			"none":        {func(r *yardv1.CancelRequest) { r.TaskIds = nil }, "/task_ids"},
			"many":        {func(r *yardv1.CancelRequest) { r.TaskIds = make([]string, 1001) }, "/task_ids"},
			"bad id":      {func(r *yardv1.CancelRequest) { r.TaskIds[1] = "x" }, "/task_ids/1"},
			"long reason": {func(r *yardv1.CancelRequest) { r.Reason = strings.Repeat("r", 1025) }, "/reason"},
		})
}

func TestGetRefuses(t *testing.T) {
	refusals(t, func() *yardv1.GetRequest { return &yardv1.GetRequest{TaskId: goodID.String(), WaitMs: 60_000} },
		func(r *yardv1.GetRequest) error { _, err := Get(r); return err },
		map[string]row[*yardv1.GetRequest]{
			"bad id":        {func(r *yardv1.GetRequest) { r.TaskId = "x" }, "/task_id"},
			"negative wait": {func(r *yardv1.GetRequest) { r.WaitMs = -1 }, "/wait_ms"},
			"long wait":     {func(r *yardv1.GetRequest) { r.WaitMs = 60_001 }, "/wait_ms"},
		})
}

func TestListRefuses(t *testing.T) {
	refusals(t, func() *yardv1.ListRequest {
		return &yardv1.ListRequest{Tasklist: "main", Type: "a.b", States: []yardv1.TaskState{1, 8}, Limit: 1000}
	}, List, map[string]row[*yardv1.ListRequest]{
		"bad tasklist":  {func(r *yardv1.ListRequest) { r.Tasklist = "*" }, "/tasklist"},
		"bad type":      {func(r *yardv1.ListRequest) { r.Type = "*" }, "/type"},
		"state 0":       {func(r *yardv1.ListRequest) { r.States[1] = 0 }, "/states/1"},
		"unknown state": {func(r *yardv1.ListRequest) { r.States[1] = 99 }, "/states/1"},
		"many states":   {func(r *yardv1.ListRequest) { r.States = make([]yardv1.TaskState, 100) }, "/states"},
		"large limit":   {func(r *yardv1.ListRequest) { r.Limit = 1001 }, "/limit"},
		"negative":      {func(r *yardv1.ListRequest) { r.Limit = -1 }, "/limit"},
	})
	r := &yardv1.ListRequest{}
	if err := List(r); err != nil || r.Limit != ListDefault {
		t.Errorf("default limit: %d %v", r.Limit, err)
	}
}

func TestPutDomainRefuses(t *testing.T) {
	refusals(t, func() *yardv1.PutDomainRequest {
		return &yardv1.PutDomainRequest{Domain: &yardv1.Domain{Name: "shop", RetentionMs: 900_000, MaxConcurrency: 1_000_000, DeadLettersMaxAgeMs: 60_000, DeadLettersMax: 10_000_000, Quota: &yardv1.Quota{
			SubmitTasksPerS: 10_000_000, SubmitBytesPerS: 1000, OpenPolls: 1_000_000, WaitingTasks: 1_000_000_000, StoredBytes: 1000,
		}}}
	}, PutDomain, map[string]row[*yardv1.PutDomainRequest]{
		"none":             {func(r *yardv1.PutDomainRequest) { r.Domain = nil }, "/domain"},
		"bad name":         {func(r *yardv1.PutDomainRequest) { r.Domain.Name = "a.b" }, "/domain/name"},
		"reserved":         {func(r *yardv1.PutDomainRequest) { r.Domain.Name = "admin" }, "/domain/name"},
		"long description": {func(r *yardv1.PutDomainRequest) { r.Domain.Description = strings.Repeat("d", 1025) }, "/domain/description"},
		"short retention":  {func(r *yardv1.PutDomainRequest) { r.Domain.RetentionMs = 899_999 }, "/domain/retention_ms"},
		"long retention":   {func(r *yardv1.PutDomainRequest) { r.Domain.RetentionMs = 31_622_400_001 }, "/domain/retention_ms"},
		"concurrency":      {func(r *yardv1.PutDomainRequest) { r.Domain.MaxConcurrency = 1_000_001 }, "/domain/max_concurrency"},
		"negative":         {func(r *yardv1.PutDomainRequest) { r.Domain.MaxConcurrency = -1 }, "/domain/max_concurrency"},
		"short-lived":      {func(r *yardv1.PutDomainRequest) { r.Domain.DeadLettersMaxAgeMs = 59_999 }, "/domain/dead_letters_max_age_ms"},
		"many letters":     {func(r *yardv1.PutDomainRequest) { r.Domain.DeadLettersMax = 10_000_001 }, "/domain/dead_letters_max"},
		"negative letters": {func(r *yardv1.PutDomainRequest) { r.Domain.DeadLettersMax = -1 }, "/domain/dead_letters_max"},
		"late, no events":  {func(r *yardv1.PutDomainRequest) { r.Domain.LateAfterMs = 1000 }, "/domain/late_after_ms"},
		"stuck, no events": {func(r *yardv1.PutDomainRequest) { r.Domain.StuckAfterMs = 1000 }, "/domain/stuck_after_ms"},
		"late at once":     {func(r *yardv1.PutDomainRequest) { r.Domain.Events, r.Domain.LateAfterMs = true, 999 }, "/domain/late_after_ms"},
		"stuck much later": {func(r *yardv1.PutDomainRequest) { r.Domain.Events, r.Domain.StuckAfterMs = true, ms(AheadMax)+1 }, "/domain/stuck_after_ms"},
		"negative traces":  {func(r *yardv1.PutDomainRequest) { r.Domain.TraceRatio = proto.Float64(-0.1) }, "/domain/trace_ratio"},
		"more than traces": {func(r *yardv1.PutDomainRequest) { r.Domain.TraceRatio = proto.Float64(1.1) }, "/domain/trace_ratio"},
		"no ratio":         {func(r *yardv1.PutDomainRequest) { r.Domain.TraceRatio = proto.Float64(math.NaN()) }, "/domain/trace_ratio"},
		"much full weight": {func(r *yardv1.PutDomainRequest) { r.Domain.FullWeightTasksPerS = 10_000_001 }, "/domain/full_weight_tasks_per_s"},
		"many tasks":       {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.SubmitTasksPerS = 10_000_001 }, "/domain/quota/submit_tasks_per_s"},
		"negative tasks":   {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.SubmitTasksPerS = -1 }, "/domain/quota/submit_tasks_per_s"},
		"few bytes":        {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.SubmitBytesPerS = 999 }, "/domain/quota/submit_bytes_per_s"},
		"many bytes":       {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.SubmitBytesPerS = 100_000_000_001 }, "/domain/quota/submit_bytes_per_s"},
		"many polls":       {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.OpenPolls = 1_000_001 }, "/domain/quota/open_polls"},
		"many waiting":     {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.WaitingTasks = 1_000_000_001 }, "/domain/quota/waiting_tasks"},
		"negative waiting": {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.WaitingTasks = -1 }, "/domain/quota/waiting_tasks"},
		"few stored":       {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.StoredBytes = 999 }, "/domain/quota/stored_bytes"},
		"many stored":      {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.StoredBytes = 1_000_000_000_000_001 }, "/domain/quota/stored_bytes"},
		"negative polls":   {func(r *yardv1.PutDomainRequest) { r.Domain.Quota.OpenPolls = -1 }, "/domain/quota/open_polls"},
	})
	r := &yardv1.PutDomainRequest{Domain: &yardv1.Domain{Name: "shop"}}
	if err := PutDomain(r); err != nil || r.Domain.RetentionMs != 604_800_000 {
		t.Errorf("default retention: %v %v", r.Domain, err)
	}
}

func TestPutTypeRefuses(t *testing.T) {
	refusals(t, func() *yardv1.PutTypeRequest {
		return &yardv1.PutTypeRequest{Type: &yardv1.TaskType{
			Name: "email.send", Retry: &yardv1.RetryPolicy{}, MaxConcurrency: 1_000_000, Limits: []string{"a", "b", "c", "d", "e", "f", "g", "h"},
		}}
	}, PutType, map[string]row[*yardv1.PutTypeRequest]{
		"none":        {func(r *yardv1.PutTypeRequest) { r.Type = nil }, "/type"},
		"no name":     {func(r *yardv1.PutTypeRequest) { r.Type.Name = "" }, "/type/name"},
		"retry":       {func(r *yardv1.PutTypeRequest) { r.Type.Retry.Backoff = -1 }, "/type/retry/backoff"},
		"timeout":     {func(r *yardv1.PutTypeRequest) { r.Type.StartToCloseMs = 1 }, "/type/start_to_close_ms"},
		"heartbeat":   {func(r *yardv1.PutTypeRequest) { r.Type.HeartbeatTimeoutMs = 1 }, "/type/heartbeat_timeout_ms"},
		"start":       {func(r *yardv1.PutTypeRequest) { r.Type.StartWithinMs = 1 }, "/type/start_within_ms"},
		"finish":      {func(r *yardv1.PutTypeRequest) { r.Type.FinishWithinMs = -1 }, "/type/finish_within_ms"},
		"crossed":     {func(r *yardv1.PutTypeRequest) { r.Type.StartWithinMs, r.Type.FinishWithinMs = 200, 199 }, "/type/start_within_ms"},
		"cost":        {func(r *yardv1.PutTypeRequest) { r.Type.Cost = 1001 }, "/type/cost"},
		"below none":  {func(r *yardv1.PutTypeRequest) { r.Type.Cost = -1 }, "/type/cost"},
		"concurrency": {func(r *yardv1.PutTypeRequest) { r.Type.MaxConcurrency = 1_000_001 }, "/type/max_concurrency"},
		"negative":    {func(r *yardv1.PutTypeRequest) { r.Type.MaxConcurrency = -1 }, "/type/max_concurrency"},
		"limits":      {func(r *yardv1.PutTypeRequest) { r.Type.Limits = append(r.Type.Limits, "i") }, "/type/limits"},
		"limit name":  {func(r *yardv1.PutTypeRequest) { r.Type.Limits[7] = "a.b" }, "/type/limits/7"},
		"no limit":    {func(r *yardv1.PutTypeRequest) { r.Type.Limits[0] = "" }, "/type/limits/0"},
		"limit twice": {func(r *yardv1.PutTypeRequest) { r.Type.Limits[6] = "c" }, "/type/limits/6"},
	})
}

func TestPutTasklistRefuses(t *testing.T) {
	refusals(t, func() *yardv1.PutTasklistRequest {
		return &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "main", MaxConcurrency: 1_000_000, MaxQueued: 100_000_000}}
	}, PutTasklist, map[string]row[*yardv1.PutTasklistRequest]{
		"concurrency": {func(r *yardv1.PutTasklistRequest) { r.Tasklist.MaxConcurrency = 1_000_001 }, "/tasklist/max_concurrency"},
		"negative":    {func(r *yardv1.PutTasklistRequest) { r.Tasklist.MaxConcurrency = -1 }, "/tasklist/max_concurrency"},
		"queued":      {func(r *yardv1.PutTasklistRequest) { r.Tasklist.MaxQueued = 100_000_001 }, "/tasklist/max_queued"},
		"queued < 0":  {func(r *yardv1.PutTasklistRequest) { r.Tasklist.MaxQueued = -1 }, "/tasklist/max_queued"},
	})
}

func TestPauseRefuses(t *testing.T) {
	good := func(name string, forMS int64) func() *yardv1.PauseRequest {
		return func() *yardv1.PauseRequest {
			return &yardv1.PauseRequest{Name: name, Reason: strings.Repeat("r", 1024), By: strings.Repeat("b", 128), ForMs: forMS}
		}
	}
	for _, forMS := range []int64{0, 1000} {
		refusals(t, good("main", forMS), Tasklist.Pause, nil)
	}
	for k, name := range map[Kind]string{Tasklist: strings.Repeat("n", 64), Type: "email.send", Group: "acme.de"} {
		refusals(t, good(name, 31_622_400_000), k.Pause, map[string]row[*yardv1.PauseRequest]{
			"no name":         {func(r *yardv1.PauseRequest) { r.Name = "" }, "/name"},
			"long name":       {func(r *yardv1.PauseRequest) { r.Name = strings.Repeat("n", 65) }, "/name"},
			"space":           {func(r *yardv1.PauseRequest) { r.Name = "a b" }, "/name"},
			"wildcard":        {func(r *yardv1.PauseRequest) { r.Name = "*" }, "/name"},
			"dot first":       {func(r *yardv1.PauseRequest) { r.Name = ".send" }, "/name"},
			"dot last":        {func(r *yardv1.PauseRequest) { r.Name = "email." }, "/name"},
			"dots":            {func(r *yardv1.PauseRequest) { r.Name = "email..send" }, "/name"},
			"long reason":     {func(r *yardv1.PauseRequest) { r.Reason += "r" }, "/reason"},
			"reason no UTF-8": {func(r *yardv1.PauseRequest) { r.Reason = "\xff" }, "/reason"},
			"long by":         {func(r *yardv1.PauseRequest) { r.By += "b" }, "/by"},
			"by no UTF-8":     {func(r *yardv1.PauseRequest) { r.By = "\xff" }, "/by"},
			"negative":        {func(r *yardv1.PauseRequest) { r.ForMs = -1 }, "/for_ms"},
			"short":           {func(r *yardv1.PauseRequest) { r.ForMs = 999 }, "/for_ms"},
			"long":            {func(r *yardv1.PauseRequest) { r.ForMs++ }, "/for_ms"},
		})
		refusals(t, func() *yardv1.ResumeRequest { return &yardv1.ResumeRequest{Name: name} }, func(r *yardv1.ResumeRequest) error { return k.Get(r) },
			map[string]row[*yardv1.ResumeRequest]{"space": {func(r *yardv1.ResumeRequest) { r.Name = "a b" }, "/name"}, "dots": {func(r *yardv1.ResumeRequest) { r.Name = "a..b" }, "/name"}})
	}
	refusals(t, good("main", 0), Tasklist.Pause, map[string]row[*yardv1.PauseRequest]{"dot": {func(r *yardv1.PauseRequest) { r.Name = "a.b" }, "/name"}})
}

func TestPutLimitRefuses(t *testing.T) {
	refusals(t, func() *yardv1.PutLimitRequest {
		return &yardv1.PutLimitRequest{Limit: &yardv1.Limit{Name: "acme", MaxConcurrency: 1_000_000}}
	}, PutLimit, map[string]row[*yardv1.PutLimitRequest]{
		"none":             {func(r *yardv1.PutLimitRequest) { r.Limit = nil }, "/limit"},
		"no name":          {func(r *yardv1.PutLimitRequest) { r.Limit.Name = "" }, "/limit/name"},
		"long description": {func(r *yardv1.PutLimitRequest) { r.Limit.Description = strings.Repeat("d", 1025) }, "/limit/description"},
		"no concurrency":   {func(r *yardv1.PutLimitRequest) { r.Limit.MaxConcurrency = 0 }, "/limit"},
		"concurrency":      {func(r *yardv1.PutLimitRequest) { r.Limit.MaxConcurrency = 1_000_001 }, "/limit/max_concurrency"},
		"revision":         {func(r *yardv1.PutLimitRequest) { r.Limit.Revision = -1 }, "/limit/revision"},
		"shadow of groups": {func(r *yardv1.PutLimitRequest) { r.Limit.Shadow, r.Limit.MaxConcurrencyPerGroup = true, 3 }, "/limit/shadow"},
		"policy":           {func(r *yardv1.PutLimitRequest) { r.Limit.OnFull = 3 }, "/limit/on_full"},
		"policy in shadow": {func(r *yardv1.PutLimitRequest) { r.Limit.Shadow, r.Limit.OnFull = true, 1 }, "/limit/on_full"},
		"policy of a rate": {func(r *yardv1.PutLimitRequest) {
			r.Limit.MaxConcurrency, r.Limit.Rate, r.Limit.OnFull = 0, &yardv1.Rate{Tasks: 1}, 2
		}, "/limit/on_full"},
		"after of none": {func(r *yardv1.PutLimitRequest) { r.Limit.OnFullAfterMs = 100 }, "/limit/on_full_after_ms"},
		"too soon":      {func(r *yardv1.PutLimitRequest) { r.Limit.OnFull, r.Limit.OnFullAfterMs = 1, 99 }, "/limit/on_full_after_ms"},
		"too late":      {func(r *yardv1.PutLimitRequest) { r.Limit.OnFull, r.Limit.OnFullAfterMs = 2, 86_400_001 }, "/limit/on_full_after_ms"},
	})
}

func TestOutcomesBecomeEvents(t *testing.T) {
	fail := &yardv1.FailRequest{Tasks: []*yardv1.Failure{
		{TaskId: goodID.String(), Token: tokens.Print(goodID, goodToken), Message: "m", ErrorType: "e", NonRetryable: true},
		{TaskId: goodID.String(), Token: tokens.Print(goodID, goodToken), NotStarted: true}, // one task twice is allowed
	}}
	got, err := Fail(fail, "shop", tokens)
	testkit.NoError(t, err)
	e := got[0].Event
	if e.Kind != logv1.EventKind_EVENT_KIND_FAILED || e.Domain != "shop" || e.Message != "m" || e.ErrorType != "e" || !e.NonRetryable || e.DelayMs != 0 {
		t.Errorf("got %v", e)
	}
	if string(e.TaskId) != string(goodID[:]) || e.Position != uint64(goodToken.Position) || e.Version != 2 || e.Nonce != 5 {
		t.Errorf("fence of %v", e)
	}
	if got[0].Forged || got[1].Forged {
		t.Error("a good token counts as forged")
	}
	fail.Tasks[0].TaskId = ids.NewTaskID(now, 1, 8).String()
	if forged, err := Fail(fail, "shop", tokens); err != nil || !forged[0].Forged || forged[1].Forged || forged[0].Event.Nonce != 0 {
		t.Errorf("a token of another task: %v", err)
	}
	testkit.Equal(t, "an attempt never begun became", got[1].Event.Kind, logv1.EventKind_EVENT_KIND_RELEASED)
	cancelled, err := Cancel(&yardv1.CancelRequest{TaskIds: []string{goodID.String()}, Reason: "why"}, "shop")
	testkit.NoError(t, err)
	if e := cancelled[0].Event; e.Kind != logv1.EventKind_EVENT_KIND_CANCEL || e.Message != "why" || e.Domain != "shop" {
		t.Errorf("got %v", e)
	}
}
