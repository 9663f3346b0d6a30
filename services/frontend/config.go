package frontend

import (
	"github.com/yardmaster-io/yardmaster/shared/settings"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gateway"
)

// Config of the frontend service.
type Config struct {
	Gateway gateway.Config `koanf:"gateway"`
}

// DefaultConfig is the defaults given at the fields.
func DefaultConfig() Config {
	return Config{Gateway: gateway.DefaultConfig()}
}

// Validate lists what is out of range.
func (c Config) Validate() []settings.Problem {
	problems := c.Gateway.Validate()
	for i := range problems {
		problems[i].Path = "gateway." + problems[i].Path
	}
	return problems
}
