package signals

// The metrics of history, in the order of the page.
var (
	TaskWait = history.add(Metric{
		Name: "yardmaster.task.wait.duration", Kind: Histogram, Unit: Seconds, Attributes: []string{Domain, Tasklist}, Buckets: long(),
		Means: "From ready to started: how long a task waited for a worker and for its limits, per attempt.",
		Worry: "it grows: too few workers, or a limit is full",
	})
	OldestReady = history.add(Metric{
		Name: "yardmaster.task.oldest_ready.age", Kind: Gauge, Unit: Seconds, Attributes: []string{Partition},
		Means: "For how long the oldest ready task has waited for a worker or its limits; 0 = none waits. " +
			"Those in memory count. Tasks that are still on disk, of a domain that lags for example, do not: they are younger than what was read of its domain and priority.",
		Worry: "it grows: no worker polls a tasklist, or a limit stays full",
	})
	TasksLoaded = history.add(Metric{
		Name: "yardmaster.history.tasks.loaded", Kind: Counter, Unit: "{task}",
		Means: "Tasks read into the window, where they may start.",
	})
	AttemptsGranted = history.add(Metric{
		Name: "yardmaster.history.attempts.granted", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts granted to a poll.",
	})
	AttemptsDirect = history.add(Metric{
		Name: "yardmaster.history.attempts.direct", Kind: Counter, Unit: "{attempt}",
		Means: "First attempts that began with the submit of their task: the frontend that stored it had a poll that waited.",
	})
	AttemptsTakenBack = history.add(Metric{
		Name: "yardmaster.history.attempts.taken_back", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts taken back because the worker did not receive the answer.",
		Worry: "a rate: workers leave without ending their polls",
	})
	AttemptsExpired = history.add(Metric{
		Name: "yardmaster.history.attempts.expired", Kind: Counter, Unit: "{attempt}", Attributes: []string{Reason},
		Means: "Attempts that ended without their worker's word. Reason: `silent` = its heartbeats, or its signs of life, stopped; `deadline` = start_to_close or finish_within passed; " +
			"`undelivered` = the grant may never have reached a worker, since matching was lost.",
		Worry: "a rate: workers die, lose their connection, or need longer than their deadline",
	})
	TasksDead = history.add(Metric{
		Name: "yardmaster.history.tasks.dead", Kind: Counter, Unit: "{task}", Attributes: []string{Domain, Tasklist},
		Means: "Tasks that became dead letters: out of attempts, or failed for good.",
		Worry: "a rate above what is usual for the tasklist",
	})
	DomainEventsPublished = history.add(Metric{
		Name: "yardmaster.history.domain_events.published", Kind: Counter, Unit: "{event}",
		Means: "Events of tasks that were published for domains with `events`. Whether a client listens is not known.",
	})
	DomainEventsDropped = history.add(Metric{
		Name: "yardmaster.history.domain_events.dropped", Kind: Counter, Unit: "{event}",
		Means: "Events of tasks that were not sent, since the node had no connection to NATS for too long.",
		Worry: "a rate: clients that listen miss these events",
	})
	DeadLettersDeleted = history.add(Metric{
		Name: "yardmaster.history.deadletters.deleted", Kind: Counter, Unit: "{letter}", Attributes: []string{Reason},
		Means: "Dead letters that were deleted since they were beyond the limits of their domain. Reason: `number` = dead_letters_max; `age` = dead_letters_max_age_ms.",
		Worry: "a rate with the reason `number`: tasks die faster than somebody looks after them",
	})
	TasksArchived = history.add(Metric{
		Name: "yardmaster.history.tasks.archived", Kind: Counter, Unit: "{task}",
		Means: "Finished tasks written to the archive.",
	})
	TasksParked = history.add(Metric{
		Name: "yardmaster.history.tasks.parked", Kind: Counter, Unit: "{task}",
		Means: "Tasks moved to the timer store until they are due.",
	})
	SnapshotsStored = history.add(Metric{
		Name: "yardmaster.history.snapshots", Kind: Counter, Unit: "{snapshot}",
		Means: "Copies of a partition's state that were stored, so that the log before them can be purged.",
		Worry: "none for an hour while tasks run: the log of the partition grows",
	})
	SubmitMessagesRead = history.add(Metric{
		Name: "yardmaster.history.submit_messages.read", Kind: Counter, Unit: "{message}",
		Means: "Messages of submitted tasks read from the log.",
	})
	SubmitMessagesPassedOver = history.add(Metric{
		Name: "yardmaster.history.submit_messages.skipped", Kind: Counter, Unit: "{message}",
		Means: "Messages of submits that a lane's reader skipped: the domain or tasklist has a reader of its own, since it has too many ready tasks or is over its rate.",
		Worry: "a rate for hours: a domain or tasklist floods and has too few workers",
	})
	TasksOverRate = history.add(Metric{
		Name: "yardmaster.history.tasks.over_rate", Kind: Counter, Unit: "{task}", Attributes: []string{Domain},
		Means: "Tasks that came in with the low class, since their domain was over its `full_weight_tasks_per_s`; with `full_weight_shadow` those that would have.",
		Worry: "a rate for hours: the domain submits more than was agreed, or the number is too low",
	})
	QueuesSplitOff = history.add(Metric{
		Name: "yardmaster.history.queues.split_off", Kind: Gauge, Unit: "{queue}", Attributes: []string{Partition, Queue},
		Means: "Queues that are split off their lanes, of `domain` or of `tasklist`: they have too many ready tasks of a priority, or are over their rate, and are read " +
			"separately; others are not delayed.",
		Worry: "more than 0 for hours: they have too few workers, or are over their rate",
	})
	QueueTasks = history.add(Metric{
		Name: "yardmaster.history.queue.tasks", Kind: Gauge, Unit: "{task}", Attributes: []string{Partition, Lane, Queue},
		Means: "Tasks in memory of a lane, without those that have run for long. Queue: `lane` = of what no queue has that is split off; `split_off` = of all queues " +
			"together that are, as long as there are any. So it is with the other metrics of queues; `yard cluster queues` shows each.",
	})
	QueueTasksMax = history.add(Metric{
		Name: "yardmaster.history.queue.tasks_max", Kind: Gauge, Unit: "{task}", Attributes: []string{Partition, Lane, Queue},
		Means: "A lane is read while it has fewer tasks than this. It shrinks while queues that are split off have many.",
		Worry: "yardmaster_history_queue_tasks of a lane stays at it: there are no workers for most of what the lane has",
	})
	QueueBytes = history.add(Metric{
		Name: "yardmaster.history.queue.memory", Kind: Gauge, Unit: InBytes, Attributes: []string{Partition, Lane, Queue},
		Means: "Memory that the tasks take.",
	})
	QueueBytesMax = history.add(Metric{
		Name: "yardmaster.history.queue.memory_max", Kind: Gauge, Unit: InBytes, Attributes: []string{Partition, Lane, Queue},
		Means: "A lane is read while its tasks take less than this.",
		Worry: "yardmaster_history_queue_memory_bytes of a lane stays at it: the tasks are large, and `partition.window_bytes` is small",
	})
	QueueUnread = history.add(Metric{
		Name: "yardmaster.history.queue.unread", Kind: Gauge, Unit: "{message}", Attributes: []string{Partition, Lane, Queue},
		Means: "Messages of submits (1 to 1000 tasks each) that wait on disk, as counted within the last seconds. Those of a queue that is split off count for its lane, " +
			"too, until the lane has passed over them.",
		Worry: "it grows for hours: workers do not keep up",
	})
	DomainAdmitted = history.add(Metric{
		Name: "yardmaster.history.domain.admitted", Kind: Gauge, Unit: TasksPerSecond, Attributes: []string{Domain},
		Means: "Tasks that came in, in a second, over about the last 10 to 20 s, in the partitions of this node: that were read from the disk for the first time. The " +
			"`top_domains` busiest domains (20 by default) have series of their own: those with the largest parts of what is completed and of what is ready. All others are one, `other`. " +
			"So it is with the other metrics of domains; `yard top` shows the same of the cluster.",
	})
	DomainStarted = history.add(Metric{
		Name: "yardmaster.history.domain.started", Kind: Gauge, Unit: AttemptsPerSecond, Attributes: []string{Domain},
		Means: "Attempts that started in a second, over the same time.",
	})
	DomainCompleted = history.add(Metric{
		Name: "yardmaster.history.domain.completed", Kind: Gauge, Unit: TasksPerSecond, Attributes: []string{Domain},
		Means: "Tasks completed in a second, over the same time.",
	})
	DomainFailed = history.add(Metric{
		Name: "yardmaster.history.domain.failed", Kind: Gauge, Unit: AttemptsPerSecond, Attributes: []string{Domain},
		Means: "Attempts that failed in a second, over the same time.",
		Worry: "as many as tasks are completed",
	})
	DomainShare = history.add(Metric{
		Name: "yardmaster.history.domain.share", Kind: Gauge, Unit: Part, Attributes: []string{Domain},
		Means: "Part that the weight of a domain is of the weights of all domains with work here, 0 to 1.",
	})
	DomainHad = history.add(Metric{
		Name: "yardmaster.history.domain.had", Kind: Gauge, Unit: Part, Attributes: []string{Domain},
		Means: "Part that a domain had of all tasks that were completed here, 0 to 1.",
		Worry: "far below yardmaster_history_domain_share_ratio while the domain has many ready tasks, and others have more than their share",
	})
	DomainTasks = history.add(Metric{
		Name: "yardmaster.history.domain.tasks", Kind: Gauge, Unit: "{task}", Attributes: []string{Domain, State},
		Means: "Tasks in memory. State: `ready`, `running`, `backoff` = they wait for their next attempt.",
	})
	DomainUnread = history.add(Metric{
		Name: "yardmaster.history.domain.unread", Kind: Gauge, Unit: "{message}", Attributes: []string{Domain},
		Means: "Messages of submits that wait on disk, in queues that are split off.",
		Worry: "it grows for hours: the workers of the domain do not keep up",
	})
	DomainOldestReady = history.add(Metric{
		Name: "yardmaster.history.domain.oldest_ready", Kind: Gauge, Unit: Seconds, Attributes: []string{Domain},
		Means: "For how long the oldest ready task in memory has waited, as found within the last seconds; 0 = none waits. For `other` it is the oldest of all others.",
		Worry: "it grows: the domain has too few workers, or a limit stays full",
	})
	TasklistOldestReady = history.add(Metric{
		Name: "yardmaster.history.tasklist.oldest_ready", Kind: Gauge, Unit: Seconds, Attributes: []string{Domain, Tasklist},
		Means: "For how long the oldest ready task of a tasklist has waited, as found within the last seconds. Paused tasks do not count. Only the tasklists of a node have it " +
			"that wait longest, at least 10 s, and as many as `top_domains` (`history`).",
		Worry: "it grows: no worker takes tasks of this tasklist, or a limit stays full",
	})
	EventMessagesApplied = history.add(Metric{
		Name: "yardmaster.history.event_messages.applied", Kind: Counter, Unit: "{message}",
		Means: "Messages of events applied.",
	})
	EventsApplied = history.add(Metric{
		Name: "yardmaster.history.events.applied", Kind: Counter, Unit: "{event}",
		Means: "Events applied: grabs, outcomes, heartbeats, cancels.",
	})
	EventsRefused = history.add(Metric{
		Name: "yardmaster.history.events.refused", Kind: Counter, Unit: "{event}",
		Means: "Events that changed nothing: the attempt was no longer current, or the task had ended.",
		Worry: "a large share of all events: workers are slower than their timeouts",
	})
	TriggersSent = history.add(Metric{
		Name: "yardmaster.history.triggers.sent", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers sent to matching: each says that a task is ready.",
	})
	TriggersResent = history.add(Metric{
		Name: "yardmaster.history.triggers.resent", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers sent again, since polls wait and the task did not start.",
		Worry: "a rate that lasts: hints or tables are lost",
	})
	WriteRetries = history.add(Metric{
		Name: "yardmaster.history.write.retries", Kind: Counter, Unit: "{write}",
		Means: "Writes of partition owners repeated after a failure.",
		Worry: "a rate while NATS is healthy",
	})
	RecordsQuarantined = history.add(Metric{
		Name: "yardmaster.history.records.malformed", Kind: Counter, Unit: "{record}",
		Means: "Records that could not be read and were put into quarantine.",
		Worry: "any: see `yard quarantine list`",
	})
	StorageFull = history.add(Metric{
		Name: "yardmaster.history.storage.full", Kind: Gauge, Attributes: []string{Partition},
		Means: "1 while the partition's log accepts no tasks because its storage is down to the reserve.",
		Worry: "1",
	})
)

// The values of Queue.
const (
	QueueLane     = "lane"
	QueueSplitOff = "split_off"
	QueueDomain   = "domain"
	QueueTasklist = "tasklist"
)

// The values of State of DomainTasks.
const (
	StateReady   = "ready"
	StateRunning = "running"
	StateBackoff = "backoff"
)

// The values of Reason of DeadLettersDeleted.
const (
	ReasonNumber = "number"
	ReasonAge    = "age"
)

// The values of Reason of AttemptsExpired.
const (
	ReasonSilent      = "silent"
	ReasonDeadline    = "deadline"
	ReasonUndelivered = "undelivered"
)
