// Command frontend runs the frontend service: it takes requests from any NATS client. Its
// settings are listed by --help.
package main

import (
	"os"

	"github.com/yardmaster-io/yardmaster/services/frontend"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// settings are the common ones and, beside them, the service's own.
type settings struct {
	process.Config
	Own
}

// Own is embedded under a name of its own, since both are called Config.
type Own = frontend.Config

func main() {
	process.TuneGC(process.GCPercent)
	def := settings{process.DefaultConfig(":8080"), frontend.DefaultConfig()}
	os.Exit(process.Main("frontend", def, func(e process.Env, s settings) (process.Service, error) {
		return frontend.New(frontend.Deps{Env: e, Config: s.Own})
	}))
}
