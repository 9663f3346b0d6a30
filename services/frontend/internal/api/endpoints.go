package api

import (
	"strings"

	"github.com/nats-io/nats.go/micro"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/audit"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gateway"
)

// endpoint is one verb of the API.
type endpoint struct {
	verb        string
	subject     string
	description string
	handler     micro.HandlerFunc
	tally       *tally
	// request and response are empty messages, for their descriptions.
	request, response protoreflect.ProtoMessage
}

// name is the verb as micro allows it.
func (e endpoint) name() string { return strings.ReplaceAll(e.verb, ".", "-") }

// metadata is what INFO tells of an endpoint, so that a client can be written
// against a running server.
func (e endpoint) metadata() map[string]string {
	return map[string]string{
		"description":     e.description,
		"content_types":   string(codec.JSON) + " (default), " + string(codec.Protobuf),
		"request":         string(e.request.ProtoReflect().Descriptor().FullName()),
		"response":        string(e.response.ProtoReflect().Descriptor().FullName()),
		"request_schema":  schema(e.request.ProtoReflect().Descriptor()),
		"response_schema": schema(e.response.ProtoReflect().Descriptor()),
	}
}

// endpoints are those of a domain.
func (a *API) endpoints() []endpoint {
	g := a.Gateway
	return []endpoint{
		of(a, "audit.list", "List what operators did in the domain, the last first.", a.Audit.List, &yardv1.ListAuditResponse{}),
		of(a, "timers.count", "Count the tasks of the domain that wait for their time, by when they are due.", g.Queries.CountTimers, &yardv1.CountTimersResponse{}),
		of(a, "tasklists.describe", "Count the tasks of a tasklist, by state.", g.Queries.DescribeTasklist, &yardv1.DescribeTasklistResponse{}),
		of(a, "tasklists.pollers", "List the workers that polled a tasklist in the last 5 minutes.", g.Queries.TasklistPollers, &yardv1.TasklistPollersResponse{}),
		of(a, "tasklists.put", "Set or change the settings of a tasklist.", g.Settings.PutTasklist, &yardv1.PutTasklistResponse{}),
		of(a, "tasklists.get", "Get the settings of a tasklist.", g.Settings.GetTasklist, &yardv1.GetTasklistResponse{}),
		of(a, "tasklists.list", "List the tasklists with settings or unfinished tasks, page by page.", g.Settings.ListTasklists, &yardv1.ListTasklistsResponse{}),
		of(a, "tasklists.delete", "Delete the settings of a tasklist.", g.Settings.DeleteTasklist, &yardv1.DeleteTasklistResponse{}),
		of(a, "tasklists.pause", "Pause a tasklist: none of its tasks starts until it is resumed, or for a time.", g.Settings.Pause(validate.Tasklist), &yardv1.PauseResponse{}),
		of(a, "tasklists.drain", "Drain a tasklist: submits to it are refused until it is resumed, or for a time.", g.Settings.Drain(validate.Tasklist), &yardv1.DrainResponse{}),
		of(a, "tasklists.resume", "End the pause or the drain of a tasklist.", g.Settings.Resume(validate.Tasklist), &yardv1.PauseResponse{}),
		of(a, "tasklists.peek", "Show the ready tasks of a tasklist in the order in which they are to start; none is taken.", g.Queries.PeekTasklist, &yardv1.PeekTasklistResponse{}),
		of(a, "tasklists.purge", "Cancel the tasks of a tasklist that do not run, step by step, or count them.", g.Operator.Purge(validate.Tasklist), &yardv1.PurgeResponse{}),
		of(a, "workers.list", "List the workers that send signs of life, and what they run, page by page.", g.Queries.ListWorkers, &yardv1.ListWorkersResponse{}),
		of(a, "workers.drain", "Drain a worker: it gets no new attempts, and what it runs goes on.", g.Operator.DrainWorker, &yardv1.DrainWorkerResponse{}),
		of(a, "workers.stop", "Stop a worker: it is drained, and asked to end.", g.Operator.StopWorker, &yardv1.StopWorkerResponse{}),
		of(a, "workers.resume", "End the drain of a worker, or take back that it is to stop.", g.Operator.ResumeWorker, &yardv1.ResumeWorkerResponse{}),
		of(a, "keys.list", "List the order keys with unfinished tasks, those that wait for longest first, page by page.", g.Queries.ListKeys, &yardv1.ListKeysResponse{}),
		of(a, "keys.get", "Get one order key.", g.Queries.GetKey, &yardv1.GetKeyResponse{}),
		of(a, "keys.unblock", "Give the task that blocks an order key one more attempt.", g.Operator.UnblockKey, &yardv1.UnblockKeyResponse{}),
		of(a, "keys.skip", "Make the first task of an order key a dead letter, so that the key goes on.", g.Operator.SkipKey, &yardv1.SkipKeyResponse{}),
		of(a, "deadletters.list", "List the dead letters of the domain, those that ended first come first, page by page.", g.Operator.ListDeadLetters, &yardv1.ListDeadLettersResponse{}),
		of(a, "deadletters.count", "Count dead letters by type, error and time, step by step.", g.Operator.CountDeadLetters, &yardv1.CountDeadLettersResponse{}),
		of(a, "deadletters.get", "Get one dead letter, whole.", g.Operator.GetDeadLetter, &yardv1.GetDeadLetterResponse{}),
		of(a, "deadletters.redrive", "Bring dead letters back: by id, or step by step all that match a filter; or count them.", g.Operator.Redrive, &yardv1.RedriveResponse{}),
		of(a, "deadletters.purge", "Delete dead letters: by id, or step by step all that match a filter; or count them.", g.Operator.PurgeDeadLetters, &yardv1.PurgeDeadLettersResponse{}),
		of(a, "batches.create", "Make a batch, into which tasks are submitted then.", g.Batches.CreateBatch, &yardv1.CreateBatchResponse{}),
		of(a, "batches.get", "Get a batch, with the counts of its tasks.", g.Batches.GetBatch, &yardv1.GetBatchResponse{}),
		of(a, "batches.list", "List the batches of the domain, page by page.", g.Batches.ListBatches, &yardv1.ListBatchesResponse{}),
		of(a, "batches.close", "Say that a batch has all its tasks: it completes when they have ended.", g.Batches.CloseBatch, &yardv1.CloseBatchResponse{}),
		of(a, "batches.wait", "Wait until a batch is over.", g.Batches.WaitBatch, &yardv1.WaitBatchResponse{}),
		of(a, "batches.cancel", "Close a batch and cancel the rest of its tasks, step by step.", g.Batches.CancelBatch, &yardv1.CancelBatchResponse{}),
		of(a, "types.put", "Create or change a task type.", g.Settings.PutType, &yardv1.PutTypeResponse{}),
		of(a, "types.get", "Get a task type, with the slots of its limit in use.", g.Settings.GetType, &yardv1.GetTypeResponse{}),
		of(a, "types.list", "List the task types that have settings, page by page.", g.Settings.ListTypes, &yardv1.ListTypesResponse{}),
		of(a, "types.delete", "Delete the settings of a task type.", g.Settings.DeleteType, &yardv1.DeleteTypeResponse{}),
		of(a, "types.pause", "Pause a task type: none of its tasks starts until it is resumed, or for a time.", g.Settings.Pause(validate.Type), &yardv1.PauseResponse{}),
		of(a, "types.drain", "Drain a task type: submits of it are refused until it is resumed, or for a time.", g.Settings.Drain(validate.Type), &yardv1.DrainResponse{}),
		of(a, "types.resume", "End the pause or the drain of a task type.", g.Settings.Resume(validate.Type), &yardv1.PauseResponse{}),
		of(a, "types.purge", "Cancel the tasks of a type that do not run, step by step, or count them.", g.Operator.Purge(validate.Type), &yardv1.PurgeResponse{}),
		of(a, "limits.put", "Create or change a concurrency limit that several task types share.", g.Settings.PutLimit, &yardv1.PutLimitResponse{}),
		of(a, "limits.get", "Get a limit that types share, with its slots in use.", g.Settings.GetLimit, &yardv1.GetLimitResponse{}),
		of(a, "limits.list", "List the limits that types share, page by page.", g.Settings.ListLimits, &yardv1.ListLimitsResponse{}),
		of(a, "limits.top", "List the attempts that use slots of limits, and the tasklists that wait for one.", g.Queries.TopLimits, &yardv1.TopLimitsResponse{}),
		of(a, "limits.delete", "Delete a limit that no type names.", g.Settings.DeleteLimit, &yardv1.DeleteLimitResponse{}),
		of(a, "groups.put", "Set the weight of a group of tasks.", g.Settings.PutGroup, &yardv1.PutGroupResponse{}),
		of(a, "groups.get", "Get the settings of a group, its pause and its drain.", g.Settings.GetGroup, &yardv1.GetGroupResponse{}),
		of(a, "groups.list", "List the groups that have settings, are paused or drained, page by page.", g.Settings.ListGroups, &yardv1.ListGroupsResponse{}),
		of(a, "groups.delete", "Delete the settings of a group.", g.Settings.DeleteGroup, &yardv1.DeleteGroupResponse{}),
		of(a, "groups.pause", "Pause a group: none of its tasks starts until it is resumed, or for a time.", g.Settings.Pause(validate.Group), &yardv1.PauseResponse{}),
		of(a, "groups.drain", "Drain a group: submits of its tasks are refused until it is resumed, or for a time.", g.Settings.Drain(validate.Group), &yardv1.DrainResponse{}),
		of(a, "groups.resume", "End the pause or the drain of a group.", g.Settings.Resume(validate.Group), &yardv1.PauseResponse{}),
		of(a, "groups.purge", "Cancel the tasks of a group that do not run, step by step, or count them.", g.Operator.Purge(validate.Group), &yardv1.PurgeResponse{}),
	}
}

