package partition

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// Metrics counts what the owners of a process do.
type Metrics struct {
	SubmitBatches, Loaded, EventBatches, Events, Refused, Triggers, Retriggered *telemetry.Counter
	Granted, Bounced, Archived, Parked, Carried, WriteRetries, Poison           *telemetry.Counter
	PassedOver                                                                  *telemetry.Counter
}

// NewMetrics registers the counters.
func NewMetrics(m *telemetry.Metrics) *Metrics {
	return &Metrics{
		SubmitBatches: m.Counter("yard_history_submit_batches_total", "submit messages read"),
		Loaded:        m.Counter("yard_history_tasks_loaded_total", "tasks read into the window"),
		EventBatches:  m.Counter("yard_history_event_batches_total", "event messages applied"),
		Events:        m.Counter("yard_history_events_total", "events applied"),
		Refused:       m.Counter("yard_history_events_refused_total", "events that did not come true"),
		Triggers:      m.Counter("yard_history_triggers_total", "triggers sent"),
		Retriggered:   m.Counter("yard_history_retriggers_total", "triggers sent again"),
		Granted:       m.Counter("yard_history_grants_total", "attempts granted"),
		Bounced:       m.Counter("yard_history_grants_bounced_total", "grants taken back since nobody heard of them"),
		Archived:      m.Counter("yard_history_archived_total", "finished tasks archived"),
		Parked:        m.Counter("yard_history_parked_total", "tasks moved to the timer store"),
		Carried:       m.Counter("yard_history_carried_total", "tasks carried forward"),
		PassedOver:    m.Counter("yard_history_passed_over_total", "submit messages left to the readers of domains that lag"),
		WriteRetries:  m.Counter("yard_history_write_retries_total", "writes repeated after a failure"),
		Poison:        m.Counter("yard_history_poison_records_total", "records that could not be read"),
	}
}

// add counts what the replica has done in a turn.
func (m *Metrics) add(c *replica.Counts) {
	m.SubmitBatches.Add(c.SubmitBatches)
	m.Loaded.Add(c.Loaded)
	m.EventBatches.Add(c.EventBatches)
	m.Events.Add(c.Events)
	m.Refused.Add(c.Refused)
	m.Triggers.Add(c.Triggers)
	m.Retriggered.Add(c.Retriggered)
	m.Granted.Add(c.Granted)
	m.Bounced.Add(c.Bounced)
	m.Archived.Add(c.Archived)
	m.Parked.Add(c.Parked)
	m.Carried.Add(c.Carried)
	m.PassedOver.Add(c.PassedOver)
}
