package signals

// The keys of log lines and of metrics' attributes: a log line has no other (e2e/tidy). Spans have the same ones behind
// SpanPrefix: domain in a log line is yardmaster.domain in a span.
const (
	// Service is the service that writes the line: frontend, history, matching or timer.
	Service = "service"
	// Node is the process's name among the members.
	Node = "node"
	// Domain is the tenant.
	Domain = "domain"
	// Tasklist is the tasklist of a task.
	Tasklist = "tasklist"
	// Type is the type of a task.
	Type = "type"
	// Group is the group of a task.
	Group = "group"
	// TaskID is the printed id of a task.
	TaskID = "task_id"
	// TraceID is the trace of a task.
	TraceID = "trace_id"
	// Attempt is the number of an attempt, from 1.
	Attempt = "attempt"
	// Partition is the number of a history partition, from 0.
	Partition = "partition"
	// Shard is the number of a matching shard, from 0.
	Shard = "shard"
	// Epoch is the number of an owner.
	Epoch = "epoch"
	// Stream is the name of a JetStream stream.
	Stream = "stream"
	// Subject is a NATS subject.
	Subject = "subject"
	// Sequence is the number of a message in its stream.
	Sequence = "sequence"
	// Tasks is a number of tasks.
	Tasks = "tasks"
	// Verb is a verb of the API, such as tasks.submit.
	Verb = "verb"
	// User is a login of a cluster with logins, By the name that a client gives, Request a request as JSON.
	User    = "user"
	By      = "by"
	Request = "request"
	// Code is a code of the API, such as NOT_FOUND; OK if nothing failed.
	Code = "code"
	// Operation is what a server was asked to do.
	Operation = "operation"
	// Reason is why something waits, ended or was put into quarantine.
	Reason = "reason"
	// Limit is a limit's name.
	Limit = "limit"
	// Worker is the name of a worker.
	Worker = "worker"
	// Quota is a quota of a domain.
	Quota = "quota"
	// Lane is a lane of history: p1 to p5, later or keyed.
	Lane = "lane"
	// Queue is a queue of history, or what all of one kind have together.
	Queue = "queue"
	// Schedule is the name of a schedule.
	Schedule = "schedule"
	// State is the state of tasks.
	State = "state"
)

// Keys of log lines only.
const (
	Error = "error"
	// Duration is how long something took, or has taken so far; RetryIn is the pause before the next try.
	Duration = "duration"
	RetryIn  = "retry_in"
	// Panic is the value of a panic, Stack its place.
	Panic = "panic"
	Stack = "stack"
	// Numbers of things.
	Attempts, Domains, Events, Hints, Dropped, Bytes = "attempts", "domains", "events", "hints", "dropped", "bytes"
	Asked, Sent                                      = "asked", "sent"
	HistoryPartitions, MatchingShards                = "history_partitions", "matching_shards"
	MessagesUpTo                                     = "messages_up_to"
	ReplyBytesMax                                    = "reply_bytes_max"
	// Where something is: a server, an address or URL to connect to or to listen at, a key of a
	// bucket, a bucket of the timer store, a reply subject, a consumer, a source of records.
	Server, Address, URL, Key, Bucket, Reply, Consumer, Source = "server", "address", "url", "key", "bucket", "reply", "consumer", "source"
	// Nodes are the live ones, Candidates those that may serve.
	Nodes, Candidates = "nodes", "candidates"
	// A program: its version and revision, its file, its output, whether it stopped cleanly, its exit status, how many
	// may run at once.
	Version, Revision, Binary, Output, Clean = "version", "revision", "binary", "output", "clean"
	Status, Concurrency                      = "status", "concurrency"
	// From and To are numbers of partitions of a tasklist, before a change and after it; PerSecond is a rate.
	From, To, PerSecond = "from", "to", "per_second"
	// Settings are the settings of a stream that differ.
	Settings = "settings"
	// Skew is how far a clock is ahead; GiveOrTake is the error of that measure.
	Skew, GiveOrTake = "skew", "give_or_take"
)

// SpanPrefix precedes the keys above in spans, as OpenTelemetry requires of names that
// are not its own.
const SpanPrefix = "yardmaster."
