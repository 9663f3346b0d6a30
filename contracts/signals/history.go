package signals

// What history tells.
var (
	SubmitMessagesRead = Metric{
		Name: "yardmaster.history.submit_messages.read", Kind: Counter, Unit: "{message}",
		Tells: "Messages of submitted tasks read from the log.",
	}
	TasksLoaded = Metric{
		Name: "yardmaster.history.tasks.loaded", Kind: Counter, Unit: "{task}",
		Tells: "Tasks read into the window, where they may start.",
	}
	EventMessagesApplied = Metric{
		Name: "yardmaster.history.event_messages.applied", Kind: Counter, Unit: "{message}",
		Tells: "Messages of events applied.",
	}
	EventsApplied = Metric{
		Name: "yardmaster.history.events.applied", Kind: Counter, Unit: "{event}",
		Tells: "Events applied: grabs, outcomes, heartbeats, cancels.",
	}
	EventsRefused = Metric{
		Name: "yardmaster.history.events.refused", Kind: Counter, Unit: "{event}",
		Tells: "Those of them that changed nothing: the task was another attempt's, or at its end.",
		Worry: "a large share of all events: workers are slower than their timeouts",
	}
	TriggersSent = Metric{
		Name: "yardmaster.history.triggers.sent", Kind: Counter, Unit: "{trigger}",
		Tells: "Hints to matching that a task is ready.",
	}
	TriggersResent = Metric{
		Name: "yardmaster.history.triggers.resent", Kind: Counter, Unit: "{trigger}",
		Tells: "Hints that were sent again, since polls wait and the task did not start.",
		Worry: "a rate that lasts: hints or tables are lost",
	}
	TaskWait = Metric{
		Name: "yardmaster.task.wait.duration", Kind: Histogram, Unit: Seconds, Attributes: []string{Domain, Tasklist}, Buckets: long(),
		Tells: "From ready to started: how long a task waited for a worker and for its limits. Each attempt counts.",
		Worry: "when it grows: too few workers, or a limit is full",
	}
	AttemptsGranted = Metric{
		Name: "yardmaster.history.attempts.granted", Kind: Counter, Unit: "{attempt}",
		Tells: "Attempts granted to a poll.",
	}
	AttemptsTakenBack = Metric{
		Name: "yardmaster.history.attempts.taken_back", Kind: Counter, Unit: "{attempt}",
		Tells: "Attempts taken back, since their answer reached nobody.",
		Worry: "a rate: workers leave without ending their polls",
	}
	TasksArchived = Metric{
		Name: "yardmaster.history.tasks.archived", Kind: Counter, Unit: "{task}",
		Tells: "Finished tasks written to the archive.",
	}
	TasksParked = Metric{
		Name: "yardmaster.history.tasks.parked", Kind: Counter, Unit: "{task}",
		Tells: "Tasks moved to the timer store until they are due.",
	}
	TasksCarried = Metric{
		Name: "yardmaster.history.tasks.carried", Kind: Counter, Unit: "{task}",
		Tells: "Old tasks written again at the log's end, so that its beginning can be forgotten.",
	}
	SubmitMessagesPassedOver = Metric{
		Name: "yardmaster.history.submit_messages.skipped", Kind: Counter, Unit: "{message}",
		Tells: "Messages of submits that a lane's reader left to the reader of a domain with too many ready tasks.",
		Worry: "a rate for hours: a domain floods and has too few workers",
	}
	DomainsLagging = Metric{
		Name: "yardmaster.history.domains.lagging", Kind: Gauge, Unit: "{domain}", Attributes: []string{Partition},
		Tells: "Domains that have too many ready tasks of a priority and are read apart; the others go on.",
		Worry: "more than 0 for hours: they have too few workers",
	}
	WriteRetries = Metric{
		Name: "yardmaster.history.write.retries", Kind: Counter, Unit: "{write}",
		Tells: "Writes of owners repeated after a failure.",
		Worry: "a rate while NATS is well",
	}
	RecordsQuarantined = Metric{
		Name: "yardmaster.history.records.malformed", Kind: Counter, Unit: "{record}",
		Tells: "Records that cannot be read and were put into quarantine.",
		Worry: "any: see `yard quarantine list`",
	}
	StorageFull = Metric{
		Name: "yardmaster.history.storage.full", Kind: Gauge, Attributes: []string{Partition},
		Tells: "1 while the partition's log takes no tasks, since its storage is down to the reserve.",
		Worry: "1",
	}
)

func history() []Metric {
	return []Metric{
		TaskWait, TasksLoaded, AttemptsGranted, AttemptsTakenBack, TasksArchived, TasksParked, TasksCarried,
		SubmitMessagesRead, SubmitMessagesPassedOver, DomainsLagging, EventMessagesApplied, EventsApplied, EventsRefused,
		TriggersSent, TriggersResent,
		WriteRetries, RecordsQuarantined, StorageFull,
	}
}
