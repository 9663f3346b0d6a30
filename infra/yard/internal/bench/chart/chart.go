// Package chart draws the pictures of measurements and counts.
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

// barWidth is the room that a bar has at least, pixels: with many of them a picture is wider.
const barWidth = 8

// Bars is a chart of one value at each place, as PNG; its name is that in errors.
func Bars(name, title string, labels []string, values []float64) ([]byte, error) {
	opt := charts.NewBarChartOptionWithData([][]float64{values})
	opt.Title.Text, opt.Title.FontStyle.FontSize = title, 13
	opt.CategoryAxis.Labels = labels
	opt.ValueAxis[0].Min = charts.Ptr(0.0)
	opt.BarSize = 0.8
	painter := newPainter(max(Width, barWidth*len(values)))
	if err := painter.BarChart(opt); err != nil {
		return nil, fmt.Errorf("plot %s: %w", name, err)
	}
	return painter.Bytes()
}

func newPainter(width int) *charts.Painter {
	return charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputPNG, Width: width, Height: Height})
}

// Paint is a chart as PNG; its name is that in errors.
func Paint(name string, opt charts.LineChartOption) ([]byte, error) {
	painter := newPainter(Width)
	if err := painter.LineChart(opt); err != nil {
		return nil, fmt.Errorf("plot %s: %w", name, err)
	}
	return painter.Bytes()
}
