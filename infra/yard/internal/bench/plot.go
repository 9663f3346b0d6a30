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
	opt := charts.NewLineChartOptionWithData([][]float64{perSecond, cpu})
	opt.SeriesList[1].YAxisIndex = 1
	opt.Title.Text, opt.Title.FontStyle.FontSize = c.Name+": "+c.Of, 13
	opt.XAxis.Labels = labels
	opt.Legend.SeriesNames = []string{"tasks/s", of}
	opt.Legend.Offset = charts.OffsetStr{Top: "30"}
	opt.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), Title: "tasks/s"}, {Min: charts.Ptr(0.0), Title: "µs per task"}}
	opt.Symbol.Shape = charts.SymbolCircle
	painter := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputPNG, Width: plotWidth, Height: plotHeight})
	if err := painter.LineChart(opt); err != nil {
		return nil, fmt.Errorf("plot %s: %w", c.Name, err)
	}
	return painter.Bytes()
}
