// Command timer runs the timer service: it keeps the tasks that wait and fires them. Its
// settings are listed by --help.
package main

import (
	"os"

	"github.com/yardmaster-io/yardmaster/services/timer"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// settings are the common ones and, beside them, the service's own.
type settings struct {
	process.Config
	Own
}

// Own is embedded under a name of its own, since both are called Config.
type Own = timer.Config

// gcPercent is GOGC. Most of the memory has no pointers, so a collection is quick: 11 ms of CPU with 140 MB in use.
const gcPercent = 25

func main() {
	process.TuneGC(gcPercent)
	def := settings{process.DefaultConfig(":8082"), timer.DefaultConfig()}
	os.Exit(process.Main("timer", def, func(e process.Env, s settings) (process.Service, error) {
		return timer.New(timer.Deps{Env: e, Config: s.Own})
	}))
}
