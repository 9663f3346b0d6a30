package assets_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/assets"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// ours are written here; all other files have a line in checksums.txt.
var ours = []string{"console.css", "console.js"}

func TestFilesOfOthersAreThoseOfTheirPackages(t *testing.T) {
	list, err := os.ReadFile("checksums.txt")
	testkit.NoError(t, err)
	want := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if fields := strings.Fields(line); line[0] != '#' && len(fields) == 4 {
			want[fields[0]] = fields[3]
		}
	}
	entries, err := os.ReadDir("files")
	testkit.NoError(t, err)
	for _, entry := range entries {
		name := entry.Name()
		if slices.Contains(ours, name) {
			continue
		}
		text, err := os.ReadFile("files/" + name)
		testkit.NoError(t, err)
		sum := sha256.Sum256(text)
		if got := hex.EncodeToString(sum[:]); got != want[name] {
			t.Errorf("%s has the checksum %s, and checksums.txt has %q", name, got, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("checksums.txt names files that are not there: %v", want)
	}
}

func TestFilesAreServedByVersion(t *testing.T) {
	files, err := assets.New()
	testkit.NoError(t, err)
	for path, want := range map[string]int{
		files.Path("console.css"):           http.StatusOK,
		files.Path("htmx.min.js"):           http.StatusOK,
		files.Path("none.js"):               http.StatusNotFound,
		files.Path(""):                      http.StatusNotFound,
		files.Path("../checksums.txt"):      http.StatusNotFound,
		assets.Prefix + "1234/console.css":  http.StatusNotFound,
		assets.Prefix + "files/console.css": http.StatusNotFound,
	} {
		w := httptest.NewRecorder()
		files.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
}
