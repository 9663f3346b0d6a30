package report

import (
	"fmt"
	"strconv"

	"github.com/go-analyze/charts"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/chart"
)

// PNG is a picture of the floods: the p99 of the small domains in each second.
func (o *Overload) PNG() ([]byte, error) {
	seconds := min(len(o.WithQuota.P99s), len(o.WithoutQuota.P99s))
	with, without, labels := make([]float64, seconds), make([]float64, seconds), make([]string, seconds)
	for i := range seconds {
		labels[i], with[i], without[i] = strconv.Itoa(i+1), o.WithQuota.P99s[i]/1000, o.WithoutQuota.P99s[i]/1000
	}
	title := fmt.Sprintf("W7: p99 of the start of %d small domains in each second of a flood; %.1f ms without one", o.Domains, o.QuietStart.P99/1000)
	opt := chart.Lines(title, labels, []string{fmt.Sprintf("quota of %d/s", o.WithQuota.Quota), "no quota"}, with, without)
	opt.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), Title: "ms"}}
	return chart.Paint("W7", opt)
}

// PNG is a picture of the timers: on the left axis the tasks that were due in each second and came; on the right how late they were, and the other
// domain's p99.
func (m *Timers) PNG() ([]byte, error) {
	fired, late, others, labels := make([]float64, len(m.Fired)), make([]float64, len(m.Fired)), make([]float64, len(m.Fired)), make([]string, len(m.Fired))
	for i, n := range m.Fired {
		labels[i], fired[i], late[i] = strconv.Itoa(i+1), float64(n), m.LateP99s[i]/1000
		if i < len(m.OthersP99s) {
			others[i] = m.OthersP99s[i] / 1000
		}
	}
	title := fmt.Sprintf("%d delayed tasks, by the second in which they are due", m.Tasks)
	opt := chart.Lines(title, labels, []string{"tasks/s", "late, p99, ms (right)", "other domain, p99, ms (right)"}, fired, late, others)
	opt.SeriesList[1].YAxisIndex, opt.SeriesList[2].YAxisIndex = 1, 1
	opt.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), Title: "tasks/s"}, {Min: charts.Ptr(0.0), Title: "ms"}}
	return chart.Paint("timers", opt)
}
