package signals

// The keys of log lines and of metrics' attributes. Spans have the same ones behind
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
	// Error is an error's text. Log lines only.
	Error = "error"
)

// SpanPrefix is before the keys above in spans, as OpenTelemetry asks of names that
// are a program's own.
const SpanPrefix = "yardmaster."
