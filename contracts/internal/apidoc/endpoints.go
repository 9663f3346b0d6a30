package main

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// endpoint is one verb of the public API.
type endpoint struct {
	Verb string
	// admin endpoints are no domain's: their subject is yard.v1.admin.<verb>.
	admin bool
	Does  string
	// Request and Response are the names of messages.
	Request, Response string
	// In and Out are examples, as JSON on one line.
	In, Out string
	// ofTasklist: the tasklist may be the last token of the subject.
	ofTasklist bool
	// timeout is what the example's caller must be ready to wait; empty = its default.
	timeout string
	// codes are the endpoint's own; commonCodes go with every one.
	codes []fault.Code
	// Notes are what a reader must know besides the fields.
	Notes []string
}

// commonCodes may answer any request.
func commonCodes() []fault.Code {
	return []fault.Code{fault.InvalidArgument, fault.ResourceExhausted, fault.Unavailable, fault.Internal}
}

// Ids and tokens of the examples.
const (
	exampleTask  = "06dabzyw00004emhrks7qr2x30"
	exampleToken = "0000000006e06000000gqmy6pat8w74nt6ta3a3jbv8wg"
	examplePair  = `"task_id":"` + exampleTask + `","token":"` + exampleToken + `"`
	pageNote     = "A page ends at its limit, or when it is full. Pass `next_cursor` as the `cursor` of the next request until it is empty; what is created or deleted meanwhile may be missing or included."
	deleteNote   = "If the answer to a deletion was lost, a repeat gets NOT_FOUND."
	verdictNote  = "Each entry is decided by itself: an answer without an error header may hold verdicts other than OK, in the order of the request. Repeat an entry with the code UNKNOWN unchanged; the same outcome of the same attempt is OK each time, a failure until another attempt of the task begins; then it is STALE, also if it counted."
)

// endpoints are all verbs, in the order of the page.
func endpoints() []endpoint {
	return slices.Concat(lifeEndpoints(), commandEndpoints(), queryEndpoints(), tasklistEndpoints(), []endpoint{peekEndpoint()}, pauseEndpoints("tasklists", "tasklist", "Tasklist", "mail"),
		workerEndpoints(), keyEndpoints(), deadLetterEndpoints(), batchEndpoints(), typeEndpoints(), pauseEndpoints("types", "task type", "Type", "email.send"), limitEndpoints(), groupEndpoints(), pauseEndpoints("groups", "group", "Group", "acme"), domainEndpoints())
}

