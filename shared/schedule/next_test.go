package schedule_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/schedule"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func parse(tb testing.TB, s *yardv1.Schedule) *schedule.Times {
	tb.Helper()
	times, err := schedule.Parse(s)
	if err != nil {
		tb.Fatal(err)
	}
	return times
}

// runs are the first times after an instant, as texts.
func runs(times *schedule.Times, after time.Time, n int) (texts []string) {
	for range n {
		next, ok := times.Next(after)
		if !ok {
			return append(texts, "none")
		}
		texts = append(texts, next.Format(time.RFC3339Nano))
		after = next
	}
	return texts
}

func instantOf(tb testing.TB, text string) time.Time {
	tb.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		tb.Fatal(err)
	}
	return at
}

func ms(tb testing.TB, text string) int64 { return instantOf(tb, text).UnixMilli() }

func TestNext(t *testing.T) {
	const friday = "2026-12-25"
	for _, c := range []struct {
		name  string
		s     *yardv1.Schedule
		after string
		want  []string
	}{
		{"strictly after", &yardv1.Schedule{Cron: []string{"0 6 * * *"}}, "2026-11-30T06:00:00Z", []string{"2026-12-01T06:00:00Z"}},
		{"parts of a second", &yardv1.Schedule{Cron: []string{"* * * * * *"}}, "2026-11-30T06:00:00.5Z", []string{"2026-11-30T06:00:01Z", "2026-11-30T06:00:02Z"}},
		{"before 1970", &yardv1.Schedule{Cron: []string{"30 23 * * *"}}, "1969-12-30T23:30:00.1Z", []string{"1969-12-31T23:30:00Z", "1970-01-01T23:30:00Z"}},
		{"a leap day", &yardv1.Schedule{Cron: []string{"0 0 29 2 *"}}, "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"either day", &yardv1.Schedule{Cron: []string{"0 0 13 * fri"}}, "2026-11-30T00:00:00Z", []string{"2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z"}},
		{"Sunday as 7", &yardv1.Schedule{Cron: []string{"0 0 * * 7", "0 1 * * 6-7"}}, "2026-11-30T00:00:00Z", []string{"2026-12-05T01:00:00Z", "2026-12-06T00:00:00Z", "2026-12-06T01:00:00Z"}},
		{"a week that ends with Sunday", &yardv1.Schedule{Cron: []string{"0 0 * * fri-SUN/2"}}, "2026-11-30T00:00:00Z", []string{"2026-12-04T00:00:00Z", "2026-12-06T00:00:00Z"}},
		{"named", &yardv1.Schedule{Cron: []string{"@yearly"}}, "2026-11-30T00:00:00Z", []string{"2027-01-01T00:00:00Z"}},
		{"every from the epoch", &yardv1.Schedule{EveryMs: 1500}, "1970-01-01T00:00:01.5Z", []string{"1970-01-01T00:00:03Z", "1970-01-01T00:00:04.5Z"}},
		{"every from the start", &yardv1.Schedule{EveryMs: 1500, StartAtMs: ms(t, "2026-11-30T00:00:00.2Z")}, "2020-01-01T00:00:00Z", []string{"2026-11-30T00:00:00.2Z", "2026-11-30T00:00:01.7Z"}},
		{"merged", &yardv1.Schedule{EveryMs: 40_000, Cron: []string{"* * * * *", "*/2 * * * *"}}, "2026-11-30T00:00:00Z", []string{"2026-11-30T00:00:40Z", "2026-11-30T00:01:00Z", "2026-11-30T00:01:20Z", "2026-11-30T00:02:00Z"}},
		{"from start to end", &yardv1.Schedule{Cron: []string{"@daily"}, StartAtMs: ms(t, "2026-11-30T00:00:00Z"), EndAtMs: ms(t, "2026-12-02T00:00:00Z")}, "2025-01-01T00:00:00Z", []string{"2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z", "none"}},
		{"too far", &yardv1.Schedule{Cron: []string{"@daily"}, StartAtMs: ms(t, "2036-11-30T00:00:00Z")}, "2026-11-29T00:00:00Z", []string{"none"}},
		{"a date", &yardv1.Schedule{Cron: []string{"@hourly"}, ExcludeDates: []string{friday}}, "2026-12-24T23:00:00Z", []string{"2026-12-26T00:00:00Z"}},
		{"a date of each year", &yardv1.Schedule{Cron: []string{"0 9 24-26 12 *"}, ExcludeDates: []string{"12-24", "12-25"}}, "2026-12-01T00:00:00Z", []string{"2026-12-26T09:00:00Z", "2027-12-26T09:00:00Z"}},
		{"a date in the zone", &yardv1.Schedule{Cron: []string{"0 */6 * * *"}, TimeZone: "America/New_York", ExcludeDates: []string{friday}}, "2026-12-24T23:00:00Z", []string{"2026-12-26T00:00:00-05:00"}},
		{"nights and weekends", &yardv1.Schedule{Cron: []string{"*/20 * * * * *"}, ExcludeCron: []string{"* 0-8,17-23 * * *", "* * * * 0,6"}}, "2026-12-04T16:59:20Z", []string{"2026-12-04T16:59:40Z", "2026-12-07T09:00:00Z"}},
		{"an exclusion covers its minutes", &yardv1.Schedule{EveryMs: 12_500, ExcludeCron: []string{"1 * * * *"}}, "2026-11-30T00:00:45Z", []string{"2026-11-30T00:00:50Z", "2026-11-30T00:02:05Z"}},
		{"an exclusion of a second", &yardv1.Schedule{EveryMs: 1500, ExcludeCron: []string{"4 0 0 * * *"}}, "1970-01-01T00:00:00Z", []string{"1970-01-01T00:00:01.5Z", "1970-01-01T00:00:03Z", "1970-01-01T00:00:06Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.Equal(t, "times", runs(parse(t, c.s), instantOf(t, c.after), len(c.want)), c.want)
		})
	}
}

func TestChangesOfTheClock(t *testing.T) {
	const berlin, lordHowe = "Europe/Berlin", "Australia/Lord_Howe"
	for _, c := range []struct {
		name, zone string
		cron       []string
		after      string
		want       []string
	}{
		{"a time in the gap", berlin, []string{"30 2 * * *"}, "2026-03-28T12:00:00Z", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{"times in the gap are one", berlin, []string{"*/5 2 * * *", "7 2 * * *", "0 3 * * *"}, "2026-03-28T23:00:00Z", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
		{"a time that comes twice", berlin, []string{"30 2 * * *"}, "2026-10-24T12:00:00Z", []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{"from within the second time", berlin, []string{"* * 2 * * *"}, "2026-10-25T01:10:00Z", []string{"2026-10-26T02:00:00+01:00"}},
		{"the hour after the second time", berlin, []string{"* 2-3 * * *"}, "2026-10-25T00:58:00Z", []string{"2026-10-25T02:59:00+02:00", "2026-10-25T03:00:00+01:00"}},
		{"each hour, back", berlin, []string{"15 * * * *"}, "2026-10-24T23:20:00Z", []string{"2026-10-25T02:15:00+02:00", "2026-10-25T02:15:00+01:00", "2026-10-25T03:15:00+01:00"}},
		{"each hour, forward", berlin, []string{"15 */1 * * *"}, "2026-03-29T00:00:00Z", []string{"2026-03-29T01:15:00+01:00", "2026-03-29T03:15:00+02:00"}},
		{"each second hour, forward", berlin, []string{"0 */2 * * *"}, "2026-03-28T23:00:00Z", []string{"2026-03-29T04:00:00+02:00"}},
		{"each second hour, back", berlin, []string{"0 */2 * * *"}, "2026-10-24T22:00:00Z", []string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T04:00:00+01:00"}},
		{"half an hour forward", lordHowe, []string{"15 2 * * *"}, "2026-10-03T00:00:00Z", []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"half an hour back", lordHowe, []string{"*/20 1 * * *"}, "2026-04-04T14:10:00Z", []string{"2026-04-05T01:20:00+11:00", "2026-04-05T01:40:00+11:00", "2026-04-06T01:00:00+10:30"}},
		{"half an hour back, each hour", lordHowe, []string{"*/20 * * * *"}, "2026-04-04T14:10:00Z", []string{"2026-04-05T01:20:00+11:00", "2026-04-05T01:40:00+11:00", "2026-04-05T01:40:00+10:30", "2026-04-05T02:00:00+10:30"}},
		{"a day that does not exist", "Pacific/Apia", []string{"0 12 * * *"}, "2011-12-29T00:00:00Z", []string{"2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"}},
		{"each hour around that day", "Pacific/Apia", []string{"@hourly"}, "2011-12-30T08:30:00Z", []string{"2011-12-29T23:00:00-10:00", "2011-12-31T00:00:00+14:00"}},
		{"the last day of a leap year", berlin, []string{"30 2 * * *", "0 * 31 12 *"}, "2040-12-31T01:10:00Z", []string{"2040-12-31T02:30:00+01:00", "2040-12-31T03:00:00+01:00", "2040-12-31T04:00:00+01:00"}},
		{"a midnight in the gap", "America/Havana", []string{"@daily"}, "2026-03-07T06:00:00Z", []string{"2026-03-08T01:00:00-04:00", "2026-03-09T00:00:00-04:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			times := parse(t, &yardv1.Schedule{Cron: c.cron, TimeZone: c.zone})
			testkit.Equal(t, "times", runs(times, instantOf(t, c.after), len(c.want)), c.want)
		})
	}
}

// calendars are expressions, each with the rule by which a test decides about a local minute.
var calendars = []struct {
	cron    string
	byClock bool
	matches func(local time.Time) bool
}{
	{"* * * * *", true, func(time.Time) bool { return true }},
	{"0-59 0-23 * * *", false, func(time.Time) bool { return true }},
	{"0 * * * *", true, func(at time.Time) bool { return at.Minute() == 0 }},
	{"15,45 0-23 * * *", false, func(at time.Time) bool { return at.Minute()%30 == 15 }},
	{"10 */3 * * *", true, func(at time.Time) bool { return at.Minute() == 10 && at.Hour()%3 == 0 }},
	{"30 2 * * *", false, func(at time.Time) bool { return at.Hour() == 2 && at.Minute() == 30 }},
	{"45 1 * * *", false, func(at time.Time) bool { return at.Hour() == 1 && at.Minute() == 45 }},
	{"0 0 * * *", false, func(at time.Time) bool { return at.Hour() == 0 && at.Minute() == 0 }},
}

// Every local minute of a year is visited, and the rule of the package comment is applied to it by hand. A quick run visits the
// days around the changes.
func TestEveryMinuteOfAYear(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Date(2011, 1, 1, 0, 0, 0, 0, location)
		end := start.AddDate(1, 0, 7)
		if !testkit.Quick() {
			compareMinutes(t, zone, start, end)
			continue
		}
		for _, change := start.ZoneBounds(); change.Before(end); _, change = change.ZoneBounds() {
			compareMinutes(t, zone, change.Add(-50*time.Hour), change.Add(50*time.Hour))
		}
	}
}

func compareMinutes(t *testing.T, zone string, start, end time.Time) {
	t.Helper()
	for _, c := range calendars {
		want := expected(start, end, c.byClock, c.matches)
		times := parse(t, &yardv1.Schedule{Cron: []string{c.cron}, TimeZone: zone})
		got, after := 0, start.Add(-time.Nanosecond)
		for {
			next, _ := times.Next(after)
			if !next.Before(end) {
				break
			}
			if got == len(want) || !next.Equal(want[got]) {
				t.Fatalf("%s in %s: after %v comes %v, want %v", c.cron, zone, after, next, want[min(got, len(want)-1)])
			}
			got, after = got+1, next
		}
		if got != len(want) {
			t.Fatalf("%s in %s: %d times, want %d", c.cron, zone, got, len(want))
		}
	}
}

// expected walks over the instants of a stretch of time, minute by minute.
func expected(start, end time.Time, byClock bool, matches func(time.Time) bool) (want []time.Time) {
	local := func(at time.Time) time.Time {
		_, offset := at.Zone()
		return at.UTC().Add(time.Duration(offset) * time.Second)
	}
	latest := local(start).Add(-time.Minute)
	for at := start; at.Before(end); at = at.Add(time.Minute) {
		now := local(at)
		run := matches(now) && (byClock || now.After(latest))
		for missing := latest.Add(time.Minute); missing.Before(now); missing = missing.Add(time.Minute) {
			run = run || !byClock && matches(missing)
		}
		if run {
			want = append(want, at)
		}
		if now.After(latest) {
			latest = now
		}
	}
	return want
}