// taskEndpoints are those of single tasks.
func (a *API) taskEndpoints() []endpoint {
	g := a.Gateway
	return []endpoint{
		of(a, "tasks.submit", "Accept 1 to 1000 tasks, all or none; may wait for the result of one.", g.Intake.Submit, &yardv1.SubmitResponse{}),
		of(a, "tasks.poll", "Get up to max_tasks tasks of a tasklist, waiting for the first one.", g.Polls.Poll, &yardv1.PollResponse{}),
		pollOf(of(a, "tasks.poll.tasklist", "The same for the tasklist that the subject names: permissions can fence a worker by it.", g.Polls.Poll, &yardv1.PollResponse{})),
		of(a, "tasks.complete", "Report attempts that succeeded; returns one verdict per entry.", g.Outcomes.Complete, &yardv1.OutcomeResponse{}),
		of(a, "tasks.fail", "Report failed attempts, or return attempts that were not started; returns one verdict per entry.", g.Outcomes.Fail, &yardv1.OutcomeResponse{}),
		of(a, "tasks.heartbeat", "Extend attempts and report their progress; returns one verdict per entry.", g.Outcomes.Heartbeat, &yardv1.OutcomeResponse{}),
		of(a, "tasks.cancel", "Cancel tasks by id; returns one verdict per entry.", g.Outcomes.Cancel, &yardv1.OutcomeResponse{}),
		of(a, "tasks.update", "Change tasks by id; returns one verdict per entry.", g.Outcomes.Update, &yardv1.OutcomeResponse{}),
		of(a, "tasks.end", "End tasks by hand: completed, dead or cancelled; returns one verdict per entry.", g.Outcomes.End, &yardv1.OutcomeResponse{}),
		of(a, "tasks.get", "Get one task with its history; may wait for its end.", g.Queries.Get, &yardv1.GetResponse{}),
		of(a, "tasks.list", "Find tasks of the domain, newest first, or those that wait by when they are due.", g.Queries.List, &yardv1.ListResponse{}),
		of(a, "tasks.explain", "Say why a task does not start: all reasons at once.", g.Queries.Explain, &yardv1.ExplainResponse{}),
		of(a, "tasks.stuck", "List the tasks whose attempts run for too long, those that run for longest first.", g.Operator.StuckTasks, &yardv1.StuckTasksResponse{}),
	}
}

