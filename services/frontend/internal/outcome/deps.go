// Package outcome is the verbs about attempts and single tasks: complete, fail, heartbeat, cancel, update. It brings their events to the owners of
// partitions and their verdicts back.
//
// Owns: the group commit of events, their repetition until there is a verdict, and the answer that verdicts make.
//
// Never does: decide about a task; history does.
//
// On failure: the same events are sent again, and history returns the same verdict (I4). At its deadline an entry is UNKNOWN.
//
// Domains whose events go to one partition take turns. Group commits of cancels are a domain's own, and exist while any of its requests is under
// way; a flight of events likewise.
package outcome

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/groupcommit"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// Bus sends what is not waited for. Answers arrive at EventsRefused and TakeVerdicts.
type Bus interface {
	// PublishEvents sends a batch of events to the owner of partition p. If there is none, that
	// is reported to EventsRefused with this id.
	PublishEvents(p int, id uint64, data []byte) error
	// VerdictsTo is the subject where verdicts reach TakeVerdicts.
	VerdictsTo() string
	// PublishCancelHint tells the workers of a domain which running tasks were cancelled.
	PublishCancelHint(domain string, data []byte) error
}

// Deps is what Outcomes need.
type Deps struct {
	owners.Env
	// VerdictTimeout is how long a verdict may take until the events are sent again.
	VerdictTimeout time.Duration
	Bus            Bus
	// HasRoom tells whether the log of a partition has some for payloads.
	HasRoom func(p int) bool
}

// CodeOK is the code of an entry that was applied.
const CodeOK = "OK"

const (
	// queuedEventsBytes bounds the events of a partition that wait for their turn, in bytes.
	queuedEventsBytes = 64 << 20
	// eventBytesMin is what an event counts for at least: a group commit is bounded in events too.
	eventBytesMin = groupcommit.MessageBytesMax / validate.BatchMax
)

// metrics count events, and the answers to them.
type metrics struct{ messages, verdicts, resends *telemetry.Counter }

func newMetrics(m *telemetry.Metrics) metrics {
	return metrics{messages: m.Counter(signals.OutcomeMessages), verdicts: m.Counter(signals.OutcomeVerdicts), resends: m.Counter(signals.OutcomeResends)}
}
