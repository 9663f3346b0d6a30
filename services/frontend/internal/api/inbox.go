package api

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// inboxes decides whom the API answers. An answer is published with the engine's
// rights, here, by matching and by history, so the asker's choice of a reply
// subject must not reach beyond inboxes: below `$JS.API` an answer would be a
// command, and below the log's subjects a record.
type inboxes struct {
	prefixes []string
	log      *slog.Logger
	dropped  *telemetry.Counter
	noticed  atomic.Int64 // when it was logged last, Unix ns
}

const (
	// noticeEvery is how often dropped requests are logged at most.
	noticeEvery = time.Minute
	// noticeBytesMax bounds a subject in the log: a stranger wrote it.
	noticeBytesMax = 128
	// replyBytesMax bounds a reply subject. The server cuts the connection of who sends
	// a line of more than 4 KiB, and an answer's line may be longer than its request's was: it
	// names a subject of the answering service too, for the case that nobody listens.
	replyBytesMax = 1024
)

func newInboxes(d Deps) *inboxes {
	return &inboxes{
		prefixes: d.InboxPrefixes, log: d.Log,
		dropped: d.Metrics.Counter("yard_frontend_foreign_replies_total", "Requests dropped because their reply subject is no inbox."),
	}
}

// admits tells whether a request may be answered where it asks to be. Nothing is
// published for one that may not: who asks so would not read an error.
func (i *inboxes) admits(req micro.Request, now time.Time) bool {
	reply := req.Reply()
	if reply == "" {
		return true
	}
	for _, prefix := range i.prefixes {
		if len(reply) > len(prefix) && len(reply) <= replyBytesMax && strings.HasPrefix(reply, prefix) {
			return true
		}
	}
	i.dropped.Add(1)
	if last := i.noticed.Load(); now.UnixNano()-last >= int64(noticeEvery) && i.noticed.CompareAndSwap(last, now.UnixNano()) {
		i.log.Warn("a request was dropped: its reply subject lies under no inbox prefix, or is too long",
			"reply_bytes_max", replyBytesMax, "subject", shortened(req.Subject()), "reply", shortened(reply), "inbox_prefixes", i.prefixes, "dropped", i.dropped.Value())
	}
	return false
}

func shortened(subject string) string { return subject[:min(len(subject), noticeBytesMax)] }
