package console_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/consoletest"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestConsole has one engine for all that it shows.
func TestConsole(t *testing.T) {
	w := consoletest.Start(t)
	t.Run("pages", func(t *testing.T) { everyPage(t, w) })
	t.Run("facts", func(t *testing.T) { facts(t, w) })
	t.Run("golden", func(t *testing.T) { golden(t, w) })
	t.Run("stream", func(t *testing.T) { stream(t, w) })
	t.Run("protection", func(t *testing.T) { protection(t, w) })
	t.Run("password", func(t *testing.T) { password(t, w) })
	t.Run("sums", func(t *testing.T) { sums(t, w) })
	t.Run("proxy", func(t *testing.T) { proxy(t, w) })
	t.Run("provider", func(t *testing.T) { provider(t, w) })
	t.Run("provider attacks", func(t *testing.T) { providerAttacks(t, w) })
	t.Run("flood", func(t *testing.T) { flood(t, w) })
	t.Run("actions", func(t *testing.T) { actions(t, w) })
	t.Run("bounds", func(t *testing.T) { bounds(t, w) })
}

// everyPage: each page is there, and makes few calls.
func everyPage(t *testing.T, w *consoletest.World) {
	for _, path := range w.Paths() {
		want := http.StatusOK
		if path == "/nowhere" {
			want = http.StatusNotFound
		}
		before := w.Calls()
		status, body := w.Get(t, path)
		if calls := w.Calls() - before; status != want || calls > callsMax {
			t.Errorf("%s: status %d, %d calls", path, status, calls)
		}
		for _, never := range []string{"ZgotmplZ", "%!", "<nil>", "\u202e", "<script>alert"} {
			if strings.Contains(body, never) {
				t.Errorf("%s has %q", path, never)
			}
		}
	}
}

// callsMax is how many calls a page makes at most: the overview checks three domains.
const callsMax = 30

// facts: the pages say what is so.
func facts(t *testing.T, w *consoletest.World) {
	for path, wants := range map[string][]string{
		"/":                                 {"No worker polls tasklist idle of domain shop. Ready tasks: 1", `href="/domains/shop"`},
		"/domains":                          {"Orders of the shop", "Payouts"},
		"/cluster":                          {"frontend", "history", "matching", "timer", "ready", "Shards of matching", "since ", "Log behind it", "not by this owner"},
		"/domains/shop/tasklists":           {`/domains/shop/tasklists/mail"`, `/domains/shop/tasklists/idle"`},
		"/domains/shop/tasklists/mail":      {"mailer-1", "1.4.2", "Partition 2", "What customers wait for", "shared/smtp"},
		"/domains/shop/tasklists/idle":      {"No worker polls this tasklist, and tasks are ready."},
		"/domains/shop/limits":              {"shared/smtp", "Connections to the mail server"},
		"/domains/shop/limits/shared/smtp":  {w.Running, "mailer-1", "1 of 1"},
		"/domains/shop/limits/shared/none":  {"Limit shared/none is not in use now"},
		"/domains/shop/tasks?state=waiting": {w.Waiting},
		"/domains/shop/tasks/" + w.Running:  {"running", "ann@example.com", "mailer-1", "UTC"},
		"/domains/shop/tasks/" + w.Dead:     {"dead", "the card was declined", "Header order", "4711", "&lt;script&gt;"},
		"/domains/shop/tasks/" + w.Waiting:  {"Why it does not start", "DUE_LATER"},
		"/domains/shop/tasks/" + w.Limited:  {"LIMIT_FULL", `/domains/shop/limits/shared/smtp"`, `/domains/shop/tasks/` + w.Running},
		"/domains/shop/timers":              {"Tasks that are due in this time: 2", "report.build"},
		"/domains/shop/schedules":           {"nightly", "30 2 * * *", "Europe/Berlin"},
		"/domains/shop/schedules/nightly":   {"For the finance team", "report.build"},
		"/domains/shop/batches/import-1":    {"completed", "2 of 2 tasks are completed"},
		"/domains/shop/keys?only=blocked":   {"account/7", w.Blocked},
		"/domains/shop/workers":             {"mailer-1", "takes tasks"},
		"/domains/shop/dead":                {"card.charge", "Dead letters: 1."},
		"/domains/shop/dead/list?type=none": {"There is no such dead letter."},
		"/domains/shop/tasks?state=eaten":   {"INVALID_ARGUMENT", "/state"},
		"/domains/none":                     {"NOT_FOUND"},
		"/domains/shop/tasks/zzz":           {"NOT_FOUND"},
		"/domains/shop/tasks?cursor=junk":   {"INVALID_ARGUMENT"},
	} {
		_, body := w.Get(t, path)
		if path == "/cluster" && strings.Contains(body, "no owner") {
			t.Errorf("a partition has no owner:\n%s", body)
		}
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, body[strings.Index(body, "<main"):])
			}
		}
	}
}

