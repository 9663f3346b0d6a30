package polls

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// DrainedRest is how long the poll of a drained worker is held. It learns of it by the answer, and does not ask more often.
const DrainedRest = 2 * time.Second

// SameDrain tells whether two drains are one.
func SameDrain(a, b *yardv1.WorkerDrain) bool {
	return (a == nil) == (b == nil) && a.GetStop() == b.GetStop() && a.GetSinceMs() == b.GetSinceMs()
}

// DrainOf is the drain of the worker of a poll, or nil.
func (p *Polls) DrainOf(at *Poll) *yardv1.WorkerDrain {
	if at.Req.WorkerId == "" {
		return nil
	}
	return p.Catalog.DrainedWorker(at.Req.Domain, at.Req.WorkerId)
}

// hold keeps the poll of a drained worker for a while, so that its worker comes again no sooner, and answers it then. The caller holds the lock.
func (p *Polls) hold(at *Poll, now time.Time) {
	delete(p.waiting, at.number)
	if p.stopped {
		p.end(at, at.empty)
		return
	}
	p.resting[at.number] = at
	ends := now.Add(DrainedRest)
	if at.Until.Before(ends) {
		ends = at.Until
	}
	p.endsAt(at, ends)
}

// ReleaseDrained answers the polls that are held, or wait here, of workers whose drain has changed, if the catalog has other drains than at the last call.
func (p *Polls) ReleaseDrained() {
	p.mu.Lock()
	defer p.unlock()
	revision := catalog.Workers.Revision(p.Catalog)
	if revision == p.drains {
		return
	}
	p.drains = revision
	for _, some := range []map[uint64]*Poll{p.resting, p.here} {
		for _, at := range some {
			if d := p.DrainOf(at); !SameDrain(d, at.drain) {
				at.drain = d
				p.end(at, at.empty)
			}
		}
	}
}

// FellSilent answers the polls of silent and of drained workers that no owner of matching has, so that no further task is granted to them. The
// others are matching's. Those that are held are to rest.
func (p *Polls) FellSilent(workers []*rpcv1.SilentWorker) {
	type key struct{ domain, id string }
	silent := make(map[key]bool, len(workers))
	for _, w := range workers {
		silent[key{w.Domain, w.WorkerId}] = true
	}
	p.mu.Lock()
	defer p.unlock()
	for _, some := range []map[uint64]*Poll{p.waiting, p.here} {
		for _, at := range some {
			if at.Req.WorkerId != "" && silent[key{at.Req.Domain, at.Req.WorkerId}] {
				at.drain = p.DrainOf(at)
				p.end(at, at.empty)
			}
		}
	}
}
