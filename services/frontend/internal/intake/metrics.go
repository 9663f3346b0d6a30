package intake

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

type metrics struct {
	submits        *telemetry.Queues[*telemetry.Histogram]
	appends        *telemetry.Histogram
	submitMessages *telemetry.Counter
	tasksAccepted  *telemetry.Queues[*telemetry.Counter]
	appendsFailed  *telemetry.Counter
	unknown        *telemetry.Counter
	submitsRefused refusals
}

// refusals count the submits that were refused for want of room, by what has none.
type refusals struct{ queue, quota, storage, busy *telemetry.Counter }

// full counts a refusal of admit.
func (r refusals) full(err error) {
	if fault.From(err).Detail[fault.DetailReason] == signals.ReasonQuota {
		r.quota.Add(1)
	} else {
		r.queue.Add(1)
	}
}

func newMetrics(m *telemetry.Metrics) metrics {
	return metrics{
		submits:        m.HistogramsByQueue(signals.SubmitDuration),
		appends:        m.Histogram(signals.AppendDuration, "frontend", "submit"),
		submitMessages: m.Counter(signals.SubmitMessages),
		tasksAccepted:  m.CountersByQueue(signals.TasksAccepted),
		appendsFailed:  m.Counter(signals.AppendFailures),
		unknown:        m.Counter(signals.SubmitsUnknown),
		submitsRefused: refusals{
			queue:   m.Counter(signals.SubmitsRefused, signals.ReasonQueueFull),
			quota:   m.Counter(signals.SubmitsRefused, signals.ReasonQuota),
			storage: m.Counter(signals.SubmitsRefused, signals.ReasonStorageFull),
			busy:    m.Counter(signals.SubmitsRefused, signals.ReasonBusy),
		},
	}
}

// countStored counts the tasks of a submit, and how long it took.
func (m *metrics) countStored(domain string, all []*logv1.Record, took time.Duration) {
	m.submits.Of(domain, all[0].Tasklist).Record(took, 1)
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].Tasklist == all[from].Tasklist {
			to++
		}
		m.tasksAccepted.Of(domain, all[from].Tasklist).Add(int64(to - from))
		from = to
	}
}
