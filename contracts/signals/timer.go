package signals

// What the timer tells.
var (
	TimersWaiting = Metric{
		Name: "yardmaster.timer.tasks.waiting", Kind: Gauge, Unit: "{task}", Attributes: []string{Partition},
		Tells: "Tasks that wait for their due time.",
		Worry: "times 75 bytes nears the memory of a node",
	}
	TimersFired = Metric{
		Name: "yardmaster.timer.tasks.fired", Kind: Counter, Unit: "{task}", Attributes: []string{Partition},
		Tells: "Tasks given to history since they were due.",
	}
	TimersCancelled = Metric{
		Name: "yardmaster.timer.tasks.cancelled", Kind: Counter, Unit: "{task}", Attributes: []string{Partition},
		Tells: "Waiting tasks taken out by a cancel.",
	}
	TimersVoid = Metric{
		Name: "yardmaster.timer.tasks.void", Kind: Counter, Unit: "{task}", Attributes: []string{Partition},
		Tells: "Parked tasks that do not count: the history owner that wrote them had been replaced.",
	}
	TimerMessagesMalformed = Metric{
		Name: "yardmaster.timer.messages.malformed", Kind: Counter, Unit: "{message}", Attributes: []string{Partition},
		Tells: "Messages of the store that are malformed and were put into quarantine.",
		Worry: "any: see `yard quarantine list`",
	}
	TimerLateness = Metric{
		Name: "yardmaster.timer.lateness", Kind: Histogram, Unit: Seconds, Attributes: []string{Partition}, Buckets: long(),
		Tells: "How late a task was given to history, after its due time.",
		Worry: "p99 above 1 s without an outage; after one it shows how long it lasted",
	}
)

func timer() []Metric {
	return []Metric{TimerLateness, TimersWaiting, TimersFired, TimersCancelled, TimersVoid, TimerMessagesMalformed}
}
