package chaos_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// pace is for how long partitions stood still, as a whole and in each way.
type pace struct {
	mu    sync.Mutex
	began time.Time
	// moves has one of each way for each partition.
	moves [ways][]movement
	// due counts by partition the tasks that are ready as soon as they are accepted, and that no worker has had: a
	// partition without any does not stand still.
	due []int
}

// way is one way in which a partition moves.
type way int

const (
	// leads: the stream of its log has a leader, which answers. The last movement of this way is that of the bucket
	// of checkpoints, without which all of them stand still.
	leads way = iota
	// accepts: a submit into it was answered.
	accepts
	// handsOut: a task of it was handed to a worker, completes: one was completed. both: any of the two.
	handsOut
	completes
	both

	ways
)

func (w way) String() string {
	return [...]string{"leader", "accepts", "hands out", "completes", "either"}[w]
}

// stallMin is the shortest stall that is reported.
const stallMin = 1500 * time.Millisecond

// movement is when a partition moved last in one way, with the stalls before, and the longest of them.
type movement struct {
	last   time.Time
	most   stall
	stalls []stall
}

type stall struct {
	from, lasts time.Duration
}

// reset begins to measure.
func (p *pace) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = time.Now()
	for w := range p.moves {
		p.moves[w] = make([]movement, topology.DefaultPartitioning().History)
		if way(w) == leads {
			p.moves[w] = append(p.moves[w], movement{}) // the bucket of checkpoints
		}
		for i := range p.moves[w] {
			p.moves[w][i].last = p.began
		}
	}
}

// becameDue notes that a task which is ready was accepted.
func (p *pace) becameDue(task string, at time.Time) { p.dueOf(task, at, 1) }

// handed notes that a worker got it for the first time.
func (p *pace) handed(task string, at time.Time) { p.dueOf(task, at, -1) }

func (p *pace) dueOf(task string, at time.Time, n int) {
	id, err := ids.ParseTaskID(task)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due == nil {
		p.due = make([]int, topology.DefaultPartitioning().History)
	}
	i := id.Partition()
	if err != nil || i >= len(p.due) {
		return
	}
	if p.due[i] == 0 && n > 0 && i < len(p.moves[both]) { // it was idle
		for _, w := range []way{handsOut, both} {
			p.moves[w][i].last = at
		}
	}
	p.due[i] += n
}

// moved notes that something has become of a task.
func (p *pace) moved(task string, at time.Time, how ...way) {
	if id, err := ids.ParseTaskID(task); err == nil {
		p.partitionMoved(id.Partition(), at, how...)
	}
}

func (p *pace) partitionMoved(n int, at time.Time, how ...way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range how {
		switch m := p.moves[w]; {
		case n >= len(m):
		case (w == handsOut || w == both) && (p.due == nil || p.due[n] == 0):
			m[n].last = at // it was idle
		default:
			m[n].moved(p.began, at)
		}
	}
}

func (m *movement) moved(began, at time.Time) {
	if !at.After(m.last) {
		return
	}
	s := stall{m.last.Sub(began), at.Sub(m.last)}
	if s.lasts > m.most.lasts {
		m.most = s
	}
	if s.lasts >= stallMin {
		m.stalls = append(m.stalls, s)
	}
	m.last = at
}

// worst is the longest time of all partitions, up to now.
func (p *pace) worst() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, most := time.Now(), time.Duration(0)
	for i, m := range p.moves[both] {
		if most = max(most, m.most.lasts); p.due != nil && p.due[i] > 0 {
			most = max(most, now.Sub(m.last))
		}
	}
	return most
}

func (p *pace) String() string {
	worst := p.worst()
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "the longest time that a partition moved nothing: %.1f s; of each, with when it began:", worst.Seconds())
	for i, m := range p.moves[both] {
		fmt.Fprintf(&b, " %d: %.1f s at %.1f s", i, m.most.lasts.Seconds(), m.most.from.Seconds())
	}
	fmt.Fprintf(&b, "\nstalls of %v and more in each way, in seconds:", stallMin)
	for i := range p.moves[leads] {
		for w := range both {
			if i >= len(p.moves[w]) {
				continue
			}
			fmt.Fprintf(&b, "\n  %d %-9s", i, w)
			for _, s := range p.moves[w][i].stalls {
				fmt.Fprintf(&b, "  %.1f–%.1f", s.from.Seconds(), (s.from + s.lasts).Seconds())
			}
		}
	}
	return b.String()
}
