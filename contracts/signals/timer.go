package signals

// The metrics of the timer, in the order of the page.
var (
	TimerLateness = timer.add(Metric{
		Name: "yardmaster.timer.lateness", Kind: Histogram, Unit: Seconds, Attributes: []string{Partition}, Buckets: long(),
		Means: "How long after its due time a task was sent to history.",
		Worry: "p99 above 1 s without an outage; after an outage it shows how long that lasted",
	})
	TimersWaiting = timer.add(Metric{
		Name: "yardmaster.timer.tasks.waiting", Kind: Gauge, Unit: "{task}", Attributes: []string{Partition},
		Means: "Tasks that wait for their due time.",
		Worry: "this number × 10 bytes comes near the memory of a node",
	})
	TimersNear = timer.add(Metric{
		Name: "yardmaster.timer.tasks.near", Kind: Gauge, Unit: "{task}", Attributes: []string{Partition},
		Means: "Tasks in memory, of those that wait: they are due soon.",
		Worry: "above `near_max`, for more than a minute: one minute has more, or more are overdue",
	})
	TimerNext = timer.add(Metric{
		Name: "yardmaster.timer.next", Kind: Gauge, Unit: Seconds, Attributes: []string{Partition},
		Means: "In how long the next task is due, by its minute if that is not in memory; less than 0 if it is overdue. Without a waiting task there is no value.",
		Worry: "below -5 for a minute: due tasks do not fire",
	})
	TimerDomainLate = timer.add(Metric{
		Name: "yardmaster.timer.domain.late", Kind: Gauge, Unit: Seconds, Attributes: []string{Domain},
		Means: "How late the next task of a domain is, as found within the last seconds. Only the 20 latest domains of a node have it, those that are late by a second or more.",
		Worry: "a domain has it for a minute: its due tasks do not fire, or there are more of them than history takes",
	})
	TimerLoad = timer.add(Metric{
		Name: "yardmaster.timer.load.duration", Kind: Histogram, Unit: Seconds, Attributes: []string{Partition}, Buckets: long(),
		Means: "How long it took to bring the tasks of some minutes into memory, from the store.",
		Worry: "p99 above half of `horizon`: tasks fire late",
	})
	TimersFired = timer.add(Metric{
		Name: "yardmaster.timer.tasks.fired", Kind: Counter, Unit: "{task}", Attributes: []string{Partition},
		Means: "Tasks sent to history because they were due.",
	})
	TimersEarly = timer.add(Metric{
		Name: "yardmaster.timer.tasks.fired_early", Kind: Counter, Unit: "{task}", Attributes: []string{Partition},
		Means: "Tasks sent to history before they were due, for a command such as a cancel; among those fired.",
	})
	TimersVoid = timer.add(Metric{
		Name: "yardmaster.timer.tasks.void", Kind: Counter, Unit: "{task}", Attributes: []string{Partition},
		Means: "Parked tasks that are void: the history owner that wrote them had been replaced.",
	})
	TimerMessagesMalformed = timer.add(Metric{
		Name: "yardmaster.timer.messages.malformed", Kind: Counter, Unit: "{message}", Attributes: []string{Partition},
		Means: "Malformed messages of the timer store, which were put into quarantine.",
		Worry: "any: see `yard quarantine list`",
	})
	ScheduleLateness = timer.add(Metric{
		Name: "yardmaster.timer.schedules.lateness", Kind: Histogram, Unit: Seconds, Attributes: []string{Partition}, Buckets: long(),
		Means: "How long after its time, without jitter, the task of a scheduled run was submitted. Runs that were missed are not included.",
		Worry: "p99 above 1 s without jitter: the timer's owner is busy, or the log is slow",
	})
	ScheduleRuns = timer.add(Metric{
		Name: "yardmaster.timer.schedules.runs", Kind: Counter, Unit: "{run}", Attributes: []string{Partition},
		Means: "Runs of schedules whose tasks were submitted, with triggers and backfills.",
	})
	ScheduleRunsSkipped = timer.add(Metric{
		Name: "yardmaster.timer.schedules.runs_skipped", Kind: Counter, Unit: "{run}", Attributes: []string{Partition},
		Means: "Runs of schedules that were skipped, since an earlier one had not ended.",
	})
	ScheduleRunsMissed = timer.add(Metric{
		Name: "yardmaster.timer.schedules.runs_missed", Kind: Counter, Unit: "{run}", Attributes: []string{Partition},
		Means: "Runs of schedules that were not made up for after the engine was down at their times.",
		Worry: "any, without an outage",
	})
)
