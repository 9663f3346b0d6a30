package yardv1_test

import (
	"encoding"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// rule is a rule of a schedule.
type rule interface {
	comparable
	encoding.TextMarshaler
}

// rules checks that each rule has one spelling, that nothing is the default, and that what is unknown is refused.
func rules[R rule, P interface {
	*R
	encoding.TextUnmarshaler
}](t *testing.T, names map[string]R) {
	t.Helper()
	for want, r := range names {
		text, err := r.MarshalText()
		var back R
		if failed := P(&back).UnmarshalText(text); err != nil || string(text) != want || failed != nil || back != r {
			t.Errorf("%v is written as %q and read as %v: %v, %v", r, text, back, err, failed)
		}
	}
	var nothing R
	if err := P(&nothing).UnmarshalText(nil); err != nil || nothing != *new(R) {
		t.Errorf("nothing is read as %v: %v", nothing, err)
	}
	for _, text := range []string{"Skip", "SKIP", "skip ", "OVERLAP_SKIP", "MISSED_SKIP", "unspecified", "1"} {
		if err := P(new(R)).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestRulesOfSchedulesHaveOneSpelling(t *testing.T) {
	rules(t, map[string]yardv1.Overlap{
		"skip": yardv1.Overlap_OVERLAP_SKIP, "buffer_one": yardv1.Overlap_OVERLAP_BUFFER_ONE, "buffer_all": yardv1.Overlap_OVERLAP_BUFFER_ALL,
		"allow": yardv1.Overlap_OVERLAP_ALLOW, "cancel_other": yardv1.Overlap_OVERLAP_CANCEL_OTHER,
	})
	rules(t, map[string]yardv1.Missed{"all": yardv1.Missed_MISSED_ALL, "last": yardv1.Missed_MISSED_LAST, "skip": yardv1.Missed_MISSED_SKIP})
}

func TestAListOfSchedulesIsAlwaysThere(t *testing.T) {
	if got, err := json.Marshal(&yardv1.ListSchedulesResponse{}); err != nil || string(got) != `{"schedules":[]}` {
		t.Errorf("got %s, %v", got, err)
	}
}
