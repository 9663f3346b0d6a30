package schedule_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		name string
		s    *yardv1.Schedule
	}{
		{"minutes", &yardv1.Schedule{Cron: []string{"* * * * *"}, TimeZone: "Europe/Berlin"}},
		{"daily", &yardv1.Schedule{Cron: []string{"30 2 * * *"}, TimeZone: "Europe/Berlin"}},
		{"every", &yardv1.Schedule{EveryMs: 60_000}},
		{"leap days", &yardv1.Schedule{Cron: []string{"0 0 29 2 *"}, TimeZone: "Europe/Berlin"}},
		{"most excluded stretches", selective()},
		{"office hours", &yardv1.Schedule{Cron: []string{"*/5 * * * *"}, ExcludeCron: []string{"* 0-8,17-23 * * *", "* * * * 0,6"}, ExcludeDates: []string{"12-25"}, TimeZone: "Europe/Berlin"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			times := parse(b, c.s)
			start := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
			if c.name == "most excluded stretches" {
				start = start.Add(time.Hour)
			}
			after := start
			for b.Loop() {
				next, _ := times.Next(after)
				if after = next; next.IsZero() || next.Year() > 2036 {
					after = start
				}
			}
		})
	}
}

// selective has times in the first hour of a day, and excludes each second of the others: a search takes all steps that it may.
func selective() *yardv1.Schedule {
	s := &yardv1.Schedule{StartAtMs: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC).UnixMilli()}
	for range 16 {
		s.Cron = append(s.Cron, "* * 0-23 * * *")
		s.ExcludeCron = append(s.ExcludeCron, "0-58 * * * * *")
	}
	s.ExcludeCron[15] = "59 * 1-23 * * *"
	return s
}
