package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// write makes a file below dir and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestTheCopyBuildsFromAnywhere(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	write(t, root, "go.work", "go 1.26.0\n\nuse (\n\t.\n\t./c\n)\n\n// Here.\nreplace m/c v0.1.0 => ./c\n")
	write(t, root, "go.mod", "module m\n")
	write(t, root, "services/x/internal/core/y/y.go", "package y\n")
	write(t, root, "node_modules/z.js", "")
	write(t, root, ".git/config", "")
	if err := copyRepository(root, dir); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	want := "module m\n\nreplace m/c v0.1.0 => " + dir + "/c\n"
	if string(mod) != want {
		t.Errorf("go.mod is\n%swant\n%s", mod, want)
	}
	if got, err := cores(dir); err != nil || !slices.Equal(got, []string{"services/x/internal/core/y"}) {
		t.Errorf("cores %q, %v", got, err)
	}
	for _, gone := range []string{"node_modules", ".git"} {
		if _, err := os.Stat(filepath.Join(dir, gone)); err == nil {
			t.Errorf("%s was copied", gone)
		}
	}
	if module, err := moduleDir(dir, filepath.Join(dir, "services/x/internal/core/y")); err != nil || module != dir {
		t.Errorf("module %s, %v", module, err)
	}
}

func TestPackagesAreDirectoriesOfTheRepository(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/b/b.go", "package b\n")
	if got, err := choose(root, []string{"./a/b/"}); err != nil || !slices.Equal(got, []string{"a/b"}) {
		t.Errorf("chose %q, %v", got, err)
	}
	for _, bad := range []string{"a", "../b", root + "/a/b"} {
		if got, err := choose(root, []string{bad}); err == nil {
			t.Errorf("%s gave %q", bad, got)
		}
	}
	if _, err := choose(root, nil); err == nil {
		t.Error("a repository without cores was accepted")
	}
}

func TestCasesAndValuesAreCoveredWhereTheSwitchIs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	write(t, dir, "x.go", `package x

const limit = 2 * 3

func come(n int) bool {
	switch {
	case n > limit:
		return true
	}
	return false
}

func gap(n int) bool {
	switch {
	case n > limit:
		return true
	}
	return false
}
`)
	profile := "mode: set\n" +
		"m/x/x.go:5.24,6.9 1 1\nm/x/x.go:7.17,8.14 1 0\nm/x/x.go:10.2,10.14 1 1\n" +
		"m/x/x.go:13.23,14.9 1 0\nm/x/x.go:15.17,16.14 1 0\nm/x/x.go:18.2,18.14 1 0\n" +
		"m/x/below/x.go:14.1,16.1 1 1\n"
	got, err := widen([]byte(profile), dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := profile + "m/x/x.go:3.1,3.20 1 1\nm/x/x.go:7.7,7.16 1 1\n"; string(got) != want {
		t.Errorf("widened to\n%swant\n%s", got, want)
	}
	if _, err := widen([]byte("mode: set\nm/x/x.go:nonsense\n"), dir); err == nil {
		t.Error("nonsense was accepted")
	}
}

func TestWhatDoesNotCompileIsNotKilled(t *testing.T) {
	failed := exec.Command("go", "no-such-command").Run()
	for _, c := range []struct {
		name string
		err  error
		out  string
		want int
	}{
		{"passed", nil, "ok  \tm/x\t0.1s\n", 0},
		{"failed", failed, "--- FAIL: TestX (0.00s)\nFAIL\tm/x\t0.1s\nFAIL\n", exitKilled},
		{"not built", failed, "# m/x\nx.go:1: invalid operation\nFAIL\tm/x [build failed]\nFAIL\n", exitNotViable},
		{"no package", failed, "FAIL\tm/x [setup failed]\n", exitNotViable},
		{"a test that talks of it", failed, "    x_test.go:1: FAIL\tm/x [build failed] was said\nFAIL\tm/x\t0.1s\n", exitKilled},
		{"not started", os.ErrNotExist, "", exitNotViable},
	} {
		if got := testExit(c.err, []byte(c.out)); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, got, c.want)
		}
	}
}