// lifeEndpoints are what moves a task through its life.
func lifeEndpoints() []endpoint {
	return []endpoint{
		{
			Verb: "tasks.submit", Does: "Submit 1 to 1000 tasks; all are accepted or none.",
			Request: "SubmitRequest", Response: "SubmitResponse",
			In:    `{"tasklist":"mail","tasks":[{"type":"email.send","payload":{"to":"ann@example.com"}},{"type":"email.send","payload":{"to":"bob@example.com"},"delay_ms":60000,"priority":1}]}`,
			Out:   `{"results":[{"task_id":"` + exampleTask + `","outcome":"created"},{"task_id":"06dabzyw00005p697tnzpaps5m","outcome":"created"}]}`,
			codes: []fault.Code{fault.InvalidTime, fault.NotFound, fault.FailedPrecondition, fault.Unknown},
			Notes: []string{
				"A success means that all tasks are stored. An error other than UNKNOWN means that this try stored none. UNKNOWN, or no answer, means that they may or may not be stored.",
				"With a `request_id`, send the same request again until it is answered, for up to 10 minutes: no task is stored twice, and each repeat gets the same answer. A request is stored up to a minute after the time in its id. After that it is only searched for, and FAILED_PRECONDITION at `/request_id` with `now_ms` in its `detail` means that no try was or will be stored: send the tasks with a new id. Without an id a repeat may store the tasks twice.",
				"To submit many tasks, count the tries in `tries`: the first try then shares its write to disk with other requests, and a repeat waits until no other try can be under way, up to 8 s. If every try was answered, and the answers say that nothing was stored, a new id is fastest.",
				"The time in the id comes from the client's clock. If it is more than 2 s ahead of the server's clock, or 10 minutes behind, the request is rejected with `now_ms`, the server's clock, in its `detail`; so is a try that is too old to be stored, if no other try was or will be stored. A success has `now_ms` if the clocks differ by more than 1 s.",
				"With `wait`, one request submits a task and is answered when the task is finished. It is not an error if the wait times out: `task` in the answer has the state so far. Nor is it an error if too many requests wait, or an owner is lost: the task is accepted, and `wait_code` says why the wait ended early.",
			},
		},
		{
			Verb: "tasks.poll", Does: "Get up to `max_tasks` tasks of a tasklist, waiting for the first one.",
			Request: "PollRequest", Response: "PollResponse", ofTasklist: true, timeout: "35s",
			In:    `{"tasklist":"mail","max_tasks":10,"wait_ms":30000,"worker":"mailer-1"}`,
			Out:   `{"tasks":[{` + examplePair + `,"type":"email.send","tasklist":"mail","payload":{"to":"ann@example.com"},"priority":3,"attempt":1,"max_attempts":5,"created_at_ms":1763721600000,"timeout_ms":300000}]}`,
			codes: []fault.Code{fault.NotFound},
			Notes: []string{
				"The subject may end with the tasklist as one more token, `….tasks.poll.<tasklist>`, so that NATS permissions can restrict a worker to tasklists. The SDK polls this way.",
				"Wait for the answer longer than `wait_ms`, by 5 s for example: if a client gives up earlier, tasks may be sent to a closed inbox. They return to the tasklist by themselves, at once if NATS sees that the inbox has no subscriber.",
				"A worker that dies keeps its attempts until their heartbeats or deadlines run out, unless it sends signs of life: WorkerAlive on the domain's subject `hint.alive`, every `every_ms`, with the `worker_id` of its polls. Once they stop, all its attempts are ready again at once. The SDK does that by itself.",
				"Every task in the answer is an attempt that has started: it may run for `timeout_ms`. Ask only for as many as you can start at once; return the others with `tasks.fail` and `not_started`.",
			},
		},
		{
			Verb: "tasks.complete", Does: "Report attempts that succeeded.",
			Request: "CompleteRequest", Response: "OutcomeResponse",
			In:    `{"tasks":[{` + examplePair + `,"result":{"message_id":"m-17"}}]}`,
			Out:   `{"verdicts":[{"task_id":"` + exampleTask + `","code":"OK"}]}`,
			codes: []fault.Code{fault.NotFound}, Notes: []string{verdictNote},
		},
		{
			Verb: "tasks.fail", Does: "Report attempts that failed, or were never started.",
			Request: "FailRequest", Response: "OutcomeResponse",
			In:    `{"tasks":[{` + examplePair + `,"message":"mailbox full","error_type":"smtp.452","delay_ms":600000}]}`,
			Out:   `{"verdicts":[{"task_id":"` + exampleTask + `","code":"OK"}]}`,
			codes: []fault.Code{fault.NotFound}, Notes: []string{verdictNote},
		},
		{
			Verb: "tasks.heartbeat", Does: "Extend attempts, report their progress, and learn of cancels.",
			Request: "HeartbeatRequest", Response: "OutcomeResponse",
			In:    `{"tasks":[{` + examplePair + `,"progress":{"percent":40}}]}`,
			Out:   `{"verdicts":[{"task_id":"` + exampleTask + `","code":"OK","lease_ms":30000}]}`,
			codes: []fault.Code{fault.NotFound},
			Notes: []string{
				"Send a heartbeat at least every `heartbeat_timeout_ms` of the polled task, preferably three times as often. One request may carry the heartbeats of all tasks of a worker.",
				"STALE: the attempt is over, stop working. `cancel_requested`: the task was cancelled; stop and report `tasks.fail`.", verdictNote,
			},
		},
	}
}

