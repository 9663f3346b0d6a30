package logversion

import (
	"errors"
	"strings"
	"testing"
)

// TestI13VersionsOfRecords: what is newer than this program is refused. R21.
func TestI13VersionsOfRecords(t *testing.T) {
	for v := range Newest() + 1 { // 0 stands for none
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
	if v, err := parse("2"); v != 2 || err != nil {
		t.Errorf("%d %v", v, err)
	}
	for _, text := range []string{"", "0", "-1", "1.5", "two", "4294967296"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
