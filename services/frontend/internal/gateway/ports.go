package gateway

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/polls"
)

// Log is the history log of all partitions.
type Log interface {
	// Append stores one message; its errors wrap natslog.ErrNotStored or
	// natslog.ErrOutcomeUnknown. Duplicate tells that a message with this id was
	// stored before, at seq.
	Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error)
	// AppendEach stores messages one after the other, each for itself. It tells the outcome of each as of
	// Append, in any order, once, before it returns.
	AppendEach(ctx context.Context, msgs []natslog.Msg, outcome func(i int, a natslog.Appended))
	// AppendAtomic stores all messages, one behind the other, or none; its errors are as those of Append, or wrap natslog.ErrWrongLast where a
	// message is not what its header expects.
	AppendAtomic(ctx context.Context, msgs []natslog.Msg) (lastSeq uint64, err error)
	// LastFor returns the last message of a subject in partition p; nil where there is none.
	LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error)
	// Message returns message seq of partition p; nil where the log has forgotten it.
	Message(ctx context.Context, p int, seq uint64) (*natslog.Record, error)
	// MessageBytesMax is the longest body it takes.
	MessageBytesMax() int
}

// Letters are the dead letters of all domains. Its errors are *fault.Error.
type Letters interface {
	// Last is the sequence of the last letter that was ever stored.
	Last(ctx context.Context) (uint64, error)
	// Page returns the letters of a domain, or of one tasklist of it, behind a sequence: up to limit, and about up to bytesMax bytes. More: others may follow.
	// They come without their payloads and histories, which are most of what they take.
	Page(ctx context.Context, domain, tasklist string, after uint64, limit, bytesMax int) (page []Letter, more bool, err error)
	// Find returns the letters of tasks of a domain, in the order of wanted; nil where there is none. They come as those of a page.
	Find(ctx context.Context, domain string, wanted []ids.TaskID) ([]*Letter, error)
	// Get returns all of one letter; nil = there is none.
	Get(ctx context.Context, domain string, id ids.TaskID) (*Letter, error)
	// Delete deletes letters, and earlier ones of the same tasks; nil ones are passed over. It returns how many were there. After an error some may be deleted.
	Delete(ctx context.Context, letters []*Letter) (deleted int64, err error)
}

// Batches reads of batches what the log does not hold as a single message that is known by name. Its errors are *fault.Error.
type Batches interface {
	// Page returns batches of a domain whose home is partition p, behind a message of the log. More: others follow.
	Page(ctx context.Context, p int, domain string, after uint64, limit int) (page []KeptBatch, more bool, err error)
	// Count is how many batches of a domain have their home in partition p.
	Count(ctx context.Context, p int, domain string) (int, error)
}

// KeptBatch is what the log says of a batch, and where.
type KeptBatch struct {
	Seq  uint64
	Home *logv1.BatchHome
}

// Bus sends what is not waited for. Answers arrive at the gateway's
// EventsRefused, PollBounced, TakeAnswered, TakeVerdicts and TakeLoad.
type Bus interface {
	polls.Bus
	// PublishEvents sends a batch of events to the owner of partition p. If there is none, that
	// is reported to EventsRefused with this id.
	PublishEvents(p int, id uint64, data []byte) error
	// VerdictsTo is the subject where verdicts reach TakeVerdicts.
	VerdictsTo() string
	// PublishGivenUp tells all owners of matching shards, and all frontends, of inboxes whose answers are lost.
	PublishGivenUp(data []byte) error
	// PublishSilent has the polls of workers end, wherever they wait.
	PublishSilent(data []byte) error
	// PublishUse tells all frontends what this one has let in of domains with a quota.
	PublishUse(data []byte) error
	// PublishCancelHint tells the workers of a domain which running tasks were cancelled.
	PublishCancelHint(domain string, data []byte) error
	// AnsweredTo is the subject where news of answered polls reach TakeAnswered.
	AnsweredTo() string
}

// Owners asks the owner of a partition or a shard. Each func is one call, not
// retried; its error is a *fault.Error, UNAVAILABLE where no node serves it.
type Owners struct {
	HistoryGet       func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error)
	HistoryList      func(ctx context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error)
	HistoryWorkers   func(ctx context.Context, p int, req *rpcv1.ListWorkersRequest) (*rpcv1.ListWorkersResponse, error)
	HistoryKeys      func(ctx context.Context, p int, req *rpcv1.ListKeysRequest) (*rpcv1.ListKeysResponse, error)
	HistoryBatch     func(ctx context.Context, p int, req *rpcv1.CountBatchRequest) (*rpcv1.CountBatchResponse, error)
	HistoryDescribe  func(ctx context.Context, p int, req *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error)
	TimerGet         func(ctx context.Context, p int, req *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error)
	TimerList        func(ctx context.Context, p int, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error)
	TimerDescribe    func(ctx context.Context, p int, req *rpcv1.DescribeWaitingRequest) (*rpcv1.DescribeWaitingResponse, error)
	MatchingDescribe func(ctx context.Context, m int, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error)
}

func (o Owners) missing() bool {
	return o.HistoryGet == nil || o.HistoryList == nil || o.HistoryDescribe == nil || o.HistoryWorkers == nil || o.HistoryKeys == nil || o.HistoryBatch == nil ||
		o.TimerGet == nil || o.TimerList == nil || o.TimerDescribe == nil || o.MatchingDescribe == nil
}