// commandEndpoints are about tasks by id, wherever they are.
func commandEndpoints() []endpoint {
	return []endpoint{
		{
			Verb: "tasks.cancel", Does: "Cancel tasks by id.",
			Request: "CancelRequest", Response: "OutcomeResponse",
			In:    `{"task_ids":["` + exampleTask + `"],"reason":"order withdrawn"}`,
			Out:   `{"verdicts":[{"task_id":"` + exampleTask + `","code":"OK"}]}`,
			codes: []fault.Code{fault.NotFound},
			Notes: []string{
				"A worker need not wait for its next heartbeat: if it subscribes to the domain's subject `hint.cancel` (in place of `tasks.cancel`), it is notified at once of running tasks that are cancelled (CancelHint, without a reply). It then sends a heartbeat for those that it runs.",
				verdictNote,
			},
		},
		{
			Verb: "tasks.update", Does: "Change tasks by id: what has not started, and the deadline of what runs.",
			Request: "UpdateRequest", Response: "OutcomeResponse",
			In:    `{"request_id":"019aa4ee-0780-7000-8000-000000000002","tasks":[{"task_id":"` + exampleTask + `","if_revision":1,"priority":1,"run_now":true}]}`,
			Out:   `{"verdicts":[{"task_id":"` + exampleTask + `","code":"OK","revision":2}]}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"STALE: the task has another revision than `if_revision`; the verdict has the one that it has. FAILED_PRECONDITION: it has ended, or runs and the update is not for that.",
				"OK means that it holds, though a task that waits for its time, or is not read yet, may show it in `tasks.get` a moment later.", verdictNote,
			},
		},
	}
}

// queryEndpoints change nothing.
func queryEndpoints() []endpoint {
	return []endpoint{
		{
			Verb: "tasks.get", Does: "Get one task with its whole history; may wait until it is finished.",
			Request: "GetRequest", Response: "GetResponse",
			In:    `{"task_id":"` + exampleTask + `"}`,
			Out:   `{"task":{"task_id":"` + exampleTask + `","domain":"shop","tasklist":"mail","type":"email.send","priority":3,"state":"completed","payload":{"to":"ann@example.com"},"result":{"message_id":"m-17"},"grants":1,"created_at_ms":1763721600000,"due_at_ms":1763721600000,"finished_at_ms":1763721600412,"events":[{"kind":"submitted","at_ms":1763721600000},{"kind":"started","at_ms":1763721600003,"grant":1,"worker":"mailer-1"},{"kind":"completed","at_ms":1763721600412,"grant":1}]}}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"Finished tasks are kept for their domain's retention.",
				"It is the task as it was at one moment between the request and the answer; of one that waits for its time, or is not read yet, it may be that of before its last updates. NOT_FOUND means that there is none.",
				"With `wait_ms`, RESOURCE_EXHAUSTED means that too many requests wait already: try again later, or without it.",
			},
		},
		{
			Verb: "tasks.list", Does: "Find tasks of the domain, newest first.",
			Request: "ListRequest", Response: "ListResponse",
			In:    `{"tasklist":"mail","states":["ready","running"],"limit":2}`,
			Out:   `{"tasks":[{"task_id":"` + exampleTask + `","domain":"shop","tasklist":"mail","type":"email.send","priority":3,"state":"running","created_at_ms":1763721600000}],"next_cursor":"` + exampleTask + `"}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{pageNote, "A task that moves between two stores at that moment, since its time has come or it is put off, may be missing in a page: ask again, or use tasks.get."},
		},
	}
}

// tasklistEndpoints and typeEndpoints are for operators of one domain.
func tasklistEndpoints() []endpoint {
	return []endpoint{
		{
			Verb: "tasklists.describe", Does: "Get the numbers of a tasklist. A tasklist exists as soon as it is used.",
			Request: "DescribeTasklistRequest", Response: "DescribeTasklistResponse",
			In:    `{"tasklist":"mail"}`,
			Out:   `{"tasklist":"mail","ready":120,"running":16,"waiting":3,"oldest_ready_ms":840,"waiting_polls":2,"completed":51234,"slots":[{"ref":"type/email.send","type":"email.send","in_use":16,"limit":16}]}`,
			codes: []fault.Code{fault.NotFound},
		},
		{
			Verb: "tasklists.pollers", Does: "List the workers that polled a tasklist in the last 5 minutes.",
			Request: "TasklistPollersRequest", Response: "TasklistPollersResponse",
			In:    `{"tasklist":"mail"}`,
			Out:   `{"pollers":[{"worker":"mailer-1","version":"v1.4.2","types":["email.send"],"types_count":1,"seen_ago_ms":1200,"waiting_polls":2}],"known_for_ms":86400000}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"Matching keeps this in memory: after another node took the shard over it knows of later polls only, and `known_for_ms` says since when.",
				"FAILED_PRECONDITION: the owner is of a version that knows no pollers. End the upgrade first.",
				pageNote,
			},
		},
		{
			Verb: "tasklists.put", Does: "Set or change the settings of a tasklist: what it is for, its concurrency limit, the priority of tasks that name none.",
			Request: "PutTasklistRequest", Response: "PutTasklistResponse",
			In:    `{"tasklist":{"name":"mail","description":"what customers wait for","priority":2}}`,
			Out:   `{"tasklist":{"name":"mail","description":"what customers wait for","priority":2,"revision":18}}`,
			codes: []fault.Code{fault.NotFound, fault.Stale, fault.FailedPrecondition},
			Notes: []string{
				"A tasklist needs no settings before tasks are submitted to it: then the defaults hold.",
				"FAILED_PRECONDITION: the domain has 10,000 tasklists with settings. Delete those of some.",
			},
		},
		{
			Verb: "tasklists.get", Does: "Tell the settings of a tasklist.",
			Request: "GetTasklistRequest", Response: "GetTasklistResponse",
			In:    `{"name":"mail"}`,
			Out:   `{"tasklist":{"name":"mail","description":"what customers wait for","priority":2,"revision":18}}`,
			codes: []fault.Code{fault.NotFound},
		},
		{
			Verb: "tasklists.list", Does: "Tell of the tasklists of the domain that have settings or unfinished tasks.",
			Request: "ListTasklistsRequest", Response: "ListTasklistsResponse",
			In:    `{"limit":2}`,
			Out:   `{"tasklists":[{"name":"images","ready":120,"running":16},{"name":"mail","settings":{"name":"mail","priority":2,"revision":18},"waiting":3}],"next_cursor":"mail"}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"FAILED_PRECONDITION: an upgrade is under way, and a process of the version before cannot answer it.",
				"Counts are of tasks that history or timer has in memory; tasks on disk only are in `unread_batches` of tasklists.describe.",
				pageNote,
			},
		},
		{
			Verb: "tasklists.delete", Does: "Delete the settings of a tasklist. Its tasks go on without them.",
			Request: "DeleteTasklistRequest", Response: "DeleteTasklistResponse",
			In:    `{"name":"mail"}`,
			Out:   `{"tasklist":{"name":"mail","description":"what customers wait for","priority":2,"revision":18}}`,
			codes: []fault.Code{fault.NotFound, fault.Stale},
			Notes: []string{deleteNote},
		},
	}
}

// peekEndpoint shows what starts next.
func peekEndpoint() endpoint {
	return endpoint{
		Verb: "tasklists.peek", Does: "Show the ready tasks of a tasklist in the order in which they are to start; none is taken.",
		Request: "PeekTasklistRequest", Response: "PeekTasklistResponse",
		In:    `{"name":"mail","limit":1}`,
		Out:   `{"tasks":[{"task":{"task_id":"` + exampleTask + `","domain":"shop","tasklist":"mail","type":"email.send","priority":3,"state":"ready","created_at_ms":1763721600000},"ready_for_ms":412}],"next_cursor":"3.1763721600000.` + exampleTask + `"}`,
		codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
		Notes: []string{"Only tasks in memory are seen; `unread_batches` counts what is on disk only."},
	}
}

// pauseEndpoints are those of tasklists, types or groups.
func pauseEndpoints(verbs, kind, message, name string) []endpoint {
	const pause = `{"pause":{"reason":"the partner's API is down","by":"ann","since_ms":1763721600000,"until_ms":1763725200000}}`
	return []endpoint{
		{
			Verb: verbs + ".pause", Does: "Pause a " + kind + ": none of its tasks starts until it is resumed, or for a time.",
			Request: "Pause" + message + "Request", Response: "Pause" + message + "Response",
			In: `{"name":"` + name + `","reason":"the partner's API is down","by":"ann","for_ms":3600000}`, Out: pause,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"Attempts that run go on and may complete. Tasks are accepted, and those that wait keep their order. Time that a task may wait goes on: with `start_within_ms` it may expire.",
				"FAILED_PRECONDITION: 1,000 tasklists, types and groups are paused in the domain. Resume some.",
			},
		},
		{
			Verb: verbs + ".resume", Does: "End the pause or the drain of a " + kind + ".",
			Request: "Resume" + message + "Request", Response: "Resume" + message + "Response",
			In: `{"name":"` + name + `"}`, Out: pause,
			codes: []fault.Code{fault.NotFound},
			Notes: []string{"A pause and a drain do not know of each other: `drain` says which of them ends."},
		},
		{
			Verb: verbs + ".drain", Does: "Drain a " + kind + ": new tasks of it are refused until it is resumed, or for a time.",
			Request: "Drain" + message + "Request", Response: "Drain" + message + "Response",
			In:    `{"name":"` + name + `","reason":"it moves","by":"ann"}`,
			Out:   `{"drain":{"reason":"it moves","by":"ann","since_ms":1763721600000}}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"What was accepted goes on: it starts, is tried again, and comes back from a delay.",
				"A submit is refused whole with FAILED_PRECONDITION, and the path of the tasklist, of the task's type, or of its group. A repeat of a stored submit, with its `request_id`, is answered as before.",
				"FAILED_PRECONDITION: 1,000 tasklists, types and groups are drained in the domain. Resume some.",
			},
		},
		{
			Verb: verbs + ".purge", Does: "Cancel the tasks of a " + kind + " that do not run, step by step; or count them.",
			Request: "Purge" + message + "Request", Response: "Purge" + message + "Response",
			In:    `{"name":"` + name + `","older_than_ms":3600000,"reason":"sent twice","by":"ann"}`,
			Out:   `{"purged":{"found":500,"cancelled":499,"ended":1,"next_cursor":"` + exampleTask + `.` + exampleTask + `.1.0.0"}}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"A step searches memory and the timer store, from the newest task to the oldest. Tasks that are on disk only are searched once they are read, which the purge itself makes room for: at the end of a pass another pass follows; the purge is over when five passes in a row have found nothing and all was read, or ten. So wait a moment, say 300 ms, before the step after one that found nothing.",
				"A step of 500 tasks costs the log as much as 500 cancels. To leave others room send one each second.",
			},
		},
	}
}

// limitEndpoints are for operators of one domain: limits that types share.
func limitEndpoints() []endpoint {
	const stored = `{"limit":{"name":"partner-acme","description":"what acme's API takes","max_concurrency":30,"revision":21}}`
	return []endpoint{
		{
			Verb: "limits.put", Does: "Create or change a concurrency limit that several task types share.",
			Request: "PutLimitRequest", Response: "PutLimitResponse",
			In: `{"limit":{"name":"partner-acme","description":"what acme's API takes","max_concurrency":30}}`, Out: stored,
			codes: []fault.Code{fault.NotFound, fault.Stale, fault.FailedPrecondition},
			Notes: []string{
				"Types name it in `limits` of types.put. An attempt starts when there is a slot of each limit that covers it: of its domain, its tasklist, its type, and these. All of them are booked, or none.",
				"A changed limit takes effect within a second. A smaller one stops no attempt that runs: fewer start until enough have ended.",
				"FAILED_PRECONDITION: the domain has 1,000 limits. Delete some.",
			},
		},
		{
			Verb: "limits.get", Does: "Get a limit and the slots in use.",
			Request: "GetLimitRequest", Response: "GetLimitResponse",
			In:    `{"name":"partner-acme"}`,
			Out:   `{"limit":{"name":"partner-acme","description":"what acme's API takes","max_concurrency":30,"revision":21},"slots_in_use":12}`,
			codes: []fault.Code{fault.NotFound},
		},
		{
			Verb: "limits.list", Does: "List the limits of the domain that types share.",
			Request: "ListLimitsRequest", Response: "ListLimitsResponse",
			In:    `{}`,
			Out:   `{"limits":[{"name":"partner-acme","description":"what acme's API takes","max_concurrency":30,"revision":21}]}`,
			codes: []fault.Code{fault.NotFound}, Notes: []string{pageNote},
		},
		{
			Verb: "limits.top", Does: "Tell of the limits in use, the most saturated first: who holds their slots, and who waits for one.",
			Request: "TopLimitsRequest", Response: "TopLimitsResponse",
			In: `{"limit":1}`,
			Out: `{"limits":[{"ref":"shared/partner-acme","max_concurrency":2,"slots_in_use":2,"running":2,"full_for_ms":754000,"saturation_percent":62,"observed_ms":3600000,` +
				`"holders":[{"task_id":"` + exampleTask + `","held_for_ms":31000,"type":"payout.send","tasklist":"payouts","worker":"payer-2","state":"running"}],` +
				`"waiters":[{"tasklist":"payouts","priority":3,"waiting_for_ms":2100,"tasks":40}],"waiting_tasklists":1,"waiting_tasks":40,` +
				`"shards":[{"shard":3,"running":2,"slots":2}]}],"others":1}`,
			codes: []fault.Code{fault.NotFound, fault.FailedPrecondition},
			Notes: []string{
				"All limits count: of the domain, of tasklists, of types, and those that types share. Pauses do not.",
				"Shards that do not answer within a second are named in `silent_shards`, and not waited for.",
				"FAILED_PRECONDITION: an owner is of a version that cannot tell. End the upgrade first.",
			},
		},
		{
			Verb: "limits.delete", Does: "Delete a limit that no type names any more.",
			Request: "DeleteLimitRequest", Response: "DeleteLimitResponse",
			In: `{"name":"partner-acme"}`, Out: stored,
			codes: []fault.Code{fault.NotFound, fault.Stale, fault.FailedPrecondition},
			Notes: []string{"FAILED_PRECONDITION: a type names it in its `limits`. Take it out there first.", deleteNote},
		},
	}
}

func groupEndpoints() []endpoint {
	const stored = `{"group":{"name":"acme","description":"the large plan","weight":4,"revision":23}}`
	return []endpoint{
		{
			Verb: "groups.put", Does: "Set the weight of a group of tasks.",
			Request: "PutGroupRequest", Response: "PutGroupResponse",
			In: `{"group":{"name":"acme","description":"the large plan","weight":4}}`, Out: stored,
			codes: []fault.Code{fault.NotFound, fault.Stale, fault.FailedPrecondition},
			Notes: []string{
				"Tasks name their group in `group` of tasks.submit. A group needs no settings: its weight is 1.",
				"Ready tasks of one tasklist, type and priority start in turn between their groups: while all of them wait, each gets its weight's share. A group alone gets everything.",
				"An edit counts within a second, for tasks that become ready from then on. Those that wait already keep their place.",
				"FAILED_PRECONDITION: 10,000 groups of the domain have settings. Delete some.",
			},
		},
		{
			Verb: "groups.get", Does: "Get the settings of a group, and whether it is paused or drained.",
			Request: "GetGroupRequest", Response: "GetGroupResponse",
			In: `{"name":"acme"}`, Out: stored,
			codes: []fault.Code{fault.NotFound},
		},
		{
			Verb: "groups.list", Does: "List the groups of the domain that have settings, are paused or drained.",
			Request: "ListGroupsRequest", Response: "ListGroupsResponse",
			In:    `{}`,
			Out:   `{"groups":[{"name":"acme","description":"the large plan","weight":4,"revision":23}]}`,
			codes: []fault.Code{fault.NotFound}, Notes: []string{pageNote},
		},
		{
			Verb: "groups.delete", Does: "Delete the settings of a group.",
			Request: "DeleteGroupRequest", Response: "DeleteGroupResponse",
			In: `{"name":"acme"}`, Out: stored,
			codes: []fault.Code{fault.NotFound, fault.Stale}, Notes: []string{deleteNote},
		},
	}
}

func typeEndpoints() []endpoint {
	return []endpoint{
		{
			Verb: "types.put", Does: "Create or change a task type of the domain: retry, timeouts, concurrency limits.",
			Request: "PutTypeRequest", Response: "PutTypeResponse",
			In:    `{"type":{"name":"email.send","max_concurrency":16,"retry":{"max_attempts":8,"initial_interval_ms":2000}}}`,
			Out:   `{"type":{"name":"email.send","max_concurrency":16,"retry":{"max_attempts":8,"initial_interval_ms":2000},"revision":17}}`,
			codes: []fault.Code{fault.NotFound, fault.Stale, fault.FailedPrecondition},
			Notes: []string{
				"Tasks may be submitted with a type that was never put: the defaults apply, without a limit.",
				"FAILED_PRECONDITION: the domain has 10,000 types with settings: delete some. Or there is no such limit as `limits` names: create it with limits.put.",
			},
		},
		{
			Verb: "types.get", Does: "Get a task type and how much of its limit is in use.",
			Request: "GetTypeRequest", Response: "GetTypeResponse",
			In:    `{"name":"email.send"}`,
			Out:   `{"type":{"name":"email.send","max_concurrency":16,"revision":17},"slots_in_use":16}`,
			codes: []fault.Code{fault.NotFound},
		},
		{
			Verb: "types.list", Does: "List the task types of the domain that have settings.",
			Request: "ListTypesRequest", Response: "ListTypesResponse",
			In:    `{"limit":1}`,
			Out:   `{"types":[{"name":"email.send","max_concurrency":16,"revision":17}],"next_cursor":"email.send"}`,
			codes: []fault.Code{fault.NotFound},
			Notes: []string{pageNote},
		},
		{
			Verb: "types.delete", Does: "Delete the settings of a task type. Its tasks continue without them.",
			Request: "DeleteTypeRequest", Response: "DeleteTypeResponse",
			In:    `{"name":"email.send"}`,
			Out:   `{"type":{"name":"email.send","max_concurrency":16,"revision":17}}`,
			codes: []fault.Code{fault.NotFound, fault.Stale},
			Notes: []string{deleteNote},
		},
	}
}

// domainEndpoints are for operators of the whole.
func domainEndpoints() []endpoint {
	return []endpoint{
		{
			Verb: "domains.put", admin: true, Does: "Create or change a domain.",
			Request: "PutDomainRequest", Response: "PutDomainResponse",
			In:    `{"domain":{"name":"shop","description":"the online shop","retention_ms":259200000}}`,
			Out:   `{"domain":{"name":"shop","description":"the online shop","retention_ms":259200000,"revision":12}}`,
			codes: []fault.Code{fault.Stale, fault.FailedPrecondition},
		},
		{
			Verb: "domains.get", admin: true, Does: "Get one domain.",
			Request: "GetDomainRequest", Response: "GetDomainResponse",
			In:    `{"name":"shop"}`,
			Out:   `{"domain":{"name":"shop","retention_ms":604800000,"revision":12}}`,
			codes: []fault.Code{fault.NotFound},
		},
		{
			Verb: "domains.list", admin: true, Does: "List all domains.",
			Request: "ListDomainsRequest", Response: "ListDomainsResponse",
			In:    `{}`,
			Out:   `{"domains":[{"name":"shop","retention_ms":604800000,"revision":12}]}`,
			Notes: []string{pageNote},
		},
		{
			Verb: "domains.delete", admin: true, Does: "Delete a domain without unfinished tasks, its task types, its limits and the settings of its tasklists.",
			Request: "DeleteDomainRequest", Response: "DeleteDomainResponse",
			In:    `{"name":"shop"}`,
			Out:   `{"domain":{"name":"shop","retention_ms":604800000,"revision":12}}`,
			codes: []fault.Code{fault.NotFound, fault.Stale, fault.FailedPrecondition},
			Notes: []string{
				"FAILED_PRECONDITION: it has unfinished tasks; `detail` says how many were found in each state. Cancel them, or let them finish. Tasks that are only on disk so far, or in transit, may be missed.",
				"Requests to a deleted domain are rejected as if it had never existed. None of its data is lost: finished tasks are kept until their retention is over, tasks that were missed wait, and a domain created again with this name has all of them.",
				deleteNote,
			},
		},
	}
}
