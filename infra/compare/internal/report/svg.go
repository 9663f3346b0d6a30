package report

import (
	"fmt"
	"html"
	"strings"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
)

// Sizes of the picture, pixels.
const (
	panelWidth  = 440
	panelHeight = 214
	panelsInRow = 2
	margin      = 20
	barHeight   = 16
	barStep     = 20
	labelWidth  = 130
	valueWidth  = 64
)

// Colours of the bars.
const (
	colourOwn  = "#1f6feb"
	colourPeer = "#8b949e"
	colourText = "#24292f"
)

// pictured are the metrics with a panel each.
var pictured = []string{"w1_per_s", "w1_cpu_us", "w2_per_s", "w3_p50_ms", "w3_p99_ms", "w4_per_s", "w5_accepted_per_s", "w5_drained_per_s"}

// SVG is a panel of bars for each metric, with a bar for each system and setting of durability.
func (r *Report) SVG() string {
	rows := (len(pictured) + panelsInRow - 1) / panelsInRow
	width, height := panelsInRow*panelWidth+margin, rows*panelHeight+margin
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "+
		"font-family=\"sans-serif\" font-size=\"12\" fill=\"%s\">\n", width, height, width, height, colourText)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height)
	shown := 0
	for _, m := range load.Metrics {
		for _, key := range pictured {
			if key == m.Key {
				r.panel(&b, m, margin+shown%panelsInRow*panelWidth, margin+shown/panelsInRow*panelHeight)
				shown++
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// panel is the bars of one metric.
func (r *Report) panel(b *strings.Builder, m load.Metric, x, y int) {
	better := "more is better"
	if m.LessIsBetter {
		better = "less is better"
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s, %s (%s)</text>\n", x, y+10, html.EscapeString(m.Name), m.Unit, better)
	most := 0.0
	for _, s := range r.Settings {
		most = max(most, s.Median[m.Key])
	}
	for i, s := range r.Settings {
		value := s.Median[m.Key]
		top := y + 20 + i*barStep
		length := 0.0
		if most > 0 {
			length = value / most * (panelWidth - labelWidth - valueWidth - margin)
		}
		colour := colourPeer
		if s.System == Own {
			colour = colourOwn
		}
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s, %s</text>\n", x+labelWidth-6, top+12, html.EscapeString(s.System), s.Sync)
		fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", x+labelWidth, top, length, barHeight, colour)
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", float64(x+labelWidth)+length+4, top+12, number(value))
	}
}
