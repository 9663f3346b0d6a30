package console_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/console"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/consoletest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// idp is a provider of OpenID Connect that logs in every browser as the user of its claims.
type idp struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu sync.Mutex
	// claims are those of the user, over the standard ones. signer is another key than the published one; nil = none.
	claims map[string]any
	signer *rsa.PrivateKey
	codes  map[string]url.Values
	// waiting is how many logins wait until release is closed; nil = none waits.
	waiting int
	release chan struct{}
}

// newIDP starts one.
func newIDP(t *testing.T) *idp {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.NoError(t, err)
	p := &idp{key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		testkit.Check(t, json.NewEncoder(w).Encode(value))
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		n, e := base64.RawURLEncoding.EncodeToString(key.N.Bytes()), base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())
		answer(w, map[string]any{"keys": []any{map[string]string{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": n, "e": e}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q, code := r.URL.Query(), rand.Text()
		p.mu.Lock()
		p.codes[code] = q
		p.mu.Unlock()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusSeeOther)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		id, quoted, _ := r.BasicAuth()
		secret, err := url.QueryUnescape(quoted)
		testkit.Check(t, err)
		p.wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		q := p.codes[r.FormValue("code")]
		delete(p.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if id != "yard" || secret != "the secret" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			http.Error(w, `{"error": "invalid_grant"}`, http.StatusBadRequest)
			return
		}
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.token(t, q.Get("nonce"))})
	})
	return p
}

