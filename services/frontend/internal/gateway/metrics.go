package gateway

import "github.com/yardmaster-io/yardmaster/shared/telemetry"

type metrics struct {
	logMessages   *telemetry.Counter
	tasksAccepted *telemetry.Counter
	appendsFailed *telemetry.Counter
	unknown       *telemetry.Counter
	eventBatches  *telemetry.Counter
	outcomes      *telemetry.Counter
	resends       *telemetry.Counter
	polls         *telemetry.Counter
	pollsUnheard  *telemetry.Counter
	pollsEnded    *telemetry.Counter
}

func newMetrics(m *telemetry.Metrics) metrics {
	return metrics{
		logMessages:   m.Counter("yard_frontend_log_messages_total", "Messages of submitted tasks stored in the history log."),
		tasksAccepted: m.Counter("yard_frontend_tasks_accepted_total", "Tasks accepted."),
		appendsFailed: m.Counter("yard_frontend_appends_failed_total", "Appends of submitted tasks that failed, their repetitions included."),
		unknown:       m.Counter("yard_frontend_unknown_total", "Submits answered UNKNOWN."),
		eventBatches:  m.Counter("yard_frontend_event_batches_total", "Batches of outcomes sent to the history log, their repetitions included."),
		outcomes:      m.Counter("yard_frontend_outcomes_total", "Outcomes, heartbeats and cancels answered with a verdict."),
		resends:       m.Counter("yard_frontend_event_resends_total", "Batches of outcomes sent again because no verdict came."),
		polls:         m.Counter("yard_frontend_polls_total", "Polls forwarded to matching, their repetitions included."),
		pollsEnded:    m.Counter("yard_frontend_polls_ended_total", "Polls answered empty because the owner that had them was replaced."),
		pollsUnheard:  m.Counter("yard_frontend_polls_unheard_total", "Polls that reached no owner of their shard."),
	}
}
