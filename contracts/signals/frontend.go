package signals

// The metrics of the frontend, in the order of the page.
var (
	Requests = frontend.add(Metric{
		Name: "yardmaster.requests.received", Kind: Counter, Unit: "{request}", Attributes: []string{Verb},
		Means: "Requests of the API.",
	})
	RequestsFailed = frontend.add(Metric{
		Name: "yardmaster.requests.failed", Kind: Counter, Unit: "{request}", Attributes: []string{Verb, Code},
		Means: "Requests answered with an error.",
		Worry: "INTERNAL: always. UNAVAILABLE, UNKNOWN: outside outages. RESOURCE_EXHAUSTED: the cluster or a quota is too small",
	})
	SubmitDuration = frontend.add(Metric{
		Name: "yardmaster.submit.duration", Kind: Histogram, Unit: Seconds, Attributes: []string{Domain, Tasklist}, Buckets: quick(),
		Means: "From a submit's arrival until the log has acknowledged its tasks. A request with tasks of several tasklists counts once, for the tasklist of its first task.",
		Worry: "p99 above 1 s: compare with yardmaster_append_duration_seconds",
	})
	TasksAccepted = frontend.add(Metric{
		Name: "yardmaster.submit.tasks", Kind: Counter, Unit: "{task}", Attributes: []string{Domain, Tasklist},
		Means: "Tasks accepted.",
	})
	SubmitMessages = frontend.add(Metric{
		Name: "yardmaster.submit.messages", Kind: Counter, Unit: "{message}",
		Means: "Messages of accepted tasks stored in the log. Tasks divided by messages is the size of a group commit.",
		Worry: "as many as tasks under load: each task costs its own sync to disk",
	})
	AppendFailures = frontend.add(Metric{
		Name: "yardmaster.submit.append_failures", Kind: Counter, Unit: "{append}",
		Means: "Appends of tasks to the log that failed, retries included.",
		Worry: "a rate while NATS is healthy",
	})
	PartitionShare = frontend.add(Metric{
		Name: "yardmaster.submit.partition.share", Kind: Gauge, Unit: Part, Attributes: []string{Partition},
		Means: "How much this frontend uses a partition for submits that may go to any partition. 1 = fully; 0.125 = its appends are slow, compared with the others or with its own " +
			"past; 0 = it gets probes only. Submits that have one partition, by an order key, a unique key or a repeat, go there all the same.",
		Worry: "below 1 for minutes: the server that leads the stream of the partition is slow, or its disk is",
	})
	PartitionShareChanges = frontend.add(Metric{
		Name: "yardmaster.submit.partition.share_changes", Kind: Counter, Unit: "{change}",
		Means: "Changes of yardmaster_submit_partition_share_ratio.",
		Worry: "a rate that lasts: appends take very different times",
	})
	SubmitsUnknown = frontend.add(Metric{
		Name: "yardmaster.submit.unknown_outcomes", Kind: Counter, Unit: "{request}",
		Means: "Submits answered UNKNOWN: the log did not say whether it stored them.",
		Worry: "outside outages",
	})
	SubmitsRefused = frontend.add(Metric{
		Name: "yardmaster.submit.refused", Kind: Counter, Unit: "{request}", Attributes: []string{Reason},
		Means: "Submits refused with RESOURCE_EXHAUSTED. Reason: `queue_full` = a tasklist is at its max_queued; `quota` = the domain is over its quota; `storage_full` = the log has no room; " +
			"`busy` = too many tasks of the domain wait for the log.",
		Worry: "storage_full: always. queue_full: workers do not keep up with a tasklist",
	})
	QuotaRefusals = frontend.add(Metric{
		Name: "yardmaster.quota.refusals", Kind: Counter, Unit: "{request}", Attributes: []string{Quota},
		Means: "Submits and polls refused with RESOURCE_EXHAUSTED for a quota of their domain. Quota: `submits` = the tasks or the bytes in a second; `open_polls`; `waiting_tasks`; `stored_bytes`.",
		Worry: "waiting_tasks, stored_bytes: the workers of a domain do not keep up, see `yard domain usage`",
	})
	AuditLost = frontend.add(Metric{
		Name: "yardmaster.audit.lost", Kind: Counter, Unit: "{request}",
		Means: "Requests of operators that were carried out and are missing in `audit.list`. The frontend's log has each of them.",
		Worry: "always: the stream YARD_AUDIT takes no messages",
	})
	QuotaUsed = frontend.add(Metric{
		Name: "yardmaster.quota.used", Kind: Gauge, Unit: "{percent}", Attributes: []string{Quota},
		Means: "How much is used of a quota by the domain that uses most of its own, as this frontend knows.",
		Worry: "waiting_tasks, stored_bytes: above 80; at 100 the domain is refused",
	})
	OutcomeMessages = frontend.add(Metric{
		Name: "yardmaster.outcome.messages", Kind: Counter, Unit: "{message}",
		Means: "Messages of outcomes, heartbeats and cancels sent to the log, retries included.",
	})
	OutcomeResends = frontend.add(Metric{
		Name: "yardmaster.outcome.resends", Kind: Counter, Unit: "{message}",
		Means: "Messages of outcomes, heartbeats and cancels sent again because no verdict came.",
		Worry: "a rate: history partitions are slow, or have no owner",
	})
	OutcomeVerdicts = frontend.add(Metric{
		Name: "yardmaster.outcome.verdicts", Kind: Counter, Unit: "{outcome}",
		Means: "Outcomes, heartbeats and cancels answered with a verdict.",
	})
	PollsForwarded = frontend.add(Metric{
		Name: "yardmaster.poll.forwarded", Kind: Counter, Unit: "{poll}",
		Means: "Polls forwarded to matching, retries included.",
	})
	PollsWithoutOwner = frontend.add(Metric{
		Name: "yardmaster.poll.without_owner", Kind: Counter, Unit: "{poll}",
		Means: "Polls whose shard had no owner; each is sent again.",
		Worry: "a rate that lasts: matching is down",
	})
	PollsOwnerReplaced = frontend.add(Metric{
		Name: "yardmaster.poll.owner_replaced", Kind: Counter, Unit: "{poll}",
		Means: "Polls answered empty because another node took over their shard.",
	})
	PollsMoved = frontend.add(Metric{
		Name: "yardmaster.poll.moved", Kind: Counter, Unit: "{poll}",
		Means: "Polls that a partition of their tasklist gave up, sent on to another one: they found nothing there, or it asked for them.",
		Worry: "as many as tasks start: fewer partitions would do",
	})
	TasklistsScaled = frontend.add(Metric{
		Name: "yardmaster.tasklist.scaled", Kind: Counter, Unit: "{change}",
		Means: "Changes of the number of partitions of a tasklist that the engine sets itself (partitions_max), by this frontend.",
		Worry: "a rate that lasts: `scale.up_after` and `scale.down_after` are too short for how the rate of some tasklist changes",
	})
)

// The values of Reason of SubmitsRefused.
const (
	ReasonQueueFull   = "queue_full"
	ReasonQuota       = "quota"
	ReasonStorageFull = "storage_full"
	ReasonBusy        = "busy"
)

// The values of Quota.
const (
	QuotaSubmits      = "submits"
	QuotaOpenPolls    = "open_polls"
	QuotaWaitingTasks = "waiting_tasks"
	QuotaStoredBytes  = "stored_bytes"
)

// Quotas are all values of Quota.
var Quotas = []string{QuotaSubmits, QuotaOpenPolls, QuotaWaitingTasks, QuotaStoredBytes}
