// Command history runs the history service: it owns the life of tasks. Its
// settings are listed by --help.
package main

import (
	"os"

	"github.com/yardmaster-io/yardmaster/services/history"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// settings are the common ones and, beside them, the service's own.
type settings struct {
	process.Config
	Own
}

// Own is embedded under a name of its own, since both are called Config.
type Own = history.Config

func main() {
	process.TuneGC(process.GCPercent)
	def := settings{process.DefaultConfig(":8081"), history.DefaultConfig()}
	os.Exit(process.Main("history", def, func(e process.Env, s settings) (process.Service, error) {
		return history.New(history.Deps{Env: e, Config: s.Own})
	}))
}
