package signals

// The metrics of matching.
var (
	PollsReceived = Metric{
		Name: "yardmaster.matching.polls.received", Kind: Counter, Unit: "{poll}",
		Means: "Polls received.",
	}
	PollsRefused = Metric{
		Name: "yardmaster.matching.polls.refused", Kind: Counter, Unit: "{poll}",
		Means: "Polls rejected because too many wait.",
		Worry: "a rate: use fewer workers, or more shards",
	}
	PollsWaiting = Metric{
		Name: "yardmaster.matching.polls.waiting", Kind: Gauge, Unit: "{poll}", Attributes: []string{Shard},
		Means: "Polls that wait for a task.",
	}
	PollsSentUp = Metric{
		Name: "yardmaster.matching.polls.sent_up", Kind: Counter, Unit: "{poll}",
		Means: "Polls that found nothing in their partition of a tasklist, and went to its parent.",
		Worry: "more than polls received: the tasklist has more partitions than it needs",
	}
	PollsSentDown = Metric{
		Name: "yardmaster.matching.polls.sent_down", Kind: Counter, Unit: "{poll}",
		Means: "Polls that went to a partition of their tasklist where triggers waited for one.",
	}
	HintMessages = Metric{
		Name: "yardmaster.matching.hint_messages.received", Kind: Counter, Unit: "{message}",
		Means: "Messages of the hint stream.",
	}
	HintsMalformed = Metric{
		Name: "yardmaster.matching.hints.malformed", Kind: Counter, Unit: "{hint}",
		Means: "Malformed hints, which are dropped.",
		Worry: "any: another program writes to the hint stream",
	}
	TriggersReceived = Metric{
		Name: "yardmaster.matching.triggers.received", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers received, duplicates included.",
	}
	TriggersDuplicate = Metric{
		Name: "yardmaster.matching.triggers.duplicate", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers dropped because their tasks were grabbed already.",
	}
	MatchesDirect = Metric{
		Name: "yardmaster.matching.matches.direct", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers that met a waiting poll without passing a table.",
	}
	MatchesFromTable = Metric{
		Name: "yardmaster.matching.matches.from_table", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers taken from a table for a poll.",
	}
	GrabMessages = Metric{
		Name: "yardmaster.matching.grab_messages.sent", Kind: Counter, Unit: "{message}",
		Means: "Messages of grabs sent to history.",
	}
	GrabsGranted = Metric{
		Name: "yardmaster.matching.grabs.granted", Kind: Counter, Unit: "{grab}",
		Means: "Grabs that history granted.",
	}
	GrabsRefused = Metric{
		Name: "yardmaster.matching.grabs.refused", Kind: Counter, Unit: "{grab}",
		Means: "Grabs that history refused: the task had started, or ended.",
		Worry: "more than grabs granted: tables hold old triggers",
	}
	AttemptsUndelivered = Metric{
		Name: "yardmaster.matching.attempts.undelivered", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts in answers that no worker received.",
		Worry: "a rate: workers leave without ending their polls",
	}
	AttemptsReturned = Metric{
		Name: "yardmaster.matching.attempts.returned", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts given back to history.",
	}
	TableCalls = Metric{
		Name: "yardmaster.matching.table_calls.made", Kind: Counter, Unit: "{call}",
		Means: "Calls to the tables; at most one per domain and turn.",
	}
	TableCallsFailed = Metric{
		Name: "yardmaster.matching.table_calls.failed", Kind: Counter, Unit: "{call}",
		Means: "Calls to the tables that failed, or took longer than a second.",
		Worry: "a rate: Redis is unreachable or overloaded",
	}
	TablesLost = Metric{
		Name: "yardmaster.matching.tables.lost", Kind: Counter, Unit: "{table}",
		Means: "Tables that were lost from Redis; they are filled again.",
		Worry: "any without a restart of Redis: it evicts keys",
	}
	TasklistsSearched = Metric{
		Name: "yardmaster.matching.tasklists.searched", Kind: Counter, Unit: "{tasklist}",
		Means: "Tasklists searched for triggers.",
	}
	SlotsReclaimed = Metric{
		Name: "yardmaster.matching.slots.reclaimed", Kind: Counter, Unit: "{slot}",
		Means: "Slots freed by an audit: their attempts were over, but no release had come.",
		Worry: "a rate: releases are lost",
	}
	AttemptsBeyondShadow = Metric{
		Name: "yardmaster.matching.attempts.beyond_shadow", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts started that a limit in shadow would have held up.",
	}
	TasksRejected = Metric{
		Name: "yardmaster.matching.tasks.rejected", Kind: Counter, Unit: "{task}",
		Means: "Tasks cancelled since a limit was full that rejects those that wait (on_full).",
	}
	AttemptsDisplaced = Metric{
		Name: "yardmaster.matching.attempts.displaced", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts asked to stop since newer tasks waited for the slots of their limit (on_full).",
	}
	QueriesFailed = Metric{
		Name: "yardmaster.matching.history_queries.failed", Kind: Counter, Unit: "{query}",
		Means: "Queries that a history partition did not answer; each is repeated.",
		Worry: "a rate: the partition has no owner",
	}
	ShardsSuperseded = Metric{
		Name: "yardmaster.matching.shards.superseded", Kind: Counter, Unit: "{shard}",
		Means: "Ownerships that ended because a newer owner serves the shard.",
	}
	GrabDuration = Metric{
		Name: "yardmaster.matching.grab.duration", Kind: Histogram, Unit: Seconds, Buckets: quick(),
		Means: "From a message of grabs to history's verdict on it.",
		Worry: "p99 above 1 s: messages are sent again; history or the log is slow",
	}
	RedisCallDuration = Metric{
		Name: "yardmaster.redis.call.duration", Kind: Histogram, Unit: Seconds, Attributes: []string{Operation}, Buckets: quick(),
		Means: "Round trips to Redis, failed ones included, by operation.",
		Worry: "p99 above 0.1 s: Redis is overloaded, or far away; calls fail at 1 s",
	}
)

func matching() []Metric {
	return []Metric{
		PollsReceived, PollsRefused, PollsWaiting, PollsSentUp, PollsSentDown, MatchesDirect, MatchesFromTable,
		GrabDuration, GrabMessages, GrabsGranted, GrabsRefused, AttemptsUndelivered, AttemptsReturned,
		HintMessages, TriggersReceived, TriggersDuplicate, HintsMalformed,
		TableCalls, TableCallsFailed, TablesLost, TasklistsSearched, RedisCallDuration,
		SlotsReclaimed, AttemptsBeyondShadow, TasksRejected, AttemptsDisplaced, QueriesFailed, ShardsSuperseded,
	}
}
