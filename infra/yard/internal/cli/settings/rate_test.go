package settings

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// A rate is written as it is read.
func TestRatesOnTheCommandLine(t *testing.T) {
	for text, want := range map[string]yard.Rate{
		"100/s": {Tasks: 100, Per: time.Second}, "5/m": {Tasks: 5, Per: time.Minute}, "5/10m": {Tasks: 5, Per: 10 * time.Minute},
		"3/h burst 2": {Tasks: 3, Per: time.Hour, Burst: 2}, "7/ms": {Tasks: 7, Per: time.Millisecond}, "1/1h30m": {Tasks: 1, Per: 90 * time.Minute},
		"2/10s": {Tasks: 2, Per: 10 * time.Second}, "1/24h": {Tasks: 1, Per: 24 * time.Hour},
	} {
		var r rateFlag
		if err := r.Set(text); err != nil || yard.Rate(r) != want || r.String() != text {
			t.Errorf("%s: %+v %v, written %q", text, r, err, r.String())
		}
	}
	r := rateFlag{Tasks: 1}
	if err := r.Set("0"); err != nil || yard.Rate(r) != (yard.Rate{}) || r.String() != "0" {
		t.Errorf("%+v %v", r, err)
	}
	for _, text := range []string{"", "100", "x/s", "0/s", "-1/s", "1/", "1/x", "1/0s", "1/s burst", "1/s burst x", "1/s burst 0", "1/1ns"} {
		if err := r.Set(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
}
