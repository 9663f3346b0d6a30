// Command matching runs the matching service: it pairs ready tasks with waiting
// workers. Its settings are listed by --help.
package main

import (
	"os"

	"github.com/yardmaster-io/yardmaster/services/matching"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// settings are the common ones and, beside them, the service's own.
type settings struct {
	process.Config
	Own
}

// Own is embedded under a name of its own, since both are called Config.
type Own = matching.Config

func main() {
	process.TuneGC(process.GCPercent)
	def := settings{process.DefaultConfig(":8083"), matching.DefaultConfig()}
	os.Exit(process.Main("matching", def, func(e process.Env, s settings) (process.Service, error) {
		return matching.New(matching.Deps{Env: e, Config: s.Own})
	}))
}
