package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
)

// poll is a worker's poll until it is answered.
type poll = grab.Poll[*list]

func newPoll(l *list, m *Poll, now time.Duration) *poll {
	p := &poll{
		ID: m.ID, List: l, Max: m.Max, Worker: m.Worker, WorkerID: m.WorkerID, ReplyTo: m.ReplyTo, JSON: m.JSON,
		Moved: m.Moved, Back: m.Back, Since: now, Until: now + max(0, m.For),
	}
	p.Accept(m.Types)
	return p
}