// varies is what differs from run to run, with what stands for it.
var varies = []struct {
	match   *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`[0-9a-hjkmnp-tv-z]{26}`), "TASK"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`), "TIME"},
	{regexp.MustCompile(`nonce="[A-Z2-7]+"`), `nonce="NONCE"`},
	{regexp.MustCompile(`/assets/[0-9a-f]+/`), "/assets/VERSION/"},
	{regexp.MustCompile(`[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}`), "TRACE"},
}

// golden: these pages are as they were, word for word.
func golden(t *testing.T, w *consoletest.World) {
	for name, path := range map[string]string{
		"notfound": "/nowhere", "dead": "/domains/shop/dead", "batch": "/domains/shop/batches/import-1", "schedule": "/domains/shop/schedules/nightly", "task": "/domains/shop/tasks/" + w.Dead,
	} {
		_, body := w.Get(t, path)
		for _, v := range varies {
			body = v.match.ReplaceAllString(body, v.instead)
		}
		testkit.Golden(t, filepath.Join("testdata", name+".html"), []byte(body))
	}
}

// stream: a page that follows numbers gets new ones, and the stream ends with the request.
func stream(t *testing.T, w *consoletest.World) {
	for path, want := range map[string]string{
		"/": "Busiest domains", "/domains/shop": "Share of the cluster", "/domains/shop/tasklists/mail": "Polls that wait", "/domains/shop/limits/shared/smtp": "Slots in use",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+"/live"+path, nil)
		testkit.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		testkit.NoError(t, err)
		var read strings.Builder
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			read.WriteString(lines.Text() + "\n")
			if strings.Contains(read.String(), want) && strings.Contains(read.String(), "event: sample\ndata: [[") {
				break
			}
		}
		testkit.NoError(t, resp.Body.Close())
		if got := read.String(); resp.Header.Get("Content-Type") != "text/event-stream" || !strings.Contains(got, want) || !strings.Contains(got, "event: sample\ndata: [[") {
			t.Errorf("/live%s: %v\n%s", path, resp.Header, got)
		}
	}
}

// protection: other sites cannot use a browser, and no page runs what a tenant wrote.
func protection(t *testing.T, w *consoletest.World) {
	for _, c := range []struct {
		method, path, host, site string
		want                     int
	}{
		{http.MethodGet, "/", "", "", http.StatusOK},
		{http.MethodGet, "/", "localhost", "cross-site", http.StatusForbidden},
		{http.MethodGet, "/", "localhost", "link", http.StatusOK},
		{http.MethodGet, "/live/", "localhost", "link", http.StatusForbidden},
		{http.MethodGet, "/live/", "localhost", "same-site", http.StatusForbidden},
		{http.MethodGet, "/", "evil.example", "", http.StatusForbidden},
		{http.MethodGet, "/live/", "evil.example:8222", "", http.StatusForbidden},
		{http.MethodPost, "/domains", "", "cross-site", http.StatusForbidden},
		{http.MethodPost, "/domains", "", "same-origin", http.StatusNotFound},
		{http.MethodGet, "/domains/..%2f/tasks", "", "", http.StatusNotFound},
		{http.MethodGet, "/domains/a.b/tasks", "", "", http.StatusNotFound},
		{http.MethodGet, "/domains/%3E/tasks", "", "", http.StatusNotFound},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, w.URL+c.path, nil)
		testkit.NoError(t, err)
		if c.host != "" {
			req.Host = c.host
		}
		if c.site == "link" {
			c.site = "cross-site"
			req.Header.Set("Sec-Fetch-Mode", "navigate")
			req.Header.Set("Sec-Fetch-Dest", "document")
		}
		if c.site != "" {
			req.Header.Set("Sec-Fetch-Site", c.site)
			req.Header.Set("Origin", "https://evil.example")
		}
		resp, err := http.DefaultClient.Do(req)
		testkit.NoError(t, err)
		testkit.NoError(t, resp.Body.Close())
		policy := resp.Header.Get("Content-Security-Policy")
		if resp.StatusCode != c.want || !strings.Contains(policy, "default-src 'none'; script-src 'nonce-") || strings.Contains(policy, "unsafe") || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%+v: status %d, %v", c, resp.StatusCode, resp.Header)
		}
	}
}

// usersFile writes a file of users: ann may do everything, bob and olga see only shop, and olga changes tasks there.
func usersFile(t *testing.T) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	testkit.NoError(t, err)
	file := filepath.Join(t.TempDir(), "users.yaml")
	text := fmt.Sprintf("users:\n  - {name: ann, role: admin, domains: [\"*\"], password: %q}\n  - {name: bob, role: viewer, domains: [shop], password: %q}\n"+
		"  - {name: olga, role: operator, domains: [shop], password: %q}\n", hash, hash, hash)
	testkit.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// get asks for a page with a change of the request.
func get(t *testing.T, url string, change func(*http.Request)) int {
	t.Helper()
	status, _ := read(t, url, change)
	return status
}

// read returns a page as well.
func read(t *testing.T, url string, change func(*http.Request)) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	testkit.NoError(t, err)
	change(req)
	resp, err := http.DefaultClient.Do(req)
	testkit.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	testkit.NoError(t, errors.Join(err, resp.Body.Close()))
	return resp.StatusCode, string(text)
}

// I14: a user of one domain sees nothing of the cluster's sums.
func sums(t *testing.T, w *consoletest.World) {
	url := w.Console(t, console.Config{Users: usersFile(t)})
	as := func(user string) func(*http.Request) { return func(r *http.Request) { r.SetBasicAuth(user, "secret") } }
	testkit.Eventually(t, 30*time.Second, func() error {
		if _, page := read(t, url+"/", as("ann")); !strings.Contains(page, `data-chart="[[`) {
			return errors.New("ann's overview has no numbers yet")
		}
		return nil
	})
	_, page := read(t, url+"/", as("bob"))
	if !strings.Contains(page, `data-chart="[]"`) || strings.Contains(page, "All partitions answer") {
		t.Error("bob's overview has numbers of the cluster")
	}
	for user, want := range map[string]bool{"ann": true, "bob": false} {
		if _, page := read(t, url+"/domains/shop", as(user)); strings.Contains(page, "Share of the cluster") != want {
			t.Errorf("%s sees the share of the cluster: %v", user, !want)
		}
	}
}

