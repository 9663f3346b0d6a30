// Package chart draws the pictures of measurements.
//
// Owns: their size and look. Never does: know what is measured.
package chart

import (
	"fmt"

	"github.com/go-analyze/charts"
)

// Size of a picture, pixels.
const (
	Width  = 900
	Height = 520
)

// Lines are a chart of several values at the same places.
func Lines(title string, labels, names []string, values ...[]float64) charts.LineChartOption {
	opt := charts.NewLineChartOptionWithData(values)
	opt.Title.Text, opt.Title.FontStyle.FontSize = title, 13
	opt.XAxis.Labels = labels
	opt.Legend.SeriesNames = names
	opt.Legend.Offset = charts.OffsetStr{Top: "30"}
	opt.Symbol.Shape = charts.SymbolCircle
	return opt
}

// Paint is a chart as PNG; its name is that in errors.
func Paint(name string, opt charts.LineChartOption) ([]byte, error) {
	painter := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputPNG, Width: Width, Height: Height})
	if err := painter.LineChart(opt); err != nil {
		return nil, fmt.Errorf("plot %s: %w", name, err)
	}
	return painter.Bytes()
}
