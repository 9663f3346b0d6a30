package partition

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
)

// endSilent has the attempts end of workers that fell silent.
func (o *Owner) endSilent() {
	fallen := o.Workers.Fallen()
	if len(fallen) == 0 {
		return
	}
	in := replica.Silent{Workers: make([]dispatch.WorkerKey, len(fallen))}
	for i, k := range fallen {
		in.Workers[i] = dispatch.WorkerKey(k)
	}
	o.step(in)
}

// expectWorkers ends a takeover: a worker that gave signs of life to an owner before, and gives none to this process,
// falls silent here. One that did so during the takeover is forgotten soon, so its attempts end first.
func expectWorkers(o *Owner) {
	o.endSilent()
	for w, every := range o.core.GaveSigns() {
		o.Workers.Expect(w.Domain, w.ID, time.Duration(every)*time.Millisecond)
	}
}
