package taskstate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestWhatAnEventMayBe: another kind stops its partition, so that no program passes over what it does not know (I13).
func TestWhatAnEventMayBe(t *testing.T) {
	known := append(slices.Clone(allKinds), Fence, Changed, Redrove, Skipped, Unblocked, Ended)
	commands := []Kind{Cancel, Changed, Redrove, Skipped, Unblocked, Ended}
	for k := range kinds + 1 {
		if k.Known() != slices.Contains(known, k) || k.Command() != slices.Contains(commands, k) {
			t.Errorf("kind %d is known: %v, a command: %v", k, k.Known(), k.Command())
		}
	}
}

func TestNames(t *testing.T) {
	var kinds, states []string
	for k := range Displace + 2 {
		kinds = append(kinds, k.String())
	}
	for s := range Lapsed + 2 {
		states = append(states, fmt.Sprint(s, s.Finished(), s.Active()))
	}
	if got, want := strings.Join(kinds, " "), "none started succeeded failed heartbeat released cancel expired unknown fence lapse reject displace unknown"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	want := "none false false,waiting false false,none false false,ready false true,running false true,backoff false true," +
		"completed true false,dead true false,cancelled true false,expired true false,none true false"
	if got := strings.Join(states, ","); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestI4_ACancelledTaskWithoutItsHistory: the outcome that ended its last attempt comes again, and nothing says why that failed.
func TestI4_ACancelledTaskWithoutItsHistory(t *testing.T) {
	task := in(Running)
	send(task, Cancel, t0)
	send(task, Failed, t0)
	if v, _ := send(task, Failed, t0+1); v != (Verdict{CancelRequested: true}) {
		t.Errorf("%+v", v)
	}
	task.SetSteps(nil, 9)
	if v, _ := send(task, Failed, t0+1); v != (Verdict{}) {
		t.Errorf("without its history: %+v", v)
	}
}
