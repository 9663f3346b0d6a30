package replica

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// silent proposes that the attempts of workers end that fell silent. The log decides: it refuses that for an attempt that had a
// heartbeat meanwhile, and what it takes too late. Signs of life do not go through the log, so one that stands still is no reason to wait.
func (r *Replica) silent(all []dispatch.WorkerKey, now Now) {
	if r.replay != nil || len(all) == 0 {
		return
	}
	for _, t := range r.AttemptsOf(all) {
		e := r.tasks[t.ID]
		r.propose(e, Proposal{
			Kind: taskstate.Expired, Undelivered: e.BurnsNothing(), NotAfter: now.MS + standsStillMS, SilentLease: e.WakeAt(),
		})
	}
}
