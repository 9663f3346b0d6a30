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
		Kinds: []timers.Kind{{Tasklist: "mail", Type: "email.send", Tasks: 42}}, Tasks: 42, Later: 7,
	}
}

func TestAHistogramIsPrinted(t *testing.T) {
	var out bytes.Buffer
	a := &command.App{Streams: command.Streams{Out: &out}}
	testkit.NoError(t, a.Show(nil, func(t *command.Table) { table(t, counts()) }))
	testkit.Equal(t, "printed", out.String(), strings.Join([]string{
		"FROM                     TASKS  CHART",
		"2026-11-30 08:00:00.000  40     " + strings.Repeat("█", 40),
		"2026-11-30 10:00:00.000  2      ██",
		"",
		"TASKLIST  TYPE        TASKS",
		"mail      email.send  42",
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

// TestSpansFit: a look of any length has few enough spans.
func TestSpansFit(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{
		time.Second: time.Minute, 3 * time.Hour: time.Minute, 4 * time.Hour: time.Hour, 7 * day: time.Hour, 8 * day: day, 366 * day: day,
	} {
		testkit.Equal(t, within.String(), SpanFor(within), want)
	}
}
