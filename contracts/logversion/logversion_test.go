package logversion

import (
	"errors"
	"strings"
	"testing"
)

// TestI13VersionsOfRecords: what is absent is the first format, what is newer than
// this program is refused. R21.
func TestI13VersionsOfRecords(t *testing.T) {
	for v, field := range map[uint32]uint32{0: 0, 1: 0, 2: 2, 7: 7} {
		if Field(v) != field || Of(field) != max(v, 1) {
			t.Errorf("%d is carried as %d and read as %d", v, Field(v), Of(field))
		}
	}
	for _, v := range []uint32{0, First, Newest()} {
		if err := Check(v); err != nil {
			t.Errorf("%d: %v", v, err)
		}
	}
	err := Check(Newest() + 1)
	var unknown *UnknownError
	if !errors.As(err, &unknown) || unknown.Version != Newest()+1 || unknown.Newest != Newest() {
		t.Fatalf("%v", err)
	}
	if !strings.Contains(err.Error(), "run a newer version") {
		t.Errorf("%q does not say what to do", err)
	}
}

func TestABuildNamesAVersion(t *testing.T) {
	if v, err := parse("12"); v != 12 || err != nil {
		t.Errorf("%d %v", v, err)
	}
	for _, text := range []string{"", "0", "-1", "1.5", "two", "4294967296"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
