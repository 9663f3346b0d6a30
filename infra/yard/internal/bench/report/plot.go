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
