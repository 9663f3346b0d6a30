package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// startDirectly has some tasks of a shared message start with it: the frontend that stores them has polls that wait. It does so with none that a
// limit covers. It returns what is to be done once the message is stored.
func (w *world) startDirectly(m *historysim.Message) (stored func()) {
	nonces := map[int]uint64{}
	for i := range m.Tasks {
		t := &m.Tasks[i]
		if m.Lane != ids.LaneFirst || m.Place != "" || t.DueAt > 0 || t.Order() != nil || w.match.limited(w.accepted[t.ID]) || !w.fault(directStarts, 500) {
			continue
		}
		nonces[i] = 1 + w.dice.Uint64N(1<<40)
		historysim.StartsDirectly(t, nonces[i], nil)
	}
	return func() {
		for i := range m.Tasks {
			if nonces[i] == 0 {
				continue
			}
			id := m.Tasks[i].ID
			token := ids.Token{Position: ids.NewPosition(m.Seq, m.Lane).InShared(), Version: 1, Nonce: nonces[i]}
			w.check.startedDirectly(id, token)
			w.say("frontend", "starts %s with its submit, n%d", w.name(id), token.Nonce)
			if !w.fault(goneWorkers, 60) { // else the frontend is killed, or the worker has left
				w.after(w.dice.upTo(20*time.Millisecond), func() { w.askers.work(id, token) })
			}
		}
	}
}

// limited tells whether a limit covers a task, whatever its number.
func (m *matching) limited(at task) bool {
	for name := range m.limits[at.domain] {
		if covers(limitOf(name), at) {
			return true
		}
	}
	return false
}

// startedDirectly notes that a worker gets the first attempt of a task without a grab: no other one may have that attempt. It counts at the shard of
// the first partition of its tasklist.
func (c *checker) startedDirectly(id ids.TaskID, token ids.Token) {
	c.holders[attempt{id, token.Version}] = token
	at := c.w.accepted[id]
	c.w.match.check.grabbed(uint32(ids.MatchingShard(at.domain, at.tasklist, 0, shards))+1, heldBy{id, token})
}
