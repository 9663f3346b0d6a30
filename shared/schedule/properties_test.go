package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/schedule"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var zones = []string{
	"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Havana", "Asia/Kathmandu", "Africa/Casablanca", "America/St_Johns", "Antarctica/Troll",
}

// ranges are the fields of an expression: seconds, minutes, hours, days, months, days of the week.
var ranges = [][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}

// field makes a field of an expression; choose returns a number from 0 to n-1.
func field(least, largest int, choose func(n int) int) string {
	value := func() int { return least + choose(largest-least+1) }
	switch first, second := value(), value(); choose(6) {
	case 0, 1:
		return "*"
	case 2:
		return fmt.Sprintf("*/%d", 1+choose(largest))
	case 3:
		return fmt.Sprintf("%d-%d", min(first, second), max(first, second))
	case 4:
		return fmt.Sprintf("%d-%d/%d,%d", min(first, second), max(first, second), 1+choose(largest), value())
	default:
		return fmt.Sprintf("%d", first)
	}
}

func expression(choose func(n int) int) string {
	fields := make([]string, 0, len(ranges))
	for _, r := range ranges[choose(2):] {
		fields = append(fields, field(r[0], r[1], choose))
	}
	return strings.Join(fields, " ")
}

// A second parser, of another author, finds the same times in UTC.
func TestASecondParserAgrees(t *testing.T) {
	random := testkit.Seed(t)
	compared := 0
	for compared < 1000 {
		text := expression(random.IntN)
		if differsOnPurpose(text) {
			continue
		}
		times, err := schedule.Parse(&yardv1.Schedule{Cron: []string{text}})
		if err != nil {
			continue // it has no day, such as 0 0 31 2 *
		}
		after := time.Unix(random.Int64N(4_000_000_000), random.Int64N(2)*500_000_000).UTC()
		want, err := gronx.NextTickAfter(text, after, false)
		if err != nil {
			continue // it searches 500 steps, and some expressions take more
		}
		compared++
		if got, ok := times.Next(after); !ok || !got.Equal(want) {
			t.Fatalf("%s after %v: %v, and the second parser says %v", text, after, got, want)
		}
	}
}

// differsOnPurpose says that the two parsers read an expression differently: if both days are restricted and one has a step
// after a star, the second one wants both of them, and this package one of them, as its package comment says.
func differsOnPurpose(text string) bool {
	fields := strings.Fields(text)
	day, weekday := fields[len(fields)-3], fields[len(fields)-1]
	return day != "*" && weekday != "*" && (strings.HasPrefix(day, "*") || strings.HasPrefix(weekday, "*"))
}

func TestPropertiesOfNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		choose := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
		s := &yardv1.Schedule{TimeZone: rapid.SampledFrom(zones).Draw(t, "zone"), JitterMs: 60_000}
		for range 1 + choose(3) {
			s.Cron = append(s.Cron, expression(choose))
		}
		for range choose(2) {
			s.ExcludeCron = append(s.ExcludeCron, expression(choose))
		}
		times, err := schedule.Parse(s)
		if err != nil {
			t.Skip(err)
		}
		after := time.UnixMilli(rapid.Int64Range(1_000_000_000_000, 4_100_000_000_000).Draw(t, "after"))
		if rapid.Bool().Draw(t, "at a change") {
			after = nearChange(after, times, rapid.Int64Range(-7200, 7200).Draw(t, "seconds"))
		}
		for range 5 {
			next, ok := times.Next(after)
			if !ok {
				return
			}
			checkNext(t, s, times, after, next)
			after = next
		}
	})
}

// nearChange returns an instant near the next change of the clock of the zone of times.
func nearChange(after time.Time, times *schedule.Times, seconds int64) time.Time {
	next, ok := times.Next(after)
	if !ok {
		return after
	}
	if _, change := next.ZoneBounds(); !change.IsZero() {
		return change.Add(time.Duration(seconds) * time.Second)
	}
	return after
}

func checkNext(t *rapid.T, s *yardv1.Schedule, times *schedule.Times, after, next time.Time) {
	if !next.After(after) {
		t.Fatalf("%v is not after %v", next, after)
	}
	between := after.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(after))-1).Draw(t, "between")))
	if again, ok := times.Next(between); !ok || !again.Equal(next) {
		t.Fatalf("after %v comes %v, but after %v, which is between them, comes %v", after, next, between, again)
	}
	start, _ := next.ZoneBounds()
	if !start.Equal(next) && !matchesOne(s.GetCron(), next) {
		t.Fatalf("%v matches none of %q, and no clock changes then", next, s.GetCron())
	}
	if matchesOne(excluding(s.GetExcludeCron()), next) {
		t.Fatalf("%v is excluded by %q", next, s.GetExcludeCron())
	}
	if jitter := times.Jitter("domain", "name", next); jitter < 0 || jitter > time.Minute || jitter != times.Jitter("domain", "name", next) {
		t.Fatalf("the jitter of %v is %v", next, jitter)
	}
}

// excluding are expressions that match all seconds of a minute if they had no field of seconds.
func excluding(texts []string) (all []string) {
	for _, text := range texts {
		if len(strings.Fields(text)) == 5 {
			text = "* " + text
		}
		all = append(all, text)
	}
	return all
}

// matchesOne reports whether a local time matches one of some expressions, by the local time alone: as if it were one of UTC.
func matchesOne(texts []string, at time.Time) bool {
	_, offset := at.Zone()
	local := at.UTC().Add(time.Duration(offset) * time.Second)
	for _, text := range texts {
		times, err := schedule.Parse(&yardv1.Schedule{Cron: []string{text}})
		if err != nil {
			continue
		}
		if next, ok := times.Next(local.Add(-time.Nanosecond)); ok && next.Equal(local) {
			return true
		}
	}
	return false
}

func TestJitterSpreads(t *testing.T) {
	times := parse(t, &yardv1.Schedule{Cron: []string{"@hourly"}, JitterMs: 999})
	random := rand.New(rand.NewPCG(1, 2))
	tenths := [10]int{}
	for range 10_000 {
		at := time.UnixMilli(random.Int64N(4_000_000_000_000))
		tenths[times.Jitter("shop", "report", at)/(100*time.Millisecond)]++
	}
	for _, n := range tenths {
		if n < 800 || n > 1200 {
			t.Fatalf("of 10,000 jitters, each tenth of the range should have about 1,000: %v", tenths)
		}
	}
	at := time.UnixMilli(1_790_000_000_000)
	if times.Jitter("shop", "report", at) == times.Jitter("shop", "bill", at) && times.Jitter("shop", "report", at) == times.Jitter("bank", "report", at) {
		t.Fatal("the jitter does not depend on the domain and the name")
	}
	testkit.Equal(t, "jitter, which must never change", times.Jitter("shop", "report", at), 875*time.Millisecond)
}