func password(t *testing.T, w *consoletest.World) {
	url := w.Console(t, console.Config{Users: usersFile(t)})
	for _, c := range []struct {
		user, password, path string
		want                 int
	}{
		{"", "", "/", http.StatusUnauthorized},
		{"ann", "wrong", "/", http.StatusUnauthorized},
		{"eve", "secret", "/", http.StatusUnauthorized},
		{"ann", "secret", "/domains/bank/tasklists", http.StatusOK},
		{"bob", "secret", "/", http.StatusOK},
		{"bob", "secret", "/domains", http.StatusOK},
		{"bob", "secret", "/domains/shop/tasklists", http.StatusOK},
		{"bob", "secret", "/domains/bank/tasklists", http.StatusNotFound},
		{"bob", "secret", "/live/domains/bank", http.StatusNotFound},
		{"bob", "secret", "/cluster", http.StatusNotFound},
		{"bob", "secret", "/fairness", http.StatusNotFound},
		{"", "", "/live/domains/shop", http.StatusUnauthorized},
	} {
		got := get(t, url+c.path, func(r *http.Request) {
			if c.user != "" {
				r.SetBasicAuth(c.user, c.password)
			}
			r.Header.Set("X-Forwarded-User", "ann") // no proxy is trusted
			r.AddCookie(&http.Cookie{Name: "role", Value: "admin"})
		})
		if got != c.want {
			t.Errorf("%+v: status %d", c, got)
		}
	}
}

