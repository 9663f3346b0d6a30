package login

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// ProviderConfig is the section provider of a file of users: who logs people in, and what the claims about them mean.
type ProviderConfig struct {
	// Issuer is the URL of the provider, ClientID names the console there. Required.
	Issuer   string
	ClientID string `yaml:"client_id"`
	// ClientSecretFile is a file with the secret of the console there. Default: it has none.
	ClientSecretFile string `yaml:"client_secret_file"`
	// URL is that of the console, as browsers see it, without a path. The provider sends them back to /login/callback below it. Required.
	URL string
	// Scopes are asked for beside openid. Default: profile and email.
	Scopes []string
	// NameClaim is the claim with the name of a user. Default: sub.
	NameClaim string `yaml:"name_claim"`
	// RoleClaim is the claim whose values mean roles: a text, or a list of them. Required.
	RoleClaim string `yaml:"role_claim"`
	// Roles are the meanings. The first one counts whose value a user has. Required.
	Roles []ClaimRole
	// Session is how long a session lasts, a minute to 7 days. Default: 8h.
	Session time.Duration
}

// ClaimRole is the role, and the domains, of users with a value of the claim.
type ClaimRole struct {
	Value, Role string
	Domains     []string
}

// Limits of a session.
const (
	sessionDefault                  = 8 * time.Hour
	sessionShortest, sessionLongest = time.Minute, 7 * 24 * time.Hour
)

func (c *ProviderConfig) session() time.Duration { return cmp.Or(c.Session, sessionDefault) }

// check fills in defaults, and returns what is wrong.
func (c *ProviderConfig) check() error {
	c.NameClaim = cmp.Or(c.NameClaim, "sub")
	if c.Scopes == nil {
		c.Scopes = []string{"profile", "email"}
	}
	for name, value := range map[string]string{"issuer": c.Issuer, "client_id": c.ClientID, "url": c.URL, "role_claim": c.RoleClaim} {
		if value == "" {
			return fmt.Errorf("provider: %s is required", name)
		}
	}
	for name, value := range map[string]string{"issuer": c.Issuer, "url": c.URL} {
		if err := checkURL(value); err != nil {
			return fmt.Errorf("provider: %s %q: %w", name, value, err)
		}
	}
	if to, _ := url.Parse(c.URL); to.Path != "" {
		return fmt.Errorf("provider: url %q: want it without a path", c.URL)
	}
	if s := c.session(); s < sessionShortest || s > sessionLongest {
		return fmt.Errorf("provider: session %s: want %s to %s", s, sessionShortest, sessionLongest)
	}
	if len(c.Roles) == 0 {
		return errors.New("provider: roles are required")
	}
	for _, one := range c.Roles {
		if one.Value == "" {
			return errors.New("provider: a role needs a value of the claim")
		}
		if _, err := ParseRole(one.Role); err != nil {
			return fmt.Errorf("provider: value %q: %w", one.Value, err)
		}
		if err := checkDomains(one.Domains); err != nil {
			return fmt.Errorf("provider: value %q: %w", one.Value, err)
		}
	}
	return nil
}

// checkURL refuses a URL whose answers somebody between could change.
func checkURL(text string) error {
	to, err := url.Parse(text)
	if err != nil || to.Host == "" || to.RawQuery != "" || to.Fragment != "" || to.User != nil {
		return errors.New("want one such as https://id.example.com")
	}
	host := to.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(host)
	local := host == "localhost" || err == nil && ip.IsLoopback()
	if to.Scheme != "https" && (to.Scheme != "http" || !local) {
		return errors.New("want https, unless it is on this machine")
	}
	return nil
}

// checkDomains is what is wrong with the domains of a user.
func checkDomains(all []string) error {
	if len(all) == 0 {
		return fmt.Errorf("a user needs domains; %q is all", AllDomains)
	}
	for _, domain := range all {
		if err := ids.CheckName(domain); err != nil && domain != AllDomains {
			return fmt.Errorf("domain %q %w", domain, err)
		}
	}
	return nil
}

// identity is the user that claims are about.
func (c *ProviderConfig) identity(claims map[string]any) (Identity, error) {
	name, _ := claims[c.NameClaim].(string)
	if name == "" {
		return Identity{}, fmt.Errorf("the id token has no claim %s, which is the name of the user", c.NameClaim)
	}
	if verified, ok := claims["email_verified"].(bool); c.NameClaim == "email" && ok && !verified {
		return Identity{}, fmt.Errorf("the address %s is not verified", name)
	}
	values := valuesOf(claims[c.RoleClaim])
	for _, one := range c.Roles {
		if slices.Contains(values, one.Value) {
			role, err := ParseRole(one.Role)
			return Identity{Name: name, Role: role, Domains: one.Domains, Session: true}, err
		}
	}
	return Identity{}, fmt.Errorf("user %s has no role in the console", strings.ToValidUTF8(name[:min(len(name), 100)], ""))
}

// valuesOf are the texts of a claim.
func valuesOf(claim any) (values []string) {
	switch claim := claim.(type) {
	case string:
		return []string{claim}
	case []any:
		for _, one := range claim {
			if text, ok := one.(string); ok {
				values = append(values, text)
			}
		}
	}
	return values
}
