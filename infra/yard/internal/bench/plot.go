package bench

import (
	"fmt"
	"strconv"

	"github.com/go-analyze/charts"
)

// Size of a picture, pixels.
const (
	plotWidth  = 900
	plotHeight = 520
)

// PNG is a picture of the curve: throughput on the left axis; on the right the CPU time of Redis, or of all processes that are measured where
// no Redis is. Values are in equal distances, since they grow by factors.
func (c Curve) PNG() ([]byte, error) {
	perSecond, cpu := make([]float64, len(c.Points)), make([]float64, len(c.Points))
	labels, of := make([]string, len(c.Points)), "CPU µs per task (right)"
	for i, p := range c.Points {
		labels[i], perSecond[i], cpu[i] = strconv.Itoa(p.X), p.Result.TasksPerSecond, p.Result.cpuPerTask()
		if p.Result.Redis != nil {
			of, cpu[i] = "Redis CPU µs per task (right)", p.Result.Redis.CPUPerTask
		}
	}
	opt := lines(c.Name+": "+c.Of, labels, []string{"tasks/s", of}, perSecond, cpu)
	opt.SeriesList[1].YAxisIndex = 1
	opt.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), Title: "tasks/s"}, {Min: charts.Ptr(0.0), Title: "µs per task"}}
	return paint(c.Name, opt)
}

// PNG is a picture of the floods: the p99 of the small domains in each second.
func (o *Overload) PNG() ([]byte, error) {
	seconds := min(len(o.WithQuota.P99s), len(o.WithoutQuota.P99s))
	with, without, labels := make([]float64, seconds), make([]float64, seconds), make([]string, seconds)
	for i := range seconds {
		labels[i], with[i], without[i] = strconv.Itoa(i+1), o.WithQuota.P99s[i]/1000, o.WithoutQuota.P99s[i]/1000
	}
	title := fmt.Sprintf("W7: p99 of the start of %d small domains in each second of a flood; %.1f ms without one", o.Domains, o.QuietStart.P99/1000)
	opt := lines(title, labels, []string{fmt.Sprintf("quota of %d/s", o.WithQuota.Quota), "no quota"}, with, without)
	opt.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), Title: "ms"}}
	return paint("W7", opt)
}

// lines are a chart of several values at the same places.
func lines(title string, labels, names []string, values ...[]float64) charts.LineChartOption {
	opt := charts.NewLineChartOptionWithData(values)
	opt.Title.Text, opt.Title.FontStyle.FontSize = title, 13
	opt.XAxis.Labels = labels
	opt.Legend.SeriesNames = names
	opt.Legend.Offset = charts.OffsetStr{Top: "30"}
	opt.Symbol.Shape = charts.SymbolCircle
	return opt
}

func paint(name string, opt charts.LineChartOption) ([]byte, error) {
	painter := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputPNG, Width: plotWidth, Height: plotHeight})
	if err := painter.LineChart(opt); err != nil {
		return nil, fmt.Errorf("plot %s: %w", name, err)
	}
	return painter.Bytes()
}
