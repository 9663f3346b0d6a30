package console_test

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/yardmaster-io/yardmaster/infra/yard/console/consoletest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// axe is axe-core 4.14.1 (MPL 2.0), as its package on npm has it.
//
//go:embed testdata/axe.min.js
var axe string

// pageWithin bounds all that is done with a page; a machine that is busy takes seconds for it.
const pageWithin = time.Minute

// start starts a Chromium with one tab, whose pages remember what the browser complains about.
func start(t *testing.T) context.Context {
	t.Helper()
	testkit.Slow(t, "opens every page in a real browser")
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		t.Skip("there is no Chromium on this machine")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU)
	running, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	tab, leave := chromedp.NewContext(running)
	t.Cleanup(leave)
	testkit.NoError(t, chromedp.Do(tab, func(ctx context.Context, _ *chromedp.Target) (none chromedp.Void, err error) {
		_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: complaints})
		return none, err
	}))
	return tab
}

// complaints gathers errors of scripts, and what the content security policy refuses.
const complaints = `window.complaints = [];
addEventListener("error", e => complaints.push("error: " + e.message), true);
addEventListener("unhandledrejection", e => complaints.push("rejection: " + e.reason));
addEventListener("securitypolicyviolation", e => complaints.push(e.violatedDirective + " refuses " + e.blockedURI + " of " + e.sourceFile + ":" + e.lineNumber));`

func do(t *testing.T, tab context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, pageWithin)
	defer cancel()
	testkit.NoError(t, chromedp.Do(ctx, steps...))
}

// ask evaluates an expression in the open page.
func ask[T any](t *testing.T, tab context.Context, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, pageWithin)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	testkit.NoError(t, err)
	return got
}

// look is how wide the screen is, and which palette the person prefers.
type look struct {
	width   int64
	palette string
}

// open opens a page.
func (l look) open(t *testing.T, tab context.Context, url string) {
	t.Helper()
	palette := func(ctx context.Context, _ *chromedp.Target) (none chromedp.Void, err error) {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.palette}}
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return none, err
	}
	do(t, tab, chromedp.EmulateViewport(l.width, 900), palette, chromedp.Navigate(url), chromedp.WaitVisible("main h1"))
}

// findings is what axe-core, the layout and the browser say of the open page.
const findings = `axe.run({resultTypes: ["violations"]}).then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join("; "))
	.concat(document.documentElement.scrollWidth > innerWidth ? ["the page is wider than the screen: " + document.documentElement.scrollWidth] : []).concat(complaints))`

// picturesEnv names a folder for a picture of each page, in each look. Without it there are none.
const picturesEnv = "YARD_SCREENSHOTS"

// TestInABrowser has one engine and one browser for all that it shows. The forms come last, since they change what pages show.
func TestInABrowser(t *testing.T) {
	tab := start(t)
	w := consoletest.Start(t)
	t.Run("every page", func(t *testing.T) { everyPage(t, tab, w) })
	t.Run("numbers", func(t *testing.T) { numbers(t, tab, w) })
	t.Run("keys", func(t *testing.T) { keys(t, tab, w) })
	if dir := os.Getenv(picturesEnv); dir != "" {
		t.Run("pictures", func(t *testing.T) { pictures(t, tab, w, dir) })
	}
	t.Run("forms", func(t *testing.T) { forms(t, tab, w) })
}

// everyPage: no page has a finding. The palette does not depend on the width, and so two looks show both of each.
func everyPage(t *testing.T, tab context.Context, w *consoletest.World) {
	for _, l := range []look{{1280, "light"}, {320, "dark"}} {
		for _, path := range w.Paths() {
			l.open(t, tab, w.URL+path)
			for _, f := range ask[[]string](t, tab, axe+";"+findings) {
				t.Errorf("%s at %d pixels, %s: %s", path, l.width, l.palette, f)
			}
		}
	}
}

func pictures(t *testing.T, tab context.Context, w *consoletest.World, dir string) {
	for _, l := range []look{{1280, "light"}, {1280, "dark"}, {320, "light"}, {320, "dark"}} {
		for _, path := range w.Paths() {
			l.open(t, tab, w.URL+path)
			picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
			testkit.NoError(t, err)
			name := strings.NewReplacer("/", "-", "?", "-", w.Running, "running", w.Dead, "dead", w.Limited, "limited", w.Waiting, "waiting").Replace("overview" + path)
			testkit.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, l.width, l.palette)), picture, 0o644))
		}
	}
}

// numbers: the stream replaces the numbers and adds points to the chart. The focus is not lost.
func numbers(t *testing.T, tab context.Context, w *consoletest.World) {
	look{1280, "light"}.open(t, tab, w.URL+"/")
	do(t, tab, chromedp.Focus("#live table a"))
	for _, condition := range []string{
		`document.querySelector("[data-chart]").yardData?.[0].length >= 4`, `document.querySelector("#live dd").textContent.endsWith("/s")`, `document.querySelectorAll("canvas").length === 1`, `document.activeElement.textContent === "shop"`,
	} {
		ctx, cancel := context.WithTimeout(tab, pageWithin)
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](condition))
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
	}
	testkit.Equal(t, "complaints", ask[[]string](t, tab, "complaints"), []string{})
}

// keys: a keyboard reaches everything, and the first stop skips the navigation.
func keys(t *testing.T, tab context.Context, w *consoletest.World) {
	look{1280, "light"}.open(t, tab, w.URL+"/domains/shop/tasks")
	for _, step := range []struct{ key, focused string }{{kb.Tab, "skip"}, {kb.Enter, "main"}, {"/", "id"}} {
		do(t, tab, chromedp.KeyEvent(step.key))
		testkit.Equal(t, "the focus", ask[string](t, tab, `document.activeElement.className || document.activeElement.id`), step.focused)
	}
}

// forms: the browser sends a form, which the protection of the console lets through, once the name is typed. The next page says what was done.
func forms(t *testing.T, tab context.Context, w *consoletest.World) {
	look{1280, "light"}.open(t, tab, w.URL+"/domains/shop/schedules/nightly")
	do(t, tab, chromedp.Click(`ul.actions a[href$="/trigger"]`), chromedp.WaitVisible("form.change button"))
	do(t, tab, chromedp.Click("form.change button"), chromedp.WaitVisible(".outcome"))
	testkit.Equal(t, "the outcome", ask[bool](t, tab, `document.querySelector("[role=status]").textContent.startsWith("Done")`), true)
	testkit.Equal(t, "findings", ask[[]string](t, tab, axe+";"+findings), []string{})

	look{320, "dark"}.open(t, tab, w.URL+"/domains/shop/tasklists/idle/purge")
	do(t, tab, chromedp.Click("form.change button"))
	testkit.Equal(t, "the path without a typed name", ask[string](t, tab, "location.pathname"), "/domains/shop/tasklists/idle/purge")
	do(t, tab, chromedp.SendKeys("input[name=typed]", "idle"), chromedp.Click("form.change button"), chromedp.WaitVisible(".outcome"))
	testkit.Equal(t, "the path behind a form", ask[string](t, tab, "location.pathname"), "/domains/shop/tasklists/idle")
	testkit.Equal(t, "findings", ask[[]string](t, tab, axe+";"+findings), []string{})
}
