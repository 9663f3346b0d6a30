package partition

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// The kinds of writes: in the log, and as the operation of signals.AppendDuration.
const (
	writeArchive    = "archive"
	writeEvents     = "events"
	writeQuarantine = "quarantine"
	writeTimerStore = "timer store"
	writeLetters    = "dead letters"
	writeSnapshot   = "snapshot"
)

// Metrics measures what the owners of a process do.
type Metrics struct {
	SubmitBatches, Loaded, EventBatches, Events, Refused, Triggers, Retriggered *telemetry.Counter
	Granted, Direct, Bounced, Archived, Parked, Snapshots, WriteRetries, Poison *telemetry.Counter
	PassedOver, Silent, Overdue, Undelivered, EventsPublished, EventsDropped    *telemetry.Counter
	dead, overRate                                                              *telemetry.Queues[*telemetry.Counter]
	waits                                                                       *telemetry.Queues[*telemetry.Histogram]
	writes                                                                      map[string]*telemetry.Histogram // by what is written
}

// NewMetrics makes the instruments.
func NewMetrics(m *telemetry.Metrics) *Metrics {
	out := &Metrics{
		waits: m.HistogramsByQueue(signals.TaskWait), writes: map[string]*telemetry.Histogram{},
		SubmitBatches: m.Counter(signals.SubmitMessagesRead),
		Loaded:        m.Counter(signals.TasksLoaded),
		EventBatches:  m.Counter(signals.EventMessagesApplied),
		Events:        m.Counter(signals.EventsApplied),
		Refused:       m.Counter(signals.EventsRefused),
		Triggers:      m.Counter(signals.TriggersSent),
		Retriggered:   m.Counter(signals.TriggersResent),
		Granted:       m.Counter(signals.AttemptsGranted),
		Direct:        m.Counter(signals.AttemptsDirect),
		Bounced:       m.Counter(signals.AttemptsTakenBack),
		Archived:      m.Counter(signals.TasksArchived),
		Parked:        m.Counter(signals.TasksParked),
		Snapshots:     m.Counter(signals.SnapshotsStored),
		PassedOver:    m.Counter(signals.SubmitMessagesPassedOver),
		dead:          m.CountersByQueue(signals.TasksDead),
		overRate:      m.CountersByDomain(signals.TasksOverRate),
		Silent:        m.Counter(signals.AttemptsExpired, signals.ReasonSilent),
		Overdue:       m.Counter(signals.AttemptsExpired, signals.ReasonDeadline),
		Undelivered:   m.Counter(signals.AttemptsExpired, signals.ReasonUndelivered),
		WriteRetries:  m.Counter(signals.WriteRetries),
		Poison:        m.Counter(signals.RecordsQuarantined),

		EventsPublished: m.Counter(signals.DomainEventsPublished),
		EventsDropped:   m.Counter(signals.DomainEventsDropped),
	}
	for _, what := range []string{writeArchive, writeEvents, writeQuarantine, writeTimerStore, writeLetters} {
		out.writes[what] = m.Histogram(signals.AppendDuration, "history", what)
	}
	return out
}

// appended tells how long something took that may be a write; searches are not counted.
func (m *Metrics) appended(what string, took time.Duration) {
	if h := m.writes[what]; h != nil {
		h.Record(took, 1)
	}
}

// started tells how long the tasks that were granted for the first time by an answer have waited. Those that became
// ready together are reported together: they came in one message, mostly.
func (m *Metrics) started(verdicts []replica.Verdict) {
	var of *taskstate.Task
	var wait int64
	n := 0
	for i := range verdicts {
		g := &verdicts[i].Grant
		if g.Task == nil || !g.First {
			continue
		}
		waited := g.Task.Attempt.StartedAt - g.ReadyAt
		if n > 0 && (waited != wait || g.Task.Tasklist != of.Tasklist || g.Task.Domain != of.Domain) {
			m.waited(of, wait, n)
			n = 0
		}
		of, wait = g.Task, waited
		n++
	}
	if n > 0 {
		m.waited(of, wait, n)
	}
}

func (m *Metrics) waited(of *taskstate.Task, ms int64, n int) {
	m.waits.Of(of.Domain, of.Tasklist).Record(time.Duration(ms)*time.Millisecond, n)
}

// ended counts a task that is dead.
func (m *Metrics) ended(t *taskstate.Task) {
	if t.State == taskstate.Dead {
		m.dead.Of(t.Domain, t.Tasklist).Add(1)
	}
}

// add counts what the replica has done in a turn.
func (m *Metrics) add(fx *replica.Effects) {
	c := &fx.Counts
	m.SubmitBatches.Add(c.SubmitBatches)
	m.Loaded.Add(c.Loaded)
	m.EventBatches.Add(c.EventBatches)
	m.Events.Add(c.Events)
	m.Refused.Add(c.Refused)
	m.Triggers.Add(fx.Sent)
	m.Retriggered.Add(fx.Resent)
	m.Granted.Add(c.Granted)
	m.Direct.Add(c.Direct)
	m.Bounced.Add(c.Bounced)
	m.Archived.Add(c.Archived)
	m.Parked.Add(c.Parked)
	m.PassedOver.Add(c.PassedOver)
	m.Silent.Add(c.Silent)
	m.Overdue.Add(c.Overdue)
	m.Undelivered.Add(c.Undelivered)
	for _, o := range fx.OverRate {
		m.overRate.Of(o.Domain, "").Add(int64(o.Tasks))
	}
}
