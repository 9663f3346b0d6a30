package console_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/infra/yard/console"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// refusedWithin is how long a call waits that NATS drops.
const refusedWithin = time.Second

// The NATS users of a console.
var (
	observer  = permissions.User{Role: permissions.Observer, Name: "console"}
	operator  = permissions.User{Role: permissions.Operator, Name: "console"}
	viewer    = permissions.User{Role: permissions.Viewer, Domain: "shop", Name: "console"}
	shopAdmin = permissions.User{Role: permissions.Admin, Domain: "shop", Name: "console"}

	consoleUsers = []permissions.User{observer, operator, viewer, shopAdmin}
)

// sealedStack is an engine with NATS users, whose keys are in a folder, and the domain shop.
func sealedStack(t *testing.T, users []permissions.User) (s *stack.Stack, keys string) {
	t.Helper()
	keys = t.TempDir()
	testkit.NoError(t, render(keys, users))
	s, err := stack.Start(t.Context(), stack.Config{Auth: keys, Tables: stack.TablesMemory, DataDir: t.TempDir()})
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.Check(t, s.Close(context.WithoutCancel(t.Context()))) })
	nc, err := s.Connect("test")
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	admin, err := yard.NewAdmin(nc)
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(admin.PutDomain(t.Context(), yard.Domain{Name: "shop"})))
	return s, keys
}

// render writes the NATS users that there are to be.
func render(keys string, users []permissions.User) error {
	return testkit.Err(auth.Render(keys, auth.Plan{Partitioning: topology.Partitioning{History: 2, Matching: 2}, Users: users}))
}

// login is a NATS user in a file of logins.
func login(keys string, u permissions.User) string {
	return fmt.Sprintf("{nkey: %q, inbox_prefix: %s}", auth.SeedFile(keys, u), u.Inbox())
}

func viewerLogins(keys string) string {
	return fmt.Sprintf("viewer:\n  cluster: %s\n  domains:\n    shop: %s\n", login(keys, observer), login(keys, viewer))
}

// TestI14_AViewersLoginIsEnough: on a sealed cluster the pages need no more than the rights of a viewer and an observer, and NATS lets them do no more.
func TestI14_AViewersLoginIsEnough(t *testing.T) {
	s, keys := sealedStack(t, consoleUsers)
	logins, url := sealedConsole(t, s.URL, viewerLogins(keys), console.Config{})
	all := fmt.Sprintf("operator:\n  domains:\n    shop: %s\nadmin:\n  cluster: %s\n", login(keys, shopAdmin), login(keys, operator))
	_, full := sealedConsole(t, s.URL, viewerLogins(keys)+all, console.Config{})

	for path, want := range map[string]int{
		"/": http.StatusOK, "/domains": http.StatusOK, "/fairness": http.StatusOK, "/cluster": http.StatusOK, "/domains/shop": http.StatusOK, "/domains/shop/tasklists": http.StatusOK,
		"/domains/shop/tasklists/mail": http.StatusOK, "/domains/shop/limits": http.StatusOK, "/domains/shop/limits/domain": http.StatusOK, "/domains/shop/tasks": http.StatusOK,
		"/domains/shop/timers": http.StatusOK, "/domains/shop/schedules": http.StatusOK, "/domains/shop/batches": http.StatusOK, "/domains/shop/keys": http.StatusOK,
		"/domains/shop/workers": http.StatusOK, "/domains/shop/dead": http.StatusOK, "/domains/shop/dead/list": http.StatusOK,
		"/domains/bank/tasks":                http.StatusForbidden, // the console has no login for it
		"/domains/shop/tasklists/mail/pause": http.StatusForbidden, // nor one that changes anything
		"/domains/shop/pause":                http.StatusForbidden,
	} {
		if got := get(t, url+path, func(*http.Request) {}); got != want {
			t.Errorf("%s: status %d", path, got)
		}
	}

	this := browser{url: full}
	says(t, this.confirm(t, "/domains/shop/tasklists/mail/pause"), "The tasklist is paused.")
	says(t, this.confirm(t, "/domains/shop/pause"), "The domain is paused.")

	eve, err := logins.Connect("viewer/shop")
	testkit.NoError(t, err)
	t.Cleanup(eve.Close)
	client, err := yard.NewClient(eve, "shop", yard.WithTimeout(refusedWithin))
	testkit.NoError(t, err)
	_, err = client.Submit(t.Context(), yard.Task{Type: "x", Tasklist: "mail"})
	if code := fault.CodeOf(err); code != fault.Unavailable && code != fault.Unknown {
		t.Errorf("a viewer submits a task: %v", err)
	}
}

// sealedConsole starts a console with a file of logins to NATS.
func sealedConsole(t *testing.T, nats, text string, cfg console.Config) (logins console.Logins, url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "logins.yaml")
	testkit.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	logins, err := console.ReadLogins(file, natsrpc.ConnConfig{URL: nats})
	testkit.NoError(t, err)
	cfg.Listen, cfg.NATS = cmp.Or(cfg.Listen, "127.0.0.1:0"), logins
	c, err := console.Listen(cfg)
	testkit.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() { stop(); testkit.Check(t, <-ended) })
	return logins, c.URL()
}
