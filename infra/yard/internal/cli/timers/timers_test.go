package timers

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard/timers"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// counts are tasks in two hours with one between them.
func counts() *timers.Counts {
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.Local)
	return &timers.Counts{
		Spans: []timers.Span{{Start: at, End: at.Add(time.Hour), Tasks: 40}, {Start: at.Add(2 * time.Hour), End: at.Add(3 * time.Hour), Tasks: 2}},
		Kinds: []timers.Kind{{Tasklist: "mail", Type: "email.send", Tasks: 30}, {Tasklist: "mail", Tasks: 10}, {Tasks: 2}}, Tasks: 42, Later: 7,
	}
}

func TestAHistogramIsPrinted(t *testing.T) {
	var out bytes.Buffer
	a := &command.App{Streams: command.Streams{Out: &out}}
	testkit.NoError(t, a.Show(nil, func(t *command.Table) { table(t, counts()) }))
	testkit.Equal(t, "printed", out.String(), strings.Join([]string{
		"FROM                           TASKS  CHART",
		counts().Spans[0].Start.Format(command.TimeForm) + "  40     " + strings.Repeat("█", 40),
		counts().Spans[1].Start.Format(command.TimeForm) + "  2      ██",
		"",
		"TASKLIST  TYPE        TASKS",
		"mail      email.send  30",
		"mail      (others)    10",
		"(others)  (others)    2",
		"42 in all, and 7 are due later",
		"",
	}, "\n"))
}

// TestAHistogramIsDrawn: with many spans its bars are seen, too.
func TestAHistogramIsDrawn(t *testing.T) {
	many := counts()
	for n := range 500 {
		at := many.Spans[1].End.Add(time.Duration(n) * time.Hour)
		many.Spans = append(many.Spans, timers.Span{Start: at, End: at.Add(time.Hour), Tasks: 30})
	}
	file := filepath.Join(t.TempDir(), "timers.png")
	for _, c := range []*timers.Counts{counts(), many} {
		testkit.NoError(t, draw(file, "shop", time.Hour, c))
		data, err := os.ReadFile(file)
		testkit.NoError(t, err)
		picture, err := png.Decode(bytes.NewReader(data))
		testkit.NoError(t, err)
		colored, size := 0, picture.Bounds()
		for x := range size.Dx() {
			if r, _, b, _ := picture.At(x, size.Dy()*4/5).RGBA(); b > r+0x2000 {
				colored++
			}
		}
		if colored < len(c.Spans) {
			t.Errorf("%d spans, and %d colored pixels in a line across them", len(c.Spans), colored)
		}
	}
	if err := draw(file, "shop", time.Hour, &timers.Counts{}); err == nil {
		t.Error("nothing is drawn, and it is no error")
	}
}

// TestADayOfAChartIsADayOfUTC: wherever the chart is drawn. Hours are those of the clock of the reader.
func TestADayOfAChartIsADayOfUTC(t *testing.T) {
	west := time.FixedZone("west", -5*3600)
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC).In(west)
	c := &timers.Counts{Spans: []timers.Span{{Start: at, Tasks: 3}, {Start: at.Add(2 * day), Tasks: 1}}}
	labels, values := bars(day, c)
	testkit.Equal(t, "days", labels, []string{"11-30", "12-01", "12-02"})
	testkit.Equal(t, "tasks", values, []float64{3, 0, 1})
	c.Spans = c.Spans[:1]
	labels, _ = bars(time.Hour, c)
	testkit.Equal(t, "hours", labels, []string{"11-29 19:00"})
}

// TestSpansFit: a look of any length has few enough spans.
func TestSpansFit(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{
		time.Second: time.Minute, 3 * time.Hour: time.Minute, 4 * time.Hour: time.Hour, 7 * day: time.Hour, 8 * day: day, 366 * day: day,
	} {
		testkit.Equal(t, within.String(), SpanFor(within), want)
	}
}
