package console_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// revokedWithin bounds the wait for the end of a session.
const revokedWithin = 30 * time.Second

// TestI14_ASessionEndsWithItsNATSUser: the stream of a page ends by itself, and the next page needs a login again. The sessions of other roles go on.
func TestI14_ASessionEndsWithItsNATSUser(t *testing.T) {
	s, keys := sealedStack(t, consoleUsers)
	p := newIDP(t)
	logins := viewerLogins(keys) + fmt.Sprintf("operator:\n  domains:\n    shop: %s\n", login(keys, shopAdmin))
	_, console := sealedConsole(t, s.URL, logins, p.config(t))
	p.as(map[string]any{"email": "bob@example.com", "groups": "shop-viewers"})
	bob := person(t)
	opens(t, bob, console+"/domains/shop/tasklists/mail")
	p.as(map[string]any{"email": "olga@example.com", "groups": "shop-operators"})
	olga := person(t)
	opens(t, olga, console+"/domains/shop/tasklists/mail/pause")
	bobs, olgas := follow(t, bob, console), follow(t, olga, console)

	revoke(t, s, keys, shopAdmin)
	ends(t, "olga", olgas)
	sessionHasEnded(t, olga, console)
	opens(t, bob, console+"/domains/shop/tasklists/mail")

	revoke(t, s, keys, viewer, shopAdmin)
	ends(t, "bob", bobs)
	sessionHasEnded(t, bob, console)
	status, _, _ := visit(t, bob, console+"/domains/shop/tasklists/mail")
	testkit.Equal(t, "bob's page behind another login", status, http.StatusUnauthorized)

	revoke(t, s, keys)
	testkit.Eventually(t, revokedWithin, func() error {
		if status, _, _ := visit(t, bob, console+"/domains/shop/tasklists/mail"); status != http.StatusOK {
			return fmt.Errorf("status %d with a NATS user that is there again", status)
		}
		return nil
	})
}

// opens fails unless a person gets a page.
func opens(t *testing.T, who *http.Client, url string) {
	t.Helper()
	status, _, body := visit(t, who, url)
	if status != http.StatusOK {
		t.Fatalf("%s: status %d\n%s", url, status, body)
	}
}

// follow opens the stream of a page.
func follow(t *testing.T, who *http.Client, console string) io.ReadCloser {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), revokedWithin)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, console+"/live/domains/shop/tasklists/mail", nil)
	testkit.NoError(t, err)
	resp, err := who.Do(req)
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() }) // the test has read it
	testkit.Equal(t, "the status of a stream", resp.StatusCode, http.StatusOK)
	return resp.Body
}

// ends fails unless the console ends a stream.
func ends(t *testing.T, who string, stream io.Reader) {
	t.Helper()
	if _, err := io.Copy(io.Discard, stream); err != nil {
		t.Errorf("the stream of %s goes on: %v", who, err)
	}
}

// revoke has NATS know the users of the console but these.
func revoke(t *testing.T, s *stack.Stack, keys string, users ...permissions.User) {
	t.Helper()
	left := slices.DeleteFunc(slices.Clone(consoleUsers), func(u permissions.User) bool { return slices.Contains(users, u) })
	testkit.NoError(t, render(keys, left))
	testkit.NoError(t, s.Reload())
}

// sessionHasEnded fails unless a page leads to a login.
func sessionHasEnded(t *testing.T, who *http.Client, console string) {
	t.Helper()
	once := *who
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	status, _, _ := visit(t, &once, console+"/domains/shop/tasklists/mail")
	testkit.Equal(t, "the status of a page without a session", status, http.StatusSeeOther)
}