// scheduleEndpoints are those of schedules.
func (a *API) scheduleEndpoints() []endpoint {
	g := a.Gateway
	return []endpoint{
		of(a, "schedules.put", "Make a schedule, which submits a task again and again, or replace one.", gateway.OfSchedules(g, g.Schedules.Put), &yardv1.PutScheduleResponse{}),
		of(a, "schedules.get", "Get a schedule, with its next times and its last runs.", gateway.OfSchedules(g, g.Schedules.Get), &yardv1.GetScheduleResponse{}),
		of(a, "schedules.list", "List the schedules of the domain, page by page.", gateway.OfSchedules(g, g.Schedules.List), &yardv1.ListSchedulesResponse{}),
		of(a, "schedules.delete", "End a schedule; tasks of its runs go on.", gateway.OfSchedules(g, g.Schedules.Delete), &yardv1.DeleteScheduleResponse{}),
		of(a, "schedules.pause", "Make no runs until the schedule is resumed.", gateway.OfSchedules(g, g.Schedules.Pause), &yardv1.PauseScheduleResponse{}),
		of(a, "schedules.resume", "End the pause of a schedule.", gateway.OfSchedules(g, g.Schedules.Resume), &yardv1.ResumeScheduleResponse{}),
		of(a, "schedules.trigger", "Make one run of a schedule now.", gateway.OfSchedules(g, g.Schedules.Trigger), &yardv1.TriggerScheduleResponse{}),
		of(a, "schedules.backfill", "Make the runs of a stretch of the past again.", gateway.OfSchedules(g, g.Schedules.Backfill), &yardv1.BackfillScheduleResponse{}),
		of(a, "schedules.next", "Show the next times of a schedule, or of one that is not made yet.", gateway.OfSchedules(g, g.Schedules.Next), &yardv1.NextScheduleResponse{}),
	}
}

