package words

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestDurationsInWords, cut to their unit: nothing is shown as "60 s" or "60 min".
func TestDurationsInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 999 * time.Millisecond: "999 ms", time.Second: "1.0 s", 9999 * time.Millisecond: "9.9 s", 10 * time.Second: "10 s",
		59_999 * time.Millisecond: "59 s", 3 * time.Minute: "3 min", 3*time.Minute + 5*time.Second: "3 min 5 s", time.Hour - 1: "59 min 59 s",
		24*time.Hour - 1: "23 h 59 min", 49 * time.Hour: "2 d 1 h", -time.Minute: "-1 min",
	} {
		testkit.Equal(t, d.String(), Lasting(d), want)
	}
}
