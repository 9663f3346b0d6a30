package natsrpc

import (
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
		case err != nil:
			s = "(not a URL)"
		case u.User != nil:
			u.User = url.User("xxxxx")
			s = u.String()
		}
		urls[i] = s
	}
	return strings.Join(urls, ",")
}
