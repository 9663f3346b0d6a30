package ids

import (
	"strings"
	"testing"
	"time"
)

// The example of RFC 9562, appendix A.6.
func TestARequestIDIsAUUIDOfVersion7(t *testing.T) {
	const printed = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
	id, err := ParseRequestID(printed)
	if err != nil || id.String() != printed || !id.Time().Equal(time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)) {
		t.Errorf("%v, %v, %v", id, id.Time().UTC(), err)
	}
	if upper, err := ParseRequestID(strings.ToUpper(printed)); err != nil || upper != id {
		t.Errorf("%v, %v", upper, err)
	}
}

func TestANewRequestIDIsReadAgain(t *testing.T) {
	seen := map[RequestID]bool{}
	for i := range 1000 {
		now := time.UnixMilli(1_800_000_000_000 + int64(i)*1_000_000_007)
		id := NewRequestID(now)
		back, err := ParseRequestID(id.String())
		if err != nil || back != id || !id.Time().Equal(now) || seen[id] {
			t.Fatalf("%v: %v, %v, %v", id, back, id.Time(), err)
		}
		seen[id] = true
	}
}

func TestWhatIsNoRequestIDIsRefused(t *testing.T) {
	for _, s := range []string{
		"", "x", "017f22e2-79b0-7cc3-98c4-dc0c0c07398", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0",
		"017f22e279b0-7cc3-98c4-dc0c0c07398f-", "017f22e2-79b0-4cc3-98c4-dc0c0c07398f", // version 4
		"017f22e2-79b0-7cc3-d8c4-dc0c0c07398f", // another variant
		"g17f22e2-79b0-7cc3-98c4-dc0c0c07398f", "{17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
	} {
		if id, err := ParseRequestID(s); err == nil || id != (RequestID{}) {
			t.Errorf("%q was read as %v", s, id)
		}
	}
}
