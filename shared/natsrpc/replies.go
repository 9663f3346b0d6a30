package natsrpc

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

const (
	// noticeRepliesEvery is how often dropped answers are logged at most.
	noticeRepliesEvery = time.Minute
	// noticeBytesMax bounds a subject in the log: an unknown client wrote it.
	noticeBytesMax = 128
)

// Replies decides for one service which reply subjects it answers, counts the others
// and logs them once a minute. It is safe for concurrent use. A nil Replies is
// the lenient default and neither counts nor logs.
type Replies struct {
	rule    topology.Inboxes
	log     *slog.Logger
	dropped *telemetry.Counter
	noticed atomic.Int64 // when it was logged last, Unix ns
}

// NewReplies makes the rule of a service. Metrics count what is dropped.
func NewReplies(rule topology.Inboxes, service string, metrics *telemetry.Metrics, log *slog.Logger) *Replies {
	return &Replies{
		rule: rule, log: log, dropped: metrics.Counter(signals.RepliesRefused, service),
	}
}

// Asker tells whether a request of domain, or of topology.ReservedDomain, may be answered at reply.
func (r *Replies) Asker(domain, reply string) bool {
	return r.permit(r.inboxes().Asker(domain, reply), reply)
}

// Operator tells whether an operator may be answered at reply.
func (r *Replies) Operator(reply string) bool { return r.permit(r.inboxes().Operator(reply), reply) }

// Service tells whether a service may be answered at reply.
func (r *Replies) Service(reply string) bool { return r.permit(r.inboxes().Service(reply), reply) }

func (r *Replies) inboxes() topology.Inboxes {
	if r == nil {
		return topology.LenientInboxes()
	}
	return r.rule
}

func (r *Replies) permit(ok bool, reply string) bool {
	if ok || r == nil {
		return ok
	}
	r.dropped.Add(1)
	now := time.Now().UnixNano()
	if last := r.noticed.Load(); now-last >= int64(noticeRepliesEvery) && r.noticed.CompareAndSwap(last, now) {
		r.log.Warn("an answer was dropped: its reply subject is not an inbox of the client, or too long; see inbox_prefixes",
			"reply", reply[:min(len(reply), noticeBytesMax)], "reply_bytes_max", topology.ReplyBytesMax, "dropped", r.dropped.Value())
	}
	return false
}
