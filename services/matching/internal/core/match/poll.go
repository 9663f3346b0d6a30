package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
)

// poll is a worker's poll until it is answered.
type poll = pairing.Poll[*list, grant]

// grant is an attempt that history granted to a poll.
type grant struct {
	batch *batch
	i     int
	// task is the encoded yardv1.PolledTask.
	task []byte
}

func newPoll(l *list, m *Poll, now time.Duration) *poll {
	p := &poll{
		ID: m.ID, List: l, Max: m.Max, Worker: m.Worker, WorkerID: m.WorkerID, ReplyTo: m.ReplyTo, JSON: m.JSON,
		Moved: m.Moved, Back: m.Back, Since: now, Until: now + max(0, m.For),
	}
	p.Accept(m.Types)
	return p
}