// adminEndpoints are the administrative ones.
func (a *API) adminEndpoints() []endpoint {
	g := a.Gateway
	return []endpoint{
		admin(of(a, "domains.put", "Create or change a domain.", g.Settings.PutDomain, &yardv1.PutDomainResponse{})),
		admin(of(a, "domains.get", "Get one domain.", g.Settings.GetDomain, &yardv1.GetDomainResponse{})),
		admin(of(a, "domains.list", "List all domains, page by page.", g.Settings.ListDomains, &yardv1.ListDomainsResponse{})),
		admin(of(a, "domains.pause", "Pause a domain: none of its tasks starts until it is resumed, or for a time.", g.Settings.Pause(validate.Domain), &yardv1.PauseResponse{})),
		admin(of(a, "domains.drain", "Drain a domain: submits to it are refused until it is resumed, or for a time.", g.Settings.Drain(validate.Domain), &yardv1.DrainResponse{})),
		admin(of(a, "domains.resume", "End the pause or the drain of a domain.", g.Settings.Resume(validate.Domain), &yardv1.PauseResponse{})),
		admin(of(a, "domains.delete", "Delete a domain that holds no unfinished task.", g.Settings.DeleteDomain, &yardv1.DeleteDomainResponse{})),
		admin(of(a, "domains.audit", "List what operators did to domains, the last first.", a.Audit.ListCluster, &yardv1.ListAuditResponse{})),
		admin(of(a, "domains.top", "List the domains that do and have most, and the limits for which tasks wait.", g.Overview.TopDomains, &yardv1.TopDomainsResponse{})),
		admin(of(a, "queues.list", "Show what history has in memory of each lane, and of each domain that is split off one.", g.Overview.ListQueues, &yardv1.ListQueuesResponse{})),
	}
}

// pointer is a pointer to a generated message.
type pointer[M any] interface {
	*M
	codec.Message
	protoreflect.ProtoMessage
}

// of makes the endpoint of a verb, in every domain.
func of[Req any, PReq pointer[Req]](a *API, verb, description string, do func(call.Call, PReq, call.Answer), response protoreflect.ProtoMessage) endpoint {
	t := newTally(a.Metrics, verb)
	recorded := ""
	if audit.Records(verb) {
		recorded = verb
	}
	return endpoint{
		verb: verb, subject: topology.APIAny(verb), description: description,
		request: PReq(new(Req)), response: response, tally: t,
		handler: func(req micro.Request) { handle[Req, PReq](a, req, t, recorded, do) },
	}
}

// pollOf makes an endpoint one whose subject names the tasklist.
func pollOf(e endpoint) endpoint {
	e.subject = topology.PollOfAny
	return e
}

// admin makes an endpoint an administrative one: its subject has no domain.
func admin(e endpoint) endpoint {
	e.subject = topology.Admin(e.verb)
	e.verb = topology.ReservedDomain + "." + e.verb
	return e
}

// handle carries out a request. If recorded names its verb, the request is recorded.
func handle[Req any, PReq pointer[Req]](a *API, req micro.Request, t *tally, recorded string, do func(call.Call, PReq, call.Answer)) {
	t.requests.Add(1)
	c, r, err := a.receive(req, t)
	if r == nil {
		return
	}
	defer r.returned()
	defer r.recovered()
	if err != nil {
		r.answer(nil, err)
		return
	}
	body := PReq(new(Req))
	if err := codec.UnmarshalRequest(r.contentType, req.Data(), body); err != nil {
		r.answer(nil, err)
		return
	}
	answer := r.answer
	if recorded != "" {
		answer = a.Audit.Answer(c, recorded, req.Headers().Get(codec.HeaderBy), body, answer)
	}
	do(c, body, answer)
}
