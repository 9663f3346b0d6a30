package schedule_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/schedule"
)

func TestParseRefuses(t *testing.T) {
	daily := []string{"0 0 * * *"}
	many := func(text string, n int) []string { return slices.Repeat([]string{text}, n) }
	for _, c := range []struct {
		name       string
		s          *yardv1.Schedule
		path, text string
	}{
		{"nothing", &yardv1.Schedule{}, "/cron", "every_ms"},
		{"too many expressions", &yardv1.Schedule{Cron: many("@daily", 17)}, "/cron", "at most 16"},
		{"too many exclusions", &yardv1.Schedule{Cron: daily, ExcludeCron: many("@daily", 17)}, "/exclude_cron", "at most 16"},
		{"a bad exclusion", &yardv1.Schedule{Cron: daily, ExcludeCron: []string{"1 1 1 1 1", "x"}}, "/exclude_cron/1", "has 1 fields"},
		{"an exclusion that never matches", &yardv1.Schedule{Cron: daily, ExcludeCron: []string{"0 0 31 4,6 *"}}, "/exclude_cron/0", "no month"},
		{"every too short", &yardv1.Schedule{EveryMs: 999}, "/every_ms", "1000 to 31622400000"},
		{"every too long", &yardv1.Schedule{EveryMs: 31_622_400_001}, "/every_ms", "1000 to 31622400000"},
		{"every below 0", &yardv1.Schedule{EveryMs: -1}, "/every_ms", "is -1"},
		{"a zone", &yardv1.Schedule{Cron: daily, TimeZone: "Europe/Ulm"}, "/time_zone", "Europe/Ulm"},
		{"the zone file of the machine", &yardv1.Schedule{Cron: daily, TimeZone: "localtime"}, "/time_zone", "localtime"},
		{"leap seconds", &yardv1.Schedule{Cron: daily, TimeZone: "right/Europe/Berlin"}, "/time_zone", "right"},
		{"the machine's zone", &yardv1.Schedule{Cron: daily, TimeZone: "Local"}, "/time_zone", "Local"},
		{"a path as a zone", &yardv1.Schedule{Cron: daily, TimeZone: "../zone"}, "/time_zone", "../zone"},
		{"a date", &yardv1.Schedule{Cron: daily, ExcludeDates: []string{"2026-12-24", "2026-02-29"}}, "/exclude_dates/1", "2026-02-29"},
		{"a date of each year", &yardv1.Schedule{Cron: daily, ExcludeDates: []string{"02-29", "04-31"}}, "/exclude_dates/1", "04-31"},
		{"too many dates", &yardv1.Schedule{Cron: daily, ExcludeDates: many("12-24", 401)}, "/exclude_dates", "at most 400"},
		{"jitter", &yardv1.Schedule{Cron: daily, JitterMs: 86_400_001}, "/jitter_ms", "0 to 86400000"},
		{"start", &yardv1.Schedule{Cron: daily, StartAtMs: -1}, "/start_at_ms", "is -1"},
		{"end", &yardv1.Schedule{Cron: daily, EndAtMs: 253_402_300_800_000}, "/end_at_ms", "is 253402300800000"},
		{"end before start", &yardv1.Schedule{Cron: daily, StartAtMs: 5, EndAtMs: 5}, "/end_at_ms", "after start_at_ms"},
		{"runs", &yardv1.Schedule{Cron: daily, RunsMax: 1_000_000_001}, "/runs_max", "1 to 1000000000"},
		{"catch up", &yardv1.Schedule{Cron: daily, CatchUpMs: -1}, "/catch_up_ms", "is -1"},
		{"overlap", &yardv1.Schedule{Cron: daily, Overlap: 9}, "/overlap", "unknown value 9"},
		{"missed", &yardv1.Schedule{Cron: daily, Missed: 9}, "/missed", "unknown value 9"},
		{"note", &yardv1.Schedule{Cron: daily, Note: strings.Repeat("x", 1025)}, "/note", "at most 1024"},
		{"all times excluded by date", &yardv1.Schedule{Cron: []string{"0 0 24 12 *"}, ExcludeDates: []string{"12-24"}}, "", "has no time in the 10 years from 2024-01-01"},
		{"all times excluded by expression", &yardv1.Schedule{EveryMs: 1000, ExcludeCron: []string{"* * * * *"}}, "", "has no time"},
		{"each second excluded", &yardv1.Schedule{EveryMs: 1000, ExcludeCron: []string{"0-58 * * * * *", "59 * * * * *"}}, "", "has no time"},
		{"no time before the end", &yardv1.Schedule{Cron: daily, StartAtMs: ms(t, "2026-11-30T00:00:01Z"), EndAtMs: ms(t, "2026-12-01T00:00:00Z")}, "", "has no time in the 10 years from 2026-11-30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := schedule.Parse(c.s)
			wantInvalid(t, err, c.path, c.text)
		})
	}
}

func TestParseRefusesExpressions(t *testing.T) {
	for text, message := range map[string]string{
		"":                                      "has no fields",
		"* * * *":                               "has 4 fields",
		"* * * * * * *":                         "has 7 fields",
		"@every 1h":                             "use every_ms",
		"@reboot":                               "unrecognized",
		"TZ=UTC * * * * *":                      "use time_zone",
		"CRON_TZ=UTC":                           "use time_zone",
		"0 0 31 2 *":                            "has no time",
		"0 0 31 feb,apr *":                      "has no time",
		"60 * * * *":                            "above maximum",
		"* * * * 8":                             "above maximum",
		"* * * * 8-7":                           "above maximum",
		"* * 0 * *":                             "below minimum",
		"*/0 * * * *":                           "a step of 1 or more",
		"* * * * 1-7/0":                         "a step of 1 or more",
		"5-1 * * * *":                           "beyond end",
		"0 0 L * *":                             "L, W, # and ?",
		"0 0 L-3 * *":                           "L, W, # and ?",
		"0 0 15W * *":                           "L, W, # and ?",
		"0 0 * * 5L":                            "L, W, # and ?",
		"0 0 * * friL":                          "L, W, # and ?",
		"0 0 * * 1#2":                           "L, W, # and ?",
		"0 0 ? * 1":                             "L, W, # and ?",
		"1,,2 * * * *":                          `has ""`,
		", * * * *":                             `has ""`,
		"*-5 * * * *":                           `has "*-5"`,
		"+5 * * * *":                            `has "+5"`,
		"1/2/3 * * * *":                         `has "1/2/3"`,
		"0 0 * foo *":                           "foo",
		"0 0 * * fun-7":                         "fun",
		strings.Repeat("1,", 600) + "1 * * * *": "at most 1024",
	} {
		t.Run(text[:min(len(text), 20)], func(t *testing.T) {
			_, err := schedule.Parse(&yardv1.Schedule{Cron: []string{"@daily", text}})
			wantInvalid(t, err, "/cron/1", message)
		})
	}
}

func TestParseAccepts(t *testing.T) {
	for _, text := range []string{
		"* * * * *", "*/5 1-3,7 1,15 JAN-mar/2 mon-fri", "0 30 6 * jul wed", "@yearly", "@monthly", "@weekly", "@daily", "@hourly", "0 0 29 2 *",
		"0 0 31 2 1", "0 0 * * 0-7", "0 0 * * 7,1-7/2", "0 0 * * 1/2", "  0 0  * * * ", "5/10 * * * *", "0 0 * * 1-7/99999999",
	} {
		parse(t, &yardv1.Schedule{Cron: []string{text}})
	}
}
