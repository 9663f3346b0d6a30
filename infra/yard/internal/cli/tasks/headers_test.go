package tasks

import (
	"maps"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestHeadersOfFlags(t *testing.T) {
	got, err := headersOf([]string{"b=x=y", "a=", "c=two\nlines"})
	if err != nil || !maps.Equal(got, map[string]string{"a": "", "b": "x=y", "c": "two\nlines"}) {
		t.Errorf("%v %v", got, err)
	}
	testkit.Equal(t, "printed as", headerText(got), "a=, b=x=y, c=two lines")
	for _, bad := range [][]string{{"a"}, {"=x"}, {"a=1", "a=2"}} {
		if got, err := headersOf(bad); err == nil {
			t.Errorf("%q was taken as %v", bad, got)
		}
	}
}
