package signals

// The metrics of matching, in the order of the page.
var (
	PollsReceived = matching.add(Metric{
		Name: "yardmaster.matching.polls.received", Kind: Counter, Unit: "{poll}",
		Means: "Polls received.",
	})
	PollsRefused = matching.add(Metric{
		Name: "yardmaster.matching.polls.refused", Kind: Counter, Unit: "{poll}",
		Means: "Polls rejected because too many wait.",
		Worry: "a rate: use fewer workers, or more shards",
	})
	PollsWaiting = matching.add(Metric{
		Name: "yardmaster.matching.polls.waiting", Kind: Gauge, Unit: "{poll}", Attributes: []string{Shard},
		Means: "Polls that wait for a task.",
	})
	LimitFull = matching.add(Metric{
		Name: "yardmaster.matching.limit.full", Kind: Gauge, Unit: Seconds, Attributes: []string{Domain, Limit},
		Means: "For how long a limit has been full for which tasks wait, as found within the last seconds. Only the 20 limits of a node have it that have been full for the " +
			"longest, at most 5 of a domain and shard. `yard top` shows those of the cluster.",
		Worry: "it grows for hours: the limit is too small for what the domain submits, or attempts have its slots and do not end, see `yard limit top`",
	})
	PollsSentUp = matching.add(Metric{
		Name: "yardmaster.matching.polls.sent_up", Kind: Counter, Unit: "{poll}",
		Means: "Polls that found nothing in their partition of a tasklist, and went to its parent.",
		Worry: "more than polls received: the tasklist has more partitions than it needs",
	})
	PollsSentDown = matching.add(Metric{
		Name: "yardmaster.matching.polls.sent_down", Kind: Counter, Unit: "{poll}",
		Means: "Polls that went to a partition of their tasklist where triggers waited for one.",
	})
	MatchesDirect = matching.add(Metric{
		Name: "yardmaster.matching.matches.direct", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers that met a waiting poll without passing a table.",
	})
	MatchesFromTable = matching.add(Metric{
		Name: "yardmaster.matching.matches.from_table", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers taken from a table for a poll.",
	})
	GrabDuration = matching.add(Metric{
		Name: "yardmaster.matching.grab.duration", Kind: Histogram, Unit: Seconds, Buckets: quick(),
		Means: "From a message of grabs to history's verdict on it.",
		Worry: "p99 above 1 s: messages are sent again; history or the log is slow",
	})
	GrabMessages = matching.add(Metric{
		Name: "yardmaster.matching.grab_messages.sent", Kind: Counter, Unit: "{message}",
		Means: "Messages of grabs sent to history.",
	})
	GrabsGranted = matching.add(Metric{
		Name: "yardmaster.matching.grabs.granted", Kind: Counter, Unit: "{grab}",
		Means: "Grabs that history granted.",
	})
	GrabsRefused = matching.add(Metric{
		Name: "yardmaster.matching.grabs.refused", Kind: Counter, Unit: "{grab}",
		Means: "Grabs that history refused: the task had started, or ended.",
		Worry: "more than grabs granted: tables hold old triggers",
	})
	AttemptsUndelivered = matching.add(Metric{
		Name: "yardmaster.matching.attempts.undelivered", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts in answers that no worker received.",
		Worry: "a rate: workers leave without ending their polls",
	})
	AttemptsReturned = matching.add(Metric{
		Name: "yardmaster.matching.attempts.returned", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts given back to history.",
	})
	HintMessages = matching.add(Metric{
		Name: "yardmaster.matching.hint_messages.received", Kind: Counter, Unit: "{message}",
		Means: "Messages of the hint stream.",
	})
	TriggersReceived = matching.add(Metric{
		Name: "yardmaster.matching.triggers.received", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers received, duplicates included.",
	})
	TriggersDuplicate = matching.add(Metric{
		Name: "yardmaster.matching.triggers.duplicate", Kind: Counter, Unit: "{trigger}",
		Means: "Triggers dropped because their tasks were grabbed already.",
	})
	HintsMalformed = matching.add(Metric{
		Name: "yardmaster.matching.hints.malformed", Kind: Counter, Unit: "{hint}",
		Means: "Malformed hints, which are dropped.",
		Worry: "any: another program writes to the hint stream",
	})
	TableCalls = matching.add(Metric{
		Name: "yardmaster.matching.table_calls.made", Kind: Counter, Unit: "{call}",
		Means: "Calls to the tables; at most one per domain and turn.",
	})
	TableCallsFailed = matching.add(Metric{
		Name: "yardmaster.matching.table_calls.failed", Kind: Counter, Unit: "{call}",
		Means: "Calls to the tables that failed, or took longer than a second.",
		Worry: "a rate: Redis is unreachable or overloaded",
	})
	TablesLost = matching.add(Metric{
		Name: "yardmaster.matching.tables.lost", Kind: Counter, Unit: "{table}",
		Means: "Tables that were lost from Redis; they are filled again.",
		Worry: "any without a restart of Redis: it evicts keys",
	})
	TasklistsSearched = matching.add(Metric{
		Name: "yardmaster.matching.tasklists.searched", Kind: Counter, Unit: "{tasklist}",
		Means: "Tasklists searched for triggers.",
	})
	RedisCallDuration = matching.add(Metric{
		Name: "yardmaster.redis.call.duration", Kind: Histogram, Unit: Seconds, Attributes: []string{Operation}, Buckets: quick(),
		Means: "Round trips to Redis, failed ones included, by operation.",
		Worry: "p99 above 0.1 s: Redis is overloaded, or far away; calls fail at 1 s",
	})
	SlotsReclaimed = matching.add(Metric{
		Name: "yardmaster.matching.slots.reclaimed", Kind: Counter, Unit: "{slot}",
		Means: "Slots freed by an audit: their attempts were over, but no release had come.",
		Worry: "a rate: releases are lost",
	})
	AttemptsBeyondShadow = matching.add(Metric{
		Name: "yardmaster.matching.attempts.beyond_shadow", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts started that a limit in shadow would have held up.",
	})
	TasksRejected = matching.add(Metric{
		Name: "yardmaster.matching.tasks.rejected", Kind: Counter, Unit: "{task}",
		Means: "Tasks cancelled since a limit was full that rejects those that wait (on_full).",
	})
	AttemptsDisplaced = matching.add(Metric{
		Name: "yardmaster.matching.attempts.displaced", Kind: Counter, Unit: "{attempt}",
		Means: "Attempts asked to stop since newer tasks waited for the slots of their limit (on_full).",
	})
	QueriesFailed = matching.add(Metric{
		Name: "yardmaster.matching.history_queries.failed", Kind: Counter, Unit: "{query}",
		Means: "Queries that a history partition did not answer; each is repeated.",
		Worry: "a rate: the partition has no owner",
	})
	ShardsSuperseded = matching.add(Metric{
		Name: "yardmaster.matching.shards.superseded", Kind: Counter, Unit: "{shard}",
		Means: "Ownerships that ended because a newer owner serves the shard.",
	})
)
