package demo

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// whole writes a number with commas between thousands.
func whole(n int) string { return humanize.Comma(int64(n)) }

// short writes a duration with three digits or so.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// clock writes a duration as minutes and seconds.
func clock(d time.Duration) string {
	seconds := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// clip cuts s to so many characters. All that the view writes is one column wide.
func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width, 0)])
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
