package demo

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func busyModel() model {
	history := make([]float64, 50)
	for i := range history {
		history[i] = float64(40 + (i*37)%90)
	}
	return model{
		phase: "sending", elapsed: 23 * time.Second, of: time.Minute,
		submitted: meter{total: 2813, seconds: history},
		finished:  meter{total: 2790, seconds: history[5:]},
		tenants: []tenantRow{
			{"shop", counts{accepted: 2012, succeeded: 1950, cancelled: 9}, &yardv1.DescribeTasklistResponse{Ready: 12, Running: 8, Waiting: 40, Backoff: 4}, false},
			{"media", counts{accepted: 411, succeeded: 398, failed: 7, givenUp: 7}, &yardv1.DescribeTasklistResponse{Ready: 1234, UnreadBatches: 3, Running: 4}, false},
			{"payouts", counts{accepted: 390, succeeded: 340, failed: 81, retried: 74, givenUp: 6}, &yardv1.DescribeTasklistResponse{Ready: 31, Running: 3, Waiting: 10}, true},
		},
		waits: []waitReport{
			{"email.reset (priority 1)", 57, 1.24, 3.1, 9.87, 11},
			{"email.receipt (priority 2)", 905, 2, 48, 71, 90},
			{"email.newsletter (priority 5)", 800, 31, 122, 180, 210},
			{"image.thumbnail", 411, 3, 40, 52, 61},
			{"payout.send (3 at once)", 0, 0, 0, 0, 0},
		},
		limit:     limitRow{name: "payout.send", inUse: 2, limit: 3, most: 3},
		bank:      bankStats{Calls: 427, InFlight: 2, InFlightMax: 3, Busy: 44, Dropped: 31, Refused: 6, Paid: 341, Repeats: 5},
		elsewhere: "yard --url nats://127.0.0.1:41233 task list --domain shop",
	}
}

func TestFrames(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {140, 50}, {60, 12}} {
		name := fmt.Sprintf("%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			for _, l := range frame(busyModel(), size[0], size[1]) {
				mark := ' '
				if l.Heading {
					mark = '*'
				}
				fmt.Fprintf(&text, "%c|%s\n", mark, l.Text)
			}
			testkit.Golden(t, "testdata/frame-"+name+".txt", text.Bytes())
		})
	}
}

func TestFullFrameFitsASmallTerminalWhole(t *testing.T) {
	if whole, small := len(frame(busyModel(), 80, 1000)), len(frame(busyModel(), 80, 24)); whole != small {
		t.Errorf("the view has %d lines, of which 24 rows show %d", whole, small)
	}
}

func TestFrameFitsAnyTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := busyModel()
		m.submitted.total = rapid.IntRange(0, 1<<40).Draw(t, "total")
		m.limit.inUse = rapid.IntRange(-1, 10).Draw(t, "in use")
		width, height := rapid.IntRange(0, 200).Draw(t, "width"), rapid.IntRange(0, 60).Draw(t, "height")
		lines := frame(m, width, height)
		if len(lines) > height {
			t.Fatalf("%d lines on %d rows", len(lines), height)
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l.Text) > width || strings.ContainsAny(l.Text, "\n\x1b") {
				t.Fatalf("%q does not fit %d columns", l.Text, width)
			}
		}
	})
}

func TestNumbersForPeople(t *testing.T) {
	for want, got := range map[string]string{
		"0": whole(0), "999": whole(999), "1,000": whole(1000), "-12,345,678": whole(-12345678),
		"–": short(0), "0.25 ms": short(0.25), "10 ms": short(10), "1.5 s": short(1500), "2:05": clock(125 * time.Second),
		"": sparkline(nil, 10), "▁▄█": sparkline([]float64{0, 1, 2}, 10), "▁▁": sparkline([]float64{9, 0, 0}, 2),
	} {
		testkit.Equal(t, "result", got, want)
	}
}

func TestActivity(t *testing.T) {
	for want, m := range map[string]model{
		"draining 0:05 of 0:30":    {phase: "draining", elapsed: 5 * time.Second, of: 30 * time.Second},
		"checking 0:00":            {phase: "checking"},
		"checking 1,000 of 12,000": {phase: "checking", lookups: 1000, submitted: meter{total: 12000}},
	} {
		testkit.Equal(t, "result", activity(m), want)
	}
}

func TestProgressLine(t *testing.T) {
	want := "sending 0:23 of 1:00: 2,813 submitted (80/s), 2,790 finished (80/s); 1277 ready, 15 running, 54 waiting; 88 attempts failed, 13 tasks dead; slots 2/3\n"
	if got := progress(busyModel()); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
