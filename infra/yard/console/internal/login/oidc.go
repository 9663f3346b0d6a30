package login

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Paths of logins at a provider.
const (
	LoginPath    = "/login"
	CallbackPath = "/login/callback"
	LogoutPath   = "/logout"
)

// Limits of logins at a provider.
const (
	// flowLasts is how long a person has for the pages of the provider, providerTimeout how long an answer of it may take.
	flowLasts, providerTimeout = 10 * time.Minute, 10 * time.Second
	// exchangesMax is how many logins ask the provider at once, exchangesOfAddress how many from one address; more are refused, and try again after exchangeWait.
	exchangesMax, exchangesOfAddress, exchangeWait = 64, 8, 2 * time.Second
	// targetMax is how long the path may be to which a login leads back.
	targetMax = 1024
)

// OIDC lets in the users of a provider by the code flow of OpenID Connect with PKCE, and remembers them in a session.
type OIDC struct {
	cfg      ProviderConfig
	secret   string
	proxies  Proxies
	sessions *sessions
	// key signs the cookie of a login that is under way.
	key    [sha256.Size]byte
	client *http.Client

	count sync.Mutex
	// exchanges is how many logins of an address ask the provider, all how many of all addresses.
	exchanges map[string]int
	all       int

	mu sync.Mutex
	// provider is known from its first answer on.
	provider *oidc.Provider
}

// NewOIDC is a login at a provider, perhaps behind proxies. Secret is that of the console there. The provider is asked when the first person logs in.
func NewOIDC(cfg ProviderConfig, secret string, proxies Proxies) *OIDC {
	o := &OIDC{cfg: cfg, secret: secret, proxies: proxies, sessions: newSessions(cfg.session()), exchanges: map[string]int{}, client: &http.Client{Timeout: providerTimeout}}
	_, _ = rand.Read(o.key[:]) // it never fails
	return o
}

// flow is a login that is under way, as its cookie says.
type flow struct {
	State, Nonce, Verifier, Target string
	// Until is when it is too late, Unix seconds.
	Until int64
}

// Identify implements Way.
func (o *OIDC) Identify(r *http.Request) (Identity, error) {
	if cookie, err := r.Cookie(o.cookieName(sessionCookie)); err == nil {
		if who, ok := o.sessions.who(cookie.Value, time.Now()); ok {
			return who, nil
		}
	}
	return Identity{}, &Refused{Status: http.StatusUnauthorized, Login: LoginPath + "?" + url.Values{"to": {r.URL.RequestURI()}}.Encode(), Reason: "log in first"}
}

// Routes are the pages of a login, by their patterns.
func (o *OIDC) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"GET " + LoginPath: o.page(o.limited(o.start)), "GET " + CallbackPath: o.page(o.limited(o.finish)), "POST " + LogoutPath: o.page(o.logout),
	}
}

// page answers with the error of a page, for people.
func (o *OIDC) page(show func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := show(w, r)
		if err == nil {
			return
		}
		refused := &Refused{Status: http.StatusBadGateway, Reason: "the identity provider cannot be asked: " + err.Error()}
		errors.As(err, &refused)
		refused.Write(w)
	})
}

// limited refuses a page if too many logins ask the provider already, of all addresses or of one.
func (o *OIDC) limited(show func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		address := o.proxies.sender(r)
		if !o.enter(address) {
			return &Refused{Status: http.StatusTooManyRequests, RetryAfter: exchangeWait, Reason: "too many logins at once: try again"}
		}
		defer o.leave(address)
		return show(w, r)
	}
}

func (o *OIDC) enter(address string) bool {
	o.count.Lock()
	defer o.count.Unlock()
	if o.all >= exchangesMax || o.exchanges[address] >= exchangesOfAddress {
		return false
	}
	o.all++
	o.exchanges[address]++
	return true
}

func (o *OIDC) leave(address string) {
	o.count.Lock()
	defer o.count.Unlock()
	o.all--
	if o.exchanges[address]--; o.exchanges[address] == 0 {
		delete(o.exchanges, address)
	}
}

// start leads the browser to the provider.
func (o *OIDC) start(w http.ResponseWriter, r *http.Request) error {
	_, config, err := o.ask(r.Context())
	if err != nil {
		return err
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Target: ownPath(r.URL.Query().Get("to")), Until: time.Now().Add(flowLasts).Unix()}
	o.set(w, flowCookie, o.sign(f), flowLasts)
	http.Redirect(w, r, config.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), http.StatusSeeOther)
	return nil
}

// ownPath is a path of the console, or "/": a login never leads to another site.
func ownPath(target string) string {
	to, err := url.Parse(target)
	if err != nil || len(target) > targetMax || to.Scheme != "" || to.Host != "" || to.User != nil || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") ||
		strings.ContainsAny(target, "\\\r\n\t") || strings.HasPrefix(to.Path, LoginPath) {
		return "/"
	}
	return target
}