// answer is what gremlins writes, in its order.
const answer = `{"go_module":"m","files":[{"file_name":"x.go","mutations":[
	{"type":"CONDITIONALS_BOUNDARY","status":"LIVED","line":4,"column":9},
	{"type":"ARITHMETIC_BASE","status":"TIMED OUT","line":3,"column":5},
	{"type":"CONDITIONALS_NEGATION","status":"KILLED","line":4,"column":9}]},
	{"file_name":"a.go","mutations":[
	{"type":"ARITHMETIC_BASE","status":"NOT VIABLE","line":1,"column":1},
	{"type":"ARITHMETIC_BASE","status":"NOT COVERED","line":9,"column":1}]}],"mutants_total":3}`

func TestNumbers(t *testing.T) {
	mutants, err := parseMutants([]byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	r := newResult("p", mutants)
	if r.Total != 4 || r.Killed != 1 || r.Lived != 1 || r.NotCovered != 1 || r.TimedOut != 1 || r.NotViable != 1 {
		t.Errorf("counted %+v", r)
	}
	// What hangs is killed; what does not compile is nothing.
	if r.KilledPercent < 66 || r.KilledPercent > 67 || r.CoveredPercent != 75 {
		t.Errorf("%f %% killed, %f %% covered", r.KilledPercent, r.CoveredPercent)
	}
	if m := r.Mutants[2]; m.File != "x.go" || m.Line != 3 {
		t.Errorf("the mutants are out of order: %+v", r.Mutants)
	}
	if empty := newResult("p", nil); len(empty.below()) != 0 {
		t.Errorf("a package without mutants: %q", empty.below())
	}
	if _, err := parseMutants([]byte(strings.Replace(answer, "LIVED", "FLED", 1))); err == nil {
		t.Error("an unknown status was accepted")
	}
	if _, err := parseMutants([]byte("{")); err == nil {
		t.Error("half an answer was accepted")
	}
}

func TestMutantsAreFoundByFunction(t *testing.T) {
	at := write(t, t.TempDir(), "x.go", "package x\n\nvar a = 1 + 1\n\nfunc f() {\n}\n\nfunc (h *H[T]) M() {\n}\n\nfunc (v V) N() {}\n")
	for line, want := range map[int]string{3: "package", 5: "f", 6: "f", 9: "H.M", 11: "V.N"} {
		if got, err := functionAt(at, line); err != nil || got != want {
			t.Errorf("line %d is in %q, %v, want %q", line, got, err, want)
		}
	}
}

func TestAHarnessThatLiesIsRefused(t *testing.T) {
	truth := func() (planted []mutant) {
		for line, status := range plantedFates {
			planted = append(planted, mutant{File: plantFile, Line: line, Status: status})
			if strings.Contains(strings.Split(plants, "\n")[line-1], ">") {
				planted = append(planted, mutant{File: plantFile, Line: line, Status: status})
			}
		}
		return planted
	}
	if err := proven(truth()); err != nil {
		t.Errorf("the truth was refused: %v", err)
	}
	if err := proven(truth()[1:]); err == nil {
		t.Error("a missing mutant was accepted")
	}
	for _, lie := range []string{statusKilled, statusLived, statusTimedOut, statusNotCovered} {
		planted := truth()
		for i := range planted {
			planted[i].Status = lie
		}
		if err := proven(planted); err == nil {
			t.Errorf("everything is %s, and it was accepted", lie)
		}
	}
}

func TestPlantsAreLeftInNoPackage(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "x.go", "package y\n")
	write(t, dir, "x_test.go", "package y_test\n")
	name, files, err := inspect(dir)
	if err != nil || name != "y" || !slices.Equal(files, []string{"x.go"}) {
		t.Fatalf("package %s of %q, %v", name, files, err)
	}
	if err := plant(dir, name); err != nil {
		t.Fatal(err)
	}
	if err := plant(dir, name); err == nil {
		t.Error("a file was overwritten")
	}
	if err := uproot(dir); err != nil {
		t.Fatal(err)
	}
	if _, files, _ := inspect(dir); !slices.Equal(files, []string{"x.go"}) {
		t.Errorf("left behind: %q", files)
	}
}

