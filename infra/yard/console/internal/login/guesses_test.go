package login_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// passwords is a login of ann and bob by password.
func passwords(t *testing.T) *login.Password {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	testkit.NoError(t, err)
	file := filepath.Join(t.TempDir(), "users.yaml")
	text := fmt.Sprintf("users:\n  - {name: ann, role: admin, domains: [\"*\"], password: %q}\n  - {name: bob, role: viewer, domains: [shop], password: %q}\n", hash, hash)
	testkit.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	users, _, err := login.ReadUsers(file)
	testkit.NoError(t, err)
	proxies, err := login.NewProxies([]string{"203.0.113.0/24"}, "")
	testkit.NoError(t, err)
	return login.NewPassword(users, proxies)
}

// try logs in, and returns the status and how long to wait.
func try(p *login.Password, name, password, from string, forwarded ...string) (status int, wait time.Duration) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = from
	r.Header["X-Forwarded-For"] = forwarded
	r.SetBasicAuth(name, password)
	_, err := p.Identify(r)
	var refused *login.Refused
	if errors.As(err, &refused) {
		return refused.Status, refused.RetryAfter
	}
	return http.StatusOK, 0
}

// TestGuessesForANameAreSlowed: from any number of addresses. The user who has logged in before is let in, and so are others.
func TestGuessesForANameAreSlowed(t *testing.T) {
	p := passwords(t)
	status, _ := try(p, "ann", "secret", "192.0.2.1:1")
	testkit.Equal(t, "ann", status, http.StatusOK)
	checked := 0
	for i := range 50 {
		status, wait := try(p, "ann", fmt.Sprint("guess", i), fmt.Sprintf("198.51.100.%d:1", i))
		switch status {
		case http.StatusUnauthorized:
			checked++
		case http.StatusTooManyRequests:
			if wait <= 0 || wait > 10*time.Second {
				t.Errorf("wait for %v", wait)
			}
		default:
			t.Errorf("guess %d: status %d", i, status)
		}
	}
	testkit.Equal(t, "guesses that were checked", checked, 10)
	for name, want := range map[string]int{"ann": http.StatusOK, "bob": http.StatusOK} {
		status, _ := try(p, name, "secret", "192.0.2.2:1")
		testkit.Equal(t, name, status, want)
	}
}

// TestGuessesFromAnAddressAreSlowed: whatever names they try, also those that do not exist. An address of IPv6 is its network.
func TestGuessesFromAnAddressAreSlowed(t *testing.T) {
	for _, from := range []string{"192.0.2.1:%d", "[2001:db8:0:1::%d]:1"} {
		p, checked := passwords(t), 0
		for i := range 100 {
			if status, _ := try(p, fmt.Sprint("user", i), "guess", fmt.Sprintf(from, i+1)); status == http.StatusUnauthorized {
				checked++
			}
		}
		testkit.Equal(t, "guesses that were checked from "+from, checked, 30)
		status, _ := try(p, "bob", "secret", "192.0.2.77:1")
		testkit.Equal(t, "bob from elsewhere", status, http.StatusOK)
	}
}

// TestGuessesBehindAProxyCountForTheirSender: the header counts only from a proxy that is trusted, and only the last address that is none of a proxy.
func TestGuessesBehindAProxyCountForTheirSender(t *testing.T) {
	for name, c := range map[string]struct {
		from, forwarded string
		checked         int
	}{
		"one sender":                        {"203.0.113.1:1", "198.51.100.1", 30},
		"one sender that invents addresses": {"203.0.113.1:1", "192.0.2.%d, 198.51.100.1", 30},
		"two proxies":                       {"203.0.113.1:1", "192.0.2.%d, 198.51.100.1, 203.0.113.2", 30},
		"many senders":                      {"203.0.113.1:1", "192.0.2.%d", 100},
		"one sender with ports":             {"203.0.113.1:1", "198.51.100.1:40%d", 30},
		"many senders with ports":           {"203.0.113.1:1", "192.0.2.%d:4711", 100},
		"many senders of IPv6 with ports":   {"203.0.113.1:1", "[2001:db8:0:%d::1]:4711", 100},
		"two proxies with ports":            {"203.0.113.1:1", "192.0.2.%d, 198.51.100.1:4711, 203.0.113.2:4712", 30},
		"no proxy":                          {"198.51.100.1:1", "192.0.2.%d", 30},
		"an address that is none":           {"203.0.113.1:1", "192.0.2.%d, junk", 30},
	} {
		p, checked := passwords(t), 0
		for i := range 100 {
			forwarded := c.forwarded
			if strings.Contains(forwarded, "%d") {
				forwarded = fmt.Sprintf(forwarded, i)
			}
			if status, _ := try(p, fmt.Sprint("user", i), "guess", c.from, forwarded); status == http.StatusUnauthorized {
				checked++
			}
		}
		testkit.Equal(t, "guesses that were checked of "+name, checked, c.checked)
	}
}
