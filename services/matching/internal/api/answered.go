package api

import (
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
)

const (
	// answeredWithin is how long a frontend does not know that its poll is answered: so
	// much is reported together.
	answeredWithin = 25 * time.Millisecond
	// answeredMax is how many polls one message tells of.
	answeredMax = 1000
)

// answered tells frontends which of their polls are answered: those they need not end
// when the next owner takes over. It is safe for concurrent use.
type answered struct {
	tell func(to string, ids []uint64)

	mu   sync.Mutex
	last uint64
	// open are the polls that are not answered, by the number that the core knows them by: an
	// inbox may have several.
	open map[uint64]asker
	// ids are those that are, by the frontend to notify.
	ids map[string][]uint64
	// timer runs while there is something to tell.
	timer *time.Timer
}

// asker is the frontend that sent a poll, and its name of it.
type asker struct {
	to string
	id uint64
}

func newAnswered(tell func(to string, ids []uint64)) *answered {
	return &answered{tell: tell, open: map[uint64]asker{}, ids: map[string][]uint64{}}
}

// expect numbers a poll whose answer is to be reported, from 1; 0 where no one asks for it.
func (a *answered) expect(m *rpcv1.Poll) uint64 {
	if m.AnsweredTo == "" {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	a.open[a.last] = asker{m.AnsweredTo, m.Id}
	return a.last
}

// done notes that the poll of this number is answered.
func (a *answered) done(number uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one, found := a.open[number]
	if !found {
		return
	}
	delete(a.open, number)
	ids := append(a.ids[one.to], one.id)
	a.ids[one.to] = ids
	if len(ids) == answeredMax {
		delete(a.ids, one.to)
		a.tell(one.to, ids)
		return
	}
	if a.timer == nil {
		a.timer = time.AfterFunc(answeredWithin, a.flush)
	}
}

// flush tells what there is to tell.
func (a *answered) flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	for to, ids := range a.ids {
		a.tell(to, ids)
	}
	clear(a.ids)
}