func TestASurvivorNeedsAReasonAndAReasonASurvivor(t *testing.T) {
	lived := mutant{File: "x.go", Line: 7, Func: "f", Type: "ARITHMETIC_BASE", Status: statusLived}
	const reason = "p/x.go:f ARITHMETIC_BASE no one can tell\n"
	for _, c := range []struct {
		name    string
		mutants []mutant
		list    string
		all     bool
		want    []string // a part of each finding
	}{
		{"explained", []mutant{lived}, "# why\n\n" + reason, true, nil},
		{"unexplained", []mutant{lived}, "", true, []string{"p/x.go:7: ARITHMETIC_BASE lived in f without a reason"}},
		{"one reason for two", []mutant{lived, lived}, reason, true, []string{"without a reason"}},
		{"two reasons for two", []mutant{lived, lived}, reason + reason, true, nil},
		{"needless", nil, reason, true, []string{"no longer needed"}},
		{"needless among some", nil, reason, false, []string{"no longer needed"}},
		{"another package's", nil, "q/" + reason, false, nil},
		{"a package that is gone", nil, "q/" + reason, true, []string{"no longer needed"}},
	} {
		list, err := parseSurvivors(c.list)
		if err != nil {
			t.Fatal(err)
		}
		r := newResult("p", c.mutants)
		r.KilledPercent = 100
		got := explain([]result{r}, list, c.all, false)
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	needless, err := parseSurvivors(reason)
	if err != nil {
		t.Fatal(err)
	}
	if got := explain([]result{newResult("p", nil)}, needless, true, true); len(got) != 0 {
		t.Errorf("a reason whose survivor may be left out: %q", got)
	}
	for _, bad := range []string{"p/x.go f T reason", "p/x.go:f T", "p/x.go:f T ", ":f T reason"} {
		if _, err := parseSurvivors(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestMarks(t *testing.T) {
	for _, c := range []struct {
		killed, covered float64
		findings        int
	}{{90, 95, 0}, {89.9, 95, 1}, {90, 94.9, 1}, {0, 0, 2}} {
		if got := (result{KilledPercent: c.killed, CoveredPercent: c.covered}).below(); len(got) != c.findings {
			t.Errorf("%v: %q", c, got)
		}
	}
}

func TestReportShowsWhatIsNotKilled(t *testing.T) {
	mutants, err := parseMutants([]byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	results := []result{newResult("p", mutants)}
	var out bytes.Buffer
	if err := report(&out, results, []string{"weak"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"lived\n  p/x.go:4:9 CONDITIONALS_BOUNDARY in : NO REASON", "not covered: no test comes there\n  p/a.go:9:1 ",
		"timed out: they hang, which kills them\n  p/x.go:3:5 ", "findings\n  weak\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	at := filepath.Join(t.TempDir(), "out.json")
	if err := writeJSON(at, results, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Packages []result }
	if err := json.Unmarshal(data, &read); err != nil || len(read.Packages) != 1 || !slices.Equal(read.Packages[0].Mutants, mutants) {
		t.Errorf("wrote %s, %v", data, err)
	}
}

func TestHelpSaysWhatIsWanted(t *testing.T) {
	var out bytes.Buffer
	if _, err := parseFlags([]string{"--help"}, &out); err == nil || !strings.Contains(out.String(), "task mutate -- [flags]") {
		t.Errorf("%v: %s", err, out.String())
	}
	o, err := parseFlags([]string{"--workers", "3", "--out", "x.json", "a", "b"}, &out)
	if err != nil || o.workers != 3 || o.out != "x.json" || !slices.Equal(o.packages, []string{"a", "b"}) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestASampleIsTheSameEachTime(t *testing.T) {
	var all []mutant
	for line := range 500 {
		all = append(all, mutant{File: "x.go", Line: line, Type: "X_BOUNDARY"}, mutant{File: "x.go", Line: line, Type: "X_NEGATION"})
	}
	some, more := sample(all, 40), sample(all, 60)
	if len(some) < 300 || len(some) > 500 || len(sample(all, sampleAll)) != len(all) {
		t.Errorf("%d of 1000 are 40 %%", len(some))
	}
	for _, m := range some {
		if !slices.Contains(more, m) {
			t.Errorf("%+v is in the smaller sample alone", m)
		}
	}
	const code = "package x\n\nfunc f(n int) bool { return n < 2 }\n"
	original := t.TempDir()
	write(t, original, "x.go", code)
	mutated := t.TempDir()
	write(t, mutated, "x.go", strings.Replace(code, "<", "<=", 1))
	t.Chdir(mutated)
	t.Setenv(packageVariable, original)
	m := mutant{File: "x.go", Line: 3, Column: 31, Type: "CONDITIONALS_BOUNDARY"}
	for percent := 1; percent <= sampleAll; percent++ {
		t.Setenv(sampleVariable, strconv.Itoa(percent))
		if out, err := leftOut(); err != nil || out == (len(sample([]mutant{m}, percent)) == 1) {
			t.Fatalf("%d %%: the stand-in leaves it out: %v, %v", percent, out, err)
		}
	}
	t.Setenv(sampleVariable, "")
	if _, err := leftOut(); err == nil {
		t.Error("no sample was accepted")
	}
	for _, bad := range []string{"0", "101"} {
		if _, err := parseFlags([]string{"--sample", bad}, io.Discard); err == nil {
			t.Errorf("a sample of %s %% was accepted", bad)
		}
	}
}

func TestRandomTestsLearnNothingFromAMutant(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "x.go", "package x\n\nimport _ \"pgregory.net/rapid\"\n")
	if flags, err := testFlags(dir); err != nil || flags != "" {
		t.Errorf("without random tests: %q, %v", flags, err)
	}
	write(t, dir, "x_test.go", "package x\n\nimport _ \"pgregory.net/rapid\"\n")
	if flags, err := testFlags(dir); err != nil || !strings.Contains(flags, "-rapid.nofailfile") {
		t.Errorf("with random tests: %q, %v", flags, err)
	}
}

func TestTimeOutIsForTheTestsAlone(t *testing.T) {
	t.Setenv(timeoutVariable, "10s")
	t.Setenv(flagsVariable, "-a -b")
	got := testArgs([]string{"test", "-timeout", "9m", "-failfast", "m/x"})
	if want := []string{"test", "-timeout", "10s", "-failfast", "m/x", "-args", "-a", "-b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := testArgs([]string{"mod", "download"}); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if hangAfter(1) != hangMin || hangAfter(hangMin) != hangFactor*hangMin {
		t.Errorf("%v, %v", hangAfter(1), hangAfter(hangMin))
	}
}

func TestAMutantThatHangsIsKnownByItsDifference(t *testing.T) {
	const code = "package x\n\nfunc f(n int) bool {\n\treturn n < 2 // two\n}\n"
	original, mutated := t.TempDir(), t.TempDir()
	hangs := filepath.Join(t.TempDir(), "hangs")
	write(t, original, "a.go", "package x\n")
	write(t, original, "x.go", code)
	write(t, mutated, "a.go", "package x\n")
	t.Chdir(mutated)
	for _, operator := range []string{"<=", ">="} {
		write(t, mutated, "x.go", strings.Replace(code, "\treturn n <", "        return n\t"+operator, 1))
		if err := noteHang(hangs, original); err != nil {
			t.Fatal(err)
		}
	}
	write(t, mutated, "x.go", code)
	if err := noteHang(hangs, original); err == nil {
		t.Error("a hang without mutation was accepted")
	}
	got, err := readHangs(hangs)
	if want := []spot{{"x.go", 4, 11, true}, {"x.go", 4, 11, false}}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	mutants := []mutant{
		{File: "x.go", Line: 4, Column: 11, Type: "CONDITIONALS_NEGATION", Status: statusKilled},
		{File: "x.go", Line: 4, Column: 11, Type: "CONDITIONALS_BOUNDARY", Status: statusKilled},
	}
	if err := applyHangs(mutants, got[:1]); err != nil || mutants[0].Status != statusKilled || mutants[1].Status != statusTimedOut {
		t.Errorf("%+v, %v", mutants, err)
	}
	if err := applyHangs(mutants, []spot{{File: "x.go", Line: 5}}); err == nil {
		t.Error("a hang of no mutant was accepted")
	}
	if none, err := readHangs(hangs + "-none"); err != nil || none != nil {
		t.Errorf("%+v, %v", none, err)
	}
}
