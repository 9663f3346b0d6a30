package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
)

// fallSilent has a worker taken for silent, rightly or not: it goes on, as one that was paused. Each owner of history hears of it when it will, or
// does not, and so does each owner of matching.
func (w *world) fallSilent() {
	m := w.match
	k := m.workers[w.dice.IntN(len(m.workers))]
	w.say(k.name, "falls silent")
	for _, sh := range m.shards {
		for _, p := range sh.living() {
			if p.owner == nil || w.dice.chance(200) {
				continue
			}
			p.do(m.dice.upTo(50*time.Millisecond), func() {
				p.owner.Put(func(in *matchingsim.Inputs) {
					in.Silent = append(in.Silent, matchingsim.SilentWorker{Domain: k.domain, ID: k.name})
				})
			})
		}
	}
	for range 1 + w.dice.IntN(4) {
		for _, p := range w.living() {
			p.do(w.dice.upTo(3*time.Second), func() { p.owner.Silent(historysim.WorkerKey{Domain: k.domain, ID: k.name}) })
		}
	}
}
