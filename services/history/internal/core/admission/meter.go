package admission

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// Meter takes tasks that the reader of a lane or a queue has brought in off the budget of their domain, and returns how many are over it. A domain without
// budget is split off its lane, so that its next ones come in with the low class. Tasks that are not due count when they are.
func (g *Gate) Meter(reader Queue, domain string, tasks int) (over int) {
	if reader.Lane == ids.LaneLater {
		return 0
	}
	over, none := g.take(domain, tasks)
	if !none || reader.Place != "" {
		return over
	}
	if at := (Queue{reader.Lane, ids.PlaceOf(domain, "")}); g.queues[at] == nil && g.maySplit() {
		g.split(at)
	}
	return over
}
