// Package words writes numbers, times and names as the pages of the console show them.
//
// Owns: the form of times, durations, numbers and states, and the functions that templates may call. Never does: read a clock. On failure: nothing can fail.
package words

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/payload"
)

// Functions are what templates may call.
var Functions = template.FuncMap{
	"at": At, "ms": FromMs, "lasting": Lasting, "lastingMs": func(ms int64) string { return Lasting(time.Duration(ms) * time.Millisecond) },
	"count": Count, "rate": func(n float64) string { return fmt.Sprintf("%.1f/s", n) }, "percent": func(part float64) string { return fmt.Sprintf("%.0f%%", 100*part) },
	"bytes": func(n int64) string { return humanize.IBytes(uint64(max(0, n))) }, "payload": payload.Of, "state": func(s fmt.Stringer) string { return Enum(s) },
	"join": func(all []string) string { return strings.Join(all, ", ") }, "segment": url.PathEscape, "weight": Weight,
}

// timeForm has the zone: people in several of them read one console.
const timeForm = "2006-01-02 15:04:05 MST"

// Instant is a time in a page.
type Instant struct{ Text, Machine string }

// At is a time in a page; nil = none.
func At(t time.Time) *Instant {
	if t.IsZero() {
		return nil
	}
	return &Instant{t.UTC().Format(timeForm), t.UTC().Format(time.RFC3339Nano)}
}

// FromMs is a Unix time in ms; 0 = none.
func FromMs(ms int64) *Instant {
	if ms == 0 {
		return nil
	}
	return At(time.UnixMilli(ms))
}

// Lasting is a duration with units, to two of them: "3 h 5 min", "1.2 s".
func Lasting(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Lasting(-d)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Truncate(time.Second/10).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return units(d, time.Minute, "min", time.Second, "s")
	case d < 24*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "min")
	}
	return units(d, 24*time.Hour, "d", time.Hour, "h")
}

func units(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}

// Count is a number with separators of thousands.
func Count(n any) string {
	switch n := n.(type) {
	case int64:
		return humanize.Comma(n)
	case int32:
		return humanize.Comma(int64(n))
	case int:
		return humanize.Comma(int64(n))
	}
	return fmt.Sprint(n)
}

// Weight is the share of a group beside others.
func Weight(g *yardv1.Group) string {
	switch {
	case g.Weight == nil:
		return "1"
	case *g.Weight == 0:
		return "only when nothing else is ready"
	}
	return strconv.FormatFloat(*g.Weight, 'g', -1, 64)
}

// Enum is the last words of a constant of the API: TASK_EVENT_KIND_HANDED_BACK is "handed back".
func Enum(s fmt.Stringer) string {
	if named, ok := s.(interface{ Name() string }); ok {
		return strings.ReplaceAll(named.Name(), "_", " ")
	}
	return s.String()
}