// wait lets a login wait if it is to.
func (p *idp) wait() {
	p.mu.Lock()
	release := p.release
	p.waiting++
	p.mu.Unlock()
	if release != nil {
		<-release
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
}

// token is an id token. Its caller has the lock.
func (p *idp) token(t *testing.T, nonce string) string {
	claims := map[string]any{"iss": p.URL, "aud": "yard", "sub": "17", "nonce": nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	maps.Copy(claims, p.claims)
	var parts []string
	for _, part := range []any{map[string]string{"alg": "RS256", "kid": "1"}, claims} {
		text, err := json.Marshal(part)
		testkit.Check(t, err)
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	key := p.key
	if p.signer != nil {
		key = p.signer
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, ".")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	testkit.Check(t, err)
	return strings.Join(append(parts, base64.RawURLEncoding.EncodeToString(signature)), ".")
}

// as has the provider log in a user with claims.
func (p *idp) as(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

// person is a browser with cookies that follows redirects.
func person(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	testkit.NoError(t, err)
	return &http.Client{Jar: jar}
}

// visit gets a page.
func visit(t *testing.T, c *http.Client, url string) (status int, at, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	testkit.NoError(t, err)
	resp, err := c.Do(req)
	testkit.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	testkit.NoError(t, errors.Join(err, resp.Body.Close()))
	return resp.StatusCode, resp.Request.URL.Path, string(text)
}

// provider: people log in at a provider, whose claims say what they may do.
func provider(t *testing.T, w *consoletest.World) {
	p := newIDP(t)
	url := consoleOf(t, w, p)
	p.as(map[string]any{"email": "ann@example.com", "groups": []string{"staff", "yard-admins", "shop-viewers"}})
	ann := person(t)
	status, at, body := visit(t, ann, url+"/domains/bank/tasklists")
	if status != http.StatusOK || at != "/domains/bank/tasklists" || !strings.Contains(body, "ann@example.com (admin)") || !strings.Contains(body, "Log out") {
		t.Errorf("ann is at %s: %d\n%s", at, status, body)
	}
	p.as(map[string]any{"email": "bob@example.com", "groups": "shop-viewers"})
	bob := person(t)
	for path, want := range map[string]int{"/domains/shop/tasklists": http.StatusOK, "/domains/bank/tasklists": http.StatusNotFound, "/cluster": http.StatusNotFound, "/domains/shop/dead/delete": http.StatusForbidden} {
		status, _, _ := visit(t, bob, url+path)
		testkit.Equal(t, "bob at "+path, status, want)
	}
	status, _, _ = visit(t, person(t), url+"/live/domains/shop")
	testkit.Equal(t, "a stream without a login", status, http.StatusUnauthorized)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/logout", nil)
	testkit.NoError(t, err)
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	resp, err := bob.Do(req)
	testkit.NoError(t, errors.Join(err, resp.Body.Close()))
	testkit.Equal(t, "a logout of another site", resp.StatusCode, http.StatusForbidden)
	kept := bob.Jar.Cookies(req.URL)
	req.Header.Del("Sec-Fetch-Site")
	resp, err = bob.Do(req)
	testkit.NoError(t, errors.Join(err, resp.Body.Close()))
	testkit.Equal(t, "the logout", resp.StatusCode, http.StatusOK)
	stolen := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err = http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/domains/shop", nil)
	testkit.NoError(t, err)
	for _, cookie := range kept {
		req.AddCookie(cookie)
	}
	resp, err = stolen.Do(req)
	testkit.NoError(t, errors.Join(err, resp.Body.Close()))
	testkit.Equal(t, "a session that has ended", resp.StatusCode, http.StatusSeeOther)
}

// consoleOf starts a console whose people log in at a provider.
func consoleOf(t *testing.T, w *consoletest.World, p *idp) (url string) {
	t.Helper()
	return w.Console(t, p.config(t))
}

// config is that of a console whose people log in at the provider.
func (p *idp) config(t *testing.T) console.Config {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	listen, dir := free.Addr().String(), t.TempDir()
	testkit.NoError(t, free.Close())
	secret, users := filepath.Join(dir, "secret"), filepath.Join(dir, "users.yaml")
	testkit.NoError(t, os.WriteFile(secret, []byte("the secret\n"), 0o600))
	text := fmt.Sprintf(`provider:
  issuer: %s
  client_id: yard
  client_secret_file: %s
  url: http://%s
  name_claim: email
  role_claim: groups
  roles:
    - {value: yard-admins, role: admin, domains: ["*"]}
    - {value: shop-operators, role: operator, domains: [shop]}
    - {value: shop-viewers, role: viewer, domains: [shop]}
`, p.URL, secret, listen)
	testkit.NoError(t, os.WriteFile(users, []byte(text), 0o600))
	return console.Config{Listen: listen, Users: users}
}

// providerAttacks: a login needs the answer of the provider to this browser, a valid token, and a role.
func providerAttacks(t *testing.T, w *consoletest.World) {
	p := newIDP(t)
	console := consoleOf(t, w, p)
	good := map[string]any{"email": "ann@example.com", "groups": "yard-admins"}
	with := func(name string, value any) map[string]any {
		claims := maps.Clone(good)
		claims[name] = value
		return claims
	}
	for name, claims := range map[string]map[string]any{
		"another nonce": with("nonce", "n"), "another audience": with("aud", "other"), "another issuer": with("iss", "https://evil.example"), "an old token": with("exp", time.Now().Add(-time.Hour).Unix()),
		"no role": with("groups", []string{"staff"}), "a role that is no text": with("groups", []any{1, map[string]any{}}), "no name": with("email", ""), "an address that is not verified": with("email_verified", false),
	} {
		p.as(claims)
		status, at, _ := visit(t, person(t), console+"/")
		testkit.Equal(t, name+" at "+at, status, http.StatusForbidden)
	}
	p.as(good)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.NoError(t, err)
	p.mu.Lock()
	p.signer = other
	p.mu.Unlock()
	status, _, _ := visit(t, person(t), console+"/")
	testkit.Equal(t, "a token of another signer", status, http.StatusForbidden)
	p.mu.Lock()
	p.signer = nil
	p.mu.Unlock()

	// Another browser gets the answer of a login that eve began, and eve's own one is changed or sent twice.
	eve := person(t)
	var answer string
	eve.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/login/callback" {
			answer = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	begin := func() {
		_, _, _ = visit(t, eve, console+"/login?to=//evil.example")
	}
	begin()
	status, _, _ = visit(t, person(t), answer)
	testkit.Equal(t, "the answer of another browser's login", status, http.StatusBadRequest)
	status, _, _ = visit(t, eve, strings.Replace(answer, "state=", "state=x", 1))
	testkit.Equal(t, "another state", status, http.StatusBadRequest)
	begin()
	eve.CheckRedirect = nil
	status, _, _ = visit(t, eve, console+"/login/callback?error=access_denied&state="+mustQuery(t, answer).Get("state"))
	testkit.Equal(t, "a refusal of the provider", status, http.StatusForbidden)
	status, _, _ = visit(t, eve, answer)
	testkit.Equal(t, "the answer behind a refusal", status, http.StatusBadRequest)

	fresh := person(t)
	status, at, _ := visit(t, fresh, console+"/login?to=//evil.example")
	testkit.Equal(t, "a login that leads elsewhere: "+at, status, http.StatusOK)
	testkit.Equal(t, "it leads to", at, "/")
	status, _, _ = visit(t, fresh, answer)
	testkit.Equal(t, "an answer that comes twice", status, http.StatusBadRequest)
	for _, cookie := range []string{"yard-session=x", "yard-login=x", "yard-session=; role=admin"} {
		testkit.Equal(t, cookie, get(t, console+"/live/", func(r *http.Request) { r.Header.Set("Cookie", cookie) }), http.StatusUnauthorized)
	}
	p.Close()
	status, _, _ = visit(t, person(t), consoleOf(t, w, p)+"/")
	testkit.Equal(t, "a provider that does not answer", status, http.StatusBadGateway)
}

func mustQuery(t *testing.T, text string) url.Values {
	t.Helper()
	to, err := url.Parse(text)
	testkit.NoError(t, err)
	return to.Query()
}
