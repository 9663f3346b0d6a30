package validate

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Limits of the public API. The comment of each field in the .proto files has it too, since clients read those.
const (
	// BatchMax bounds the entries of one request, and of one message of the log.
	BatchMax = 1000
	// UpdatesMax bounds the tasks of one update.
	UpdatesMax = 100
	// PayloadBytesMax bounds a payload and a result.
	PayloadBytesMax = 256 << 10
	// ProgressBytesMax bounds what a heartbeat may carry.
	ProgressBytesMax = 4096

	// PriorityFirst is the most urgent priority, PriorityLast the least.
	PriorityFirst, PriorityLast, PriorityDefault = 1, 5, 3

	// CostMax is how many starts of a rate an attempt may use.
	CostMax = 1000

	// AheadMax is how far in the future a task may be due.
	AheadMax = 366 * 24 * time.Hour
	// PastGrace is how far in the past run_at may lie: the client's clock and
	// the way to us cost time. A due time inside it means at once.
	PastGrace = 10 * time.Second

	// HeadersMax, HeaderBytesMax, HeaderNameBytesMax and HeaderValueBytesMax bound the headers of a task: how
	// many, the names and values together, a name, and a value. HeaderFiltersMax bounds those that a list names.
	HeadersMax          = 32
	HeaderBytesMax      = 4096
	HeaderNameBytesMax  = 64
	HeaderValueBytesMax = 1024
	HeaderFiltersMax    = 4

	// TimeoutMin and TimeoutMax bound start_to_close and heartbeat timeouts; TimeoutMin and AheadMax bound
	// start_within and finish_within.
	TimeoutMin, TimeoutMax = 100 * time.Millisecond, 7 * 24 * time.Hour

	// AttemptsMax bounds the failures a task may have.
	AttemptsMax = 10_000
	// DeliveriesMax bounds the cap on grants of a task.
	DeliveriesMax = 100_000
	// ErrorTypesMax bounds the error types of a list in a retry policy.
	ErrorTypesMax = 16
	// IntervalMax bounds the first wait between two attempts.
	IntervalMax = 24 * time.Hour
	// BackoffMax bounds the growth of that wait.
	BackoffMax = 100
	// IntervalCapMax bounds the longest wait between two attempts, and the
	// delay that a failure may ask for.
	IntervalCapMax = 30 * 24 * time.Hour

	// WaitMax bounds every wait of a request: poll, get and submit.
	WaitMax = time.Minute
	// SubmitWaitDefault is how long a submit with wait waits where it says nothing.
	SubmitWaitDefault = 30 * time.Second

	// PollUnansweredMax bounds the inboxes of polls given up that a poll may name, InboxBytesMax each of them.
	PollUnansweredMax = 16
	InboxBytesMax     = 256
	// PollTypesMax bounds the types that a poll may name.
	PollTypesMax = 100
	// ListMax bounds the entries of one list answer, ListDefault the tasks where a list
	// says nothing.
	ListMax, ListDefault = 1000, 100

	// WorkerBytesMax, ErrorTypeBytesMax, ErrorMessageBytesMax, ReasonBytesMax
	// and DescriptionBytesMax bound texts for people.
	WorkerBytesMax       = 128
	ErrorTypeBytesMax    = 128
	ErrorMessageBytesMax = 4096
	ReasonBytesMax       = 1024
	DescriptionBytesMax  = 1024

	// SlowAfterMin and AheadMax bound after how long a task is late, and an attempt stuck: owners look for them once a second.
	SlowAfterMin = time.Second
	// DeadLettersAgeMin and DeadLettersMax bound how long, and how many, dead letters a domain keeps that limits them.
	DeadLettersAgeMin = time.Minute
	DeadLettersMax    = 10_000_000
	// TurnsMax is the largest weight of a domain.
	TurnsMax = 100
	// SubmitTasksMax and the others bound the quota of a domain; SubmitTasksMax what comes in with its full weight, too.
	SubmitTasksMax  = 10_000_000
	SubmitBytesMin  = 1000
	SubmitBytesMax  = 100_000_000_000
	OpenPollsMax    = 1_000_000
	WaitingTasksMax = 1_000_000_000
	StoredBytesMin  = 1000
	StoredBytesMax  = 1_000_000_000_000_000

	// RetentionMin, RetentionMax and RetentionDefault bound how long a domain
	// keeps finished tasks.
	RetentionMin, RetentionMax, RetentionDefault = topology.RetentionMin, AheadMax, 7 * 24 * time.Hour

	// TypesMax bounds the types of a domain that have settings.
	TypesMax = 10_000
	// TasklistsMax bounds the tasklists of a domain that have settings.
	TasklistsMax = 10_000
	// QueuedMax bounds the cap of a queue, CappedMax the tasklists of a domain that have one: owners report them
	// four times a second.
	QueuedMax = 100_000_000
	CappedMax = 100
	// PartitionedMax bounds the tasklists of a domain that have several partitions, or may: owners report each every second.
	PartitionedMax = 100
	// LimitsMax bounds the limits of a domain that types share, LimitsOfTypeMax those that one type names.
	LimitsMax       = 1000
	LimitsOfTypeMax = 8
	// RateTasksMax bounds the tasks and the burst of a rate, RatePerMax its time, and RateTasksPerMSMax how fast it is.
	RateTasksMax      = 1_000_000
	RatePerMax        = 24 * time.Hour
	RatePerDefault    = time.Second
	RateTasksPerMSMax = 1000
	// GroupsMax bounds the groups of a domain that have settings.
	GroupsMax = 10_000
	// WeightMin and WeightMax bound the weight of a group, if it is not 0.
	WeightMin, WeightMax = 0.01, 100.0

	// VersionBytesMax bounds the version of a worker's program.
	VersionBytesMax = 64
	// TopMax and TopDefault are how many limits one limits.top tells of, and how many domains of a partition a queues.list; TopEachMax and TopEachDefault how many holders
	// and waiters of each. TopDomainsDefault is how many domains a domains.top has.
	TopMax, TopDefault         = 100, 10
	TopDomainsDefault          = 20
	TopEachMax, TopEachDefault = 10, 3

	// PausesMax bounds the tasklists, types and groups of a domain that are paused, and those that are drained, PauseMin and AheadMax a pause that ends by
	// itself, PauserBytesMax the name of who paused.
	PausesMax      = 1000
	PauseMin       = time.Second
	PauserBytesMax = 128
	// DrainedWorkersMax bounds the workers of a domain that are drained or asked to stop, WorkerReasonBytesMax why.
	DrainedWorkersMax    = 1000
	WorkerReasonBytesMax = 256
	// PurgeMax bounds the tasks of one step of a purge, PurgeReasonBytesMax its reason: with who purges it is that of a cancel.
	PurgeMax            = 1000
	PurgeDefault        = 500
	PurgeReasonBytesMax = 800
	// PeekMax bounds the tasks of a peek.
	PeekMax     = 100
	PeekDefault = 10

	// ConcurrencyMax bounds every limit of attempts that run at once.
	ConcurrencyMax = 1_000_000
)
