package operations

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
)

// I14: what a submitter wrote does not steer the terminal of who looks at an item.
func TestI14_ContentsAreTextOnly(t *testing.T) {
	const evil = "a\x1b[2Jb\u009b0mc\u202ed\x7f\r\ne\rf\tg"
	stored, err := (&logv1.Batch{Tasks: []*logv1.Record{{Type: evil, Tasklist: evil, Domain: evil}}}).MarshalVT()
	if text := contents(stored); err != nil || strings.ContainsAny(text, "\x1b\u009b\u202e\x7f\r\t") || strings.Count(text, "\n") != 2 {
		t.Errorf("%v: %q", err, text)
	}
}