func proxy(t *testing.T, w *consoletest.World) {
	users := usersFile(t)
	secret := filepath.Join(t.TempDir(), "secret")
	testkit.NoError(t, os.WriteFile(secret, []byte("a secret of the proxy\n"), 0o600))
	trusted := w.Console(t, console.Config{Users: users, ProxyHeader: "X-Forwarded-User", ProxyFrom: []string{"127.0.0.0/8"}, ProxySecret: secret})
	elsewhere := w.Console(t, console.Config{Users: users, ProxyHeader: "X-Forwarded-User", ProxyFrom: []string{"10.0.0.1"}})
	as := func(names ...string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header["X-Forwarded-User"] = names
			r.Header.Set("Yardmaster-Proxy-Secret", "a secret of the proxy")
		}
	}
	testkit.Equal(t, "another program of this machine", get(t, trusted+"/", func(r *http.Request) { r.Header.Set("X-Forwarded-User", "ann") }), http.StatusForbidden)
	testkit.Equal(t, "ann", get(t, trusted+"/cluster", as("ann")), http.StatusOK)
	testkit.Equal(t, "bob", get(t, trusted+"/cluster", as("bob")), http.StatusNotFound)
	testkit.Equal(t, "a user without a role", get(t, trusted+"/", as("eve")), http.StatusForbidden)
	testkit.Equal(t, "no user", get(t, trusted+"/", as()), http.StatusForbidden)
	testkit.Equal(t, "two users", get(t, trusted+"/", as("bob", "ann")), http.StatusForbidden)
	testkit.Equal(t, "from another address", get(t, elsewhere+"/", as("ann")), http.StatusForbidden)
}

// bounds: with a backlog no page has more rows, or makes more calls.
func bounds(t *testing.T, w *consoletest.World) {
	for range 3 {
		many := make([]yard.Task, 1000)
		for i := range many {
			many[i] = yard.Task{Type: "sms.send", Tasklist: "idle", Payload: i}
		}
		testkit.NoError(t, testkit.Err(w.Client.SubmitMany(t.Context(), many)))
	}
	for _, path := range []string{"/", "/cluster", "/domains/shop", "/domains/shop/tasklists", "/domains/shop/tasklists/idle", "/domains/shop/tasks", "/domains/shop/tasks?state=queued"} {
		before := w.Calls()
		status, body := w.Get(t, path)
		if rows, calls := strings.Count(body, "<tr>"), w.Calls()-before; status != http.StatusOK || rows > 101 || calls > callsMax {
			t.Errorf("%s: status %d, %d rows, %d calls", path, status, rows, calls)
		}
	}
}

