package natsrpc

import (
	"errors"
	"net/url"
	"strings"
)

// redact hides the passwords and tokens of a comma list of URLs, for logs.
func redact(list string) string {
	urls := strings.Split(list, ",")
	for i, s := range urls {
		s = strings.TrimSpace(s)
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		u, err := url.Parse(s)
		switch {
		case err != nil || u.User == nil && strings.Contains(s, "@"): // a password with a slash
			s = "(not a URL)"
		case u.User != nil:
			u.User = url.User("xxxxx")
			s = u.String()
		}
		urls[i] = s
	}
	return strings.Join(urls, ",")
}

// unquoted is err, but for that of a URL that cannot be read, which quotes it with its password.
func unquoted(err error) error {
	if errors.As(err, new(*url.Error)) {
		return errors.New("it is no URL; escape what is special in a password, such as %2F for a slash")
	}
	return err
}
