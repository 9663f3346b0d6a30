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
		Worry: "this number × 75 bytes comes near the memory of a node",
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
)
