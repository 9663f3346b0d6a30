package cli_test

import (
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/curves"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The folder of the curves has the numbers and a picture of each, and the table is printed.
func TestCurvesAreWrittenIntoAFolder(t *testing.T) {
	testkit.Slow(t, "runs a workload several times")
	t.Chdir(t.TempDir())
	out, errs, code := run(t, "", "bench", "curves", "levels", "--tasks", "200", "--tables", "memory", "--partitions", "1", "--sync", "2m", "--quiet", "--out", "a/b")
	if code != cli.ExitOK || errs != "" || strings.Count(out, "levels") != 5 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	data, err := os.ReadFile(filepath.Join("a", "b", "curves.json"))
	testkit.NoError(t, err)
	var measured curves.Curves
	if err := json.Unmarshal(data, &measured); err != nil || len(measured.Curves) != 1 || len(measured.Curves[0].Points) != 5 {
		t.Errorf("%v\n%s", err, data)
	}
	picture, err := os.Open(filepath.Join("a", "b", "levels.png"))
	testkit.NoError(t, err)
	defer picture.Close()
	testkit.Check(t, testkit.Err(png.Decode(picture)))
	if left, err := filepath.Glob("*"); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}
