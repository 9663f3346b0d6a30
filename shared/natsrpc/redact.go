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

// WithoutURL is an error of nats.Connect without what a malformed URL has in it: the parser's error quotes the
// URL, and a part of the password again as the port that it took it for.
func WithoutURL(err error) error {
	if errors.As(err, new(*url.Error)) {
		return errors.New("the URL is malformed: write what is special in a user or password as %XX, such as %25 for %")
	}
	return err
}
