package frontend

import (
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/settings"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gateway"
)

// Config of the frontend service.
type Config struct {
	Gateway gateway.Config `koanf:"gateway"`
	// InboxPrefixes are the subjects below which askers may have their answers, each
	// with its last dot. Default _INBOX. only. A request with another reply subject is
	// dropped: its answer would be published with the engine's rights, wherever the
	// asker wants. Too narrow shuts out clients with an inbox prefix of their own.
	InboxPrefixes []string `koanf:"inbox_prefixes" usage:"reply subjects of requests must begin with one of these"`
}

// DefaultConfig is the defaults given at the fields.
func DefaultConfig() Config {
	return Config{Gateway: gateway.DefaultConfig(), InboxPrefixes: []string{topology.InboxPrefix}}
}

// Validate lists what is out of range.
func (c Config) Validate() []settings.Problem {
	problems := c.Gateway.Validate()
	for i := range problems {
		problems[i].Path = "gateway." + problems[i].Path
	}
	if len(c.InboxPrefixes) == 0 {
		problems = append(problems, settings.Problem{Path: "inbox_prefixes", What: "must name one prefix at least, such as " + topology.InboxPrefix})
	}
	for _, prefix := range c.InboxPrefixes {
		if err := topology.CheckInboxPrefix(prefix); err != nil {
			problems = append(problems, settings.Problem{Path: "inbox_prefixes", What: err.Error()})
		}
	}
	return problems
}
