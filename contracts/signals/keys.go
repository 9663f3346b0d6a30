package signals

// The keys of log lines and of metrics' attributes: a log line has no other (e2e/tidy). Spans have the same ones behind
// SpanPrefix: domain in a log line is yardmaster.domain in a span.
const (
	// Service is the service that speaks: frontend, history, matching or timer.
	Service = "service"
	// Node is the process's name among the members.
	Node = "node"
	// Domain is the tenant.
	Domain = "domain"
	// Tasklist is the queue of a task.
	Tasklist = "tasklist"
	// Type is the type of a task.
	Type = "type"
	// TaskID is the printed id of a task.
	TaskID = "task_id"
	// Attempt is the number of an attempt, from 1.
	Attempt = "attempt"
	// Partition is the number of a history partition, from 0.
	Partition = "partition"
	// Shard is the number of a matching shard, from 0.
	Shard = "shard"
	// Epoch is the number of an ownership.
	Epoch = "epoch"
	// Stream is the name of a JetStream stream.
	Stream = "stream"
	// Subject is a NATS subject.
	Subject = "subject"
	// Sequence is the number of a message in its stream.
	Sequence = "sequence"
	// Tasks is how many tasks something is about.
	Tasks = "tasks"
	// Verb is a verb of the API, such as tasks.submit.
	Verb = "verb"
	// Code is a code of the API, such as NOT_FOUND; OK where nothing failed.
	Code = "code"
	// Operation is what a server was asked to do.
	Operation = "operation"
	// Reason is why something waits, ended or was set apart.
	Reason = "reason"
	// Limit is a limit's name.
	Limit = "limit"
	// Worker is what a worker calls itself.
	Worker = "worker"
)

// Keys of log lines alone.
const (
	Error = "error"
	// Duration is how long something took, or has taken so far; RetryIn after how long it is tried again.
	Duration = "duration"
	RetryIn  = "retry_in"
	// Panic is what a program panicked with, Stack where.
	Panic = "panic"
	Stack = "stack"
	// What something is about, by number.
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
	// A program: its version and revision, the file that it is, what it wrote, whether it stopped as it should, how it
	// exited, how many of its kind may run at once.
	Version, Revision, Binary, Output, Clean = "version", "revision", "binary", "output", "clean"
	Status, Concurrency                      = "status", "concurrency"
	// Settings are what a stream's settings differ in.
	Settings = "settings"
	// Skew is how far a clock is ahead; GiveOrTake by how much that may be wrong.
	Skew, GiveOrTake = "skew", "give_or_take"
)

// SpanPrefix is before the keys above in spans, as OpenTelemetry asks of names that
// are a program's own.
const SpanPrefix = "yardmaster."