// finish takes in the answer of the provider, and begins a session.
func (o *OIDC) finish(w http.ResponseWriter, r *http.Request) error {
	f, err := o.flow(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(f.State)) != 1 {
		return &Refused{Status: http.StatusBadRequest, Reason: "this answer is of another login: log in again"}
	}
	o.set(w, flowCookie, "", -1) // one answer for each login
	if problem := query.Get("error"); problem != "" {
		return &Refused{Status: http.StatusForbidden, Reason: fmt.Sprintf("the identity provider refuses the login: %.100q", problem)}
	}
	who, err := o.exchange(r.Context(), query.Get("code"), f)
	if err != nil {
		return err
	}
	o.set(w, sessionCookie, o.sessions.begin(who, time.Now()), o.sessions.lasts)
	http.Redirect(w, r, f.Target, http.StatusSeeOther)
	return nil
}

// exchange is the user of a code.
func (o *OIDC) exchange(ctx context.Context, code string, f flow) (Identity, error) {
	provider, config, err := o.ask(ctx)
	if err != nil {
		return Identity{}, err
	}
	refused := func(format string, args ...any) (Identity, error) {
		return Identity{}, &Refused{Status: http.StatusForbidden, Reason: fmt.Sprintf(format, args...)}
	}
	token, err := config.Exchange(oidc.ClientContext(ctx, o.client), code, oauth2.VerifierOption(f.Verifier))
	var answer *oauth2.RetrieveError
	switch {
	case errors.As(err, &answer):
		return refused("the identity provider does not take the code: %.100q", answer.ErrorCode)
	case err != nil:
		return Identity{}, err
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := provider.Verifier(&oidc.Config{ClientID: o.cfg.ClientID}).Verify(ctx, raw)
	if err != nil {
		return refused("the identity provider sent no valid id token: %v", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1 {
		return refused("the id token is of another login: log in again")
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return refused("the claims of the id token cannot be read: %v", err)
	}
	who, err := o.cfg.identity(claims)
	if err != nil {
		return refused("%v", err)
	}
	return who, nil
}

// End implements Ending.
func (o *OIDC) End(r *http.Request) {
	if cookie, err := r.Cookie(o.cookieName(sessionCookie)); err == nil {
		o.sessions.end(cookie.Value)
	}
}

// logout ends the session. A provider may log the person in again without a question.
func (o *OIDC) logout(w http.ResponseWriter, r *http.Request) error {
	o.End(r)
	o.set(w, sessionCookie, "", -1)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := fmt.Fprintln(w, "You are logged out of the console.")
	return err
}

// ask returns the provider, and how to talk to it. It is asked for that until it has answered once.
func (o *OIDC) ask(ctx context.Context) (*oidc.Provider, *oauth2.Config, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.provider == nil {
		provider, err := oidc.NewProvider(oidc.ClientContext(ctx, o.client), o.cfg.Issuer)
		if err != nil {
			return nil, nil, err
		}
		o.provider = provider
	}
	return o.provider, &oauth2.Config{
		ClientID: o.cfg.ClientID, ClientSecret: o.secret, Endpoint: o.provider.Endpoint(), RedirectURL: o.cfg.URL + CallbackPath,
		Scopes: append([]string{oidc.ScopeOpenID}, o.cfg.Scopes...),
	}, nil
}

// Cookies. Of a console with TLS they have a prefix, so that no other host of the domain can set them.
const (
	flowCookie    = "yard-login"
	sessionCookie = "yard-session"
)

func (o *OIDC) secure() bool { return strings.HasPrefix(o.cfg.URL, "https://") }

func (o *OIDC) cookieName(name string) string {
	if o.secure() {
		return "__Host-" + name
	}
	return name
}

// set sets a cookie, which no script and no form of another site gets; below 0 it is deleted.
func (o *OIDC) set(w http.ResponseWriter, name, value string, lasts time.Duration) {
	age := int(lasts.Seconds())
	if lasts < 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{Name: o.cookieName(name), Value: value, Path: "/", MaxAge: age, Secure: o.secure(), HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// sign is a login as its cookie has it.
func (o *OIDC) sign(f flow) string {
	text, _ := json.Marshal(f) // texts and a number: it never fails
	return base64.RawURLEncoding.EncodeToString(append(o.mac(text), text...))
}

func (o *OIDC) mac(text []byte) []byte {
	mac := hmac.New(sha256.New, o.key[:])
	_, _ = mac.Write(text) // it never fails
	return mac.Sum(nil)
}

// flow is the login of the browser that is under way.
func (o *OIDC) flow(r *http.Request) (f flow, err error) {
	refused := &Refused{Status: http.StatusBadRequest, Reason: "this browser has no login under way, or was too slow: open the console again"}
	cookie, err := r.Cookie(o.cookieName(flowCookie))
	if err != nil {
		return f, refused
	}
	signed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || len(signed) < sha256.Size || !hmac.Equal(signed[:sha256.Size], o.mac(signed[sha256.Size:])) {
		return f, refused
	}
	if err := json.Unmarshal(signed[sha256.Size:], &f); err != nil || time.Now().Unix() > f.Until {
		return f, refused
	}
	return f, nil
}
