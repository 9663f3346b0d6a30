package simulation

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
)

const (
	// ackWait is after how long a hint comes again that no one has acknowledged.
	ackWait = 5 * time.Second
	// pendingMost is how many hints may be unacknowledged.
	pendingMost = 64
)

// hintStream is the stream of hints of one shard, with the consumer that its owners share.
type hintStream struct {
	shard   *matchShard
	waiting []*hintMessage
	pending map[uint64]*hintMessage
	last    uint64
}

type hintMessage struct{ hints matchingsim.Hints }

func (h *hintStream) add(hints matchingsim.Hints) {
	h.waiting = append(h.waiting, &hintMessage{hints})
	h.deliver()
}

// deliver hands out what waits, as long as there is somebody to take it.
func (h *hintStream) deliver() {
	m := h.shard.m
	var takers []*matchProc
	for _, p := range h.shard.living() {
		if p.owner != nil {
			takers = append(takers, p)
		}
	}
	for len(takers) > 0 && len(h.waiting) > 0 && len(h.pending) < pendingMost {
		msg := h.waiting[0]
		h.waiting = h.waiting[1:]
		h.last++
		delivery := h.last
		h.pending[delivery] = msg
		p := takers[m.dice.IntN(len(takers))]
		p.do(p.latency(), func() {
			p.owner.Put(func(in *matchingsim.Inputs) {
				hints := msg.hints
				hints.Delivery = delivery
				in.Hints = append(in.Hints, hints)
			})
		})
		m.after(ackWait, func() {
			if h.pending[delivery] == msg {
				h.again(delivery)
			}
		})
	}
}

// again has a message delivered once more.
func (h *hintStream) again(delivery uint64) {
	h.waiting = append(h.waiting, h.pending[delivery])
	delete(h.pending, delivery)
	h.deliver()
}

// acked takes in that a message is taken care of. What is said too late says nothing.
func (h *hintStream) acked(delivery uint64) {
	if h.pending[delivery] != nil && !h.shard.m.fault(lateAcks, 60) {
		delete(h.pending, delivery)
		h.deliver()
	}
}