// TestConfigThatIsNotSafeIsRefused: nothing listens then.
func TestConfigThatIsNotSafeIsRefused(t *testing.T) {
	nats := console.OneLogin(natsrpc.DefaultConnConfig())
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "users.yaml")
		testkit.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	for want, cfg := range map[string]console.Config{
		"only on this machine": {Listen: "0.0.0.0:0", NATS: nats},
		"listen on :0":         {Listen: ":0", NATS: nats},
		"needs a login":        {Listen: "127.0.0.1:0"},
		"needs a file":         {Listen: "127.0.0.1:0", NATS: nats, ProxyHeader: "X-User"},
		"needs the addresses":  {Listen: "127.0.0.1:0", NATS: nats, Users: usersFile(t), ProxyHeader: "X-User"},
		"of a proxy needs the": {Listen: "127.0.0.1:0", NATS: nats, Users: usersFile(t), ProxySecret: write("a secret of the proxy")},
		"has to show a secret": {Listen: "127.0.0.1:0", NATS: nats, Users: usersFile(t), ProxyHeader: "X-User", ProxyFrom: []string{"0.0.0.0/0"}},
		"5 bytes":              {Listen: "127.0.0.1:0", NATS: nats, Users: usersFile(t), ProxyHeader: "X-User", ProxyFrom: []string{"10.0.0.1"}, ProxySecret: write("short")},
		"is empty":             {Listen: "127.0.0.1:0", NATS: nats, Users: usersFile(t), ProxyHeader: "X-User", ProxyFrom: []string{"10.0.0.1"}, ProxySecret: write("\n")},
		"address of a proxy":   {Listen: "127.0.0.1:0", NATS: nats, Users: usersFile(t), ProxyHeader: "X-User", ProxyFrom: []string{"proxy"}},
		"no such file":         {Listen: "127.0.0.1:0", NATS: nats, Users: "none.yaml"},
		"has 0 users":          {Listen: "127.0.0.1:0", NATS: nats, Users: write("users: []\n")},
		"field rights":         {Listen: "127.0.0.1:0", NATS: nats, Users: write("users: [{name: a, rights: all}]\n")},
		"want viewer":          {Listen: "127.0.0.1:0", NATS: nats, Users: write("users: [{name: a, role: root, domains: [a]}]\n")},
		"issuer is required":   {Listen: "127.0.0.1:0", NATS: nats, Users: write("provider: {client_id: a, url: \"https://c\", role_claim: groups, roles: [{value: a, role: admin, domains: [a]}]}\n")},
		"want https":           {Listen: "127.0.0.1:0", NATS: nats, Users: write("provider: {issuer: \"http://i.example\", client_id: a, url: \"https://c\", role_claim: groups, roles: [{value: a, role: admin, domains: [a]}]}\n")},
		"without a path":       {Listen: "127.0.0.1:0", NATS: nats, Users: write("provider: {issuer: \"https://i\", client_id: a, url: \"https://c/x\", role_claim: groups, roles: [{value: a, role: admin, domains: [a]}]}\n")},
		"roles are required":   {Listen: "127.0.0.1:0", NATS: nats, Users: write("provider: {issuer: \"https://i\", client_id: a, url: \"https://c\", role_claim: groups}\n")},
		"needs domains":        {Listen: "127.0.0.1:0", NATS: nats, Users: write("users: [{name: a, role: admin}]\n")},
		"bcrypt hash":          {Listen: "127.0.0.1:0", NATS: nats, Users: write("users: [{name: a, role: admin, domains: [a], password: secret}]\n")},
		"there twice":          {Listen: "127.0.0.1:0", NATS: nats, Users: write("users: [{name: a, role: admin, domains: [a]}, {name: a, role: viewer, domains: [b]}]\n")},
	} {
		refuses(t, cfg, want)
	}
}

// refuses fails unless a console refuses its configuration, and says why.
func refuses(t *testing.T, cfg console.Config, want string) {
	t.Helper()
	if _, err := console.Listen(cfg); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v", want, err)
	}
}
