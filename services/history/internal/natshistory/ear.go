package natshistory

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/hearing"
)

const (
	// listenEvery is how often the process sends itself a message, and looks who fell silent; listenIdle is that while it hears no worker.
	listenEvery, listenIdle = 100 * time.Millisecond, 500 * time.Millisecond
	// tellEvery is how often it says again who did.
	tellEvery = 500 * time.Millisecond
	// signsWaitingMax bounds the messages that wait to be read.
	signsWaitingMax = 65_536
	// toldTogether is how many workers one message names: 140 KB with the longest names. Those of all domains together would be more than a message may
	// have, so the workers of one domain could keep all others' from being named.
	toldTogether = 1024
)

// Ear hears the signs of life of workers, and itself: that is how it knows that it hears.
type Ear struct {
	// mouth is where it speaks, and hears is where it listens.
	mouth, hears *nats.Conn
	workers      *hearing.Workers
	known        func(domain string) bool

	in    chan *nats.Msg
	subs  []*nats.Subscription
	self  string
	count uint64
	// reconnects and dropped are how often messages may have been lost.
	reconnects uint64
	dropped    int
	toldAt     time.Duration
}

// NewEar makes an ear for the domains that are known. It uses two connections, one to speak and one to hear, which the caller closes after Run.
func NewEar(mouth, hears *nats.Conn, workers *hearing.Workers, known func(domain string) bool) (*Ear, error) {
	e := &Ear{mouth: mouth, hears: hears, workers: workers, known: known, in: make(chan *nats.Msg, signsWaitingMax), self: hears.NewInbox()}
	for _, subject := range []string{topology.AliveHintAny, e.self} {
		sub, err := hears.ChanSubscribe(subject, e.in)
		if err != nil {
			return nil, err
		}
		e.subs = append(e.subs, sub)
	}
	return e, hears.Flush()
}

// Run hears until ctx ends.
func (e *Ear) Run(ctx context.Context) {
	next, at := time.NewTimer(0), e.workers.Now()
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-e.in:
			e.hear(m)
		case <-e.workers.Expected():
		case <-next.C:
			e.speak()
			e.workers.Fall(e.tell)
			at = math.MaxInt64
		}
		wait := e.wait()
		if now := e.workers.Now(); now+wait < at { // also for a worker of which nothing was known
			at = now + wait
			next.Reset(wait)
		}
	}
}

// wait is how long it takes until it speaks again: at the pace of the process, and when a worker may have fallen silent.
func (e *Ear) wait() time.Duration {
	every := pace.Of(listenIdle)
	if e.workers.Any() {
		every = pace.Of(listenEvery)
	}
	if in, ok := e.workers.Next(); ok {
		every = min(every, max(in, listenEvery))
	}
	return every
}

// speak sends a message to itself: its number, and when it was sent. Where that fails, the next one that comes shows that one is missing.
func (e *Ear) speak() {
	e.count++
	data := binary.BigEndian.AppendUint64(nil, e.count)
	data = binary.BigEndian.AppendUint64(data, uint64(e.workers.Now()))
	_ = e.mouth.Publish(e.self, data)
}

func (e *Ear) hear(m *nats.Msg) {
	e.lost()
	if m.Subject != e.self {
		if domain := topology.DomainOf(m.Subject); e.known(domain) {
			e.workers.Heard(domain, m.Data)
		}
		return
	}
	if len(m.Data) == 16 {
		e.workers.Listens(binary.BigEndian.Uint64(m.Data), time.Duration(binary.BigEndian.Uint64(m.Data[8:])))
	}
}

// lost notes whether messages may have been.
func (e *Ear) lost() {
	dropped := 0
	for _, s := range e.subs {
		if n, err := s.Dropped(); err == nil {
			dropped += n
		}
	}
	if n := e.hears.Stats().Reconnects; n != e.reconnects || dropped != e.dropped {
		e.reconnects, e.dropped = n, dropped
		e.workers.Deaf()
	}
}

// tell has polls of silent workers end: at once, and again for a while, since it may get lost.
func (e *Ear) tell(silent *rpcv1.Silent, fresh bool) {
	now := e.workers.Now()
	if !fresh && now-e.toldAt < tellEvery {
		return
	}
	e.toldAt = now
	for some := range slices.Chunk(silent.Workers, toldTogether) {
		data, err := (&rpcv1.Silent{Workers: some}).MarshalVT()
		if err != nil {
			return // only strings inside
		}
		_ = e.mouth.Publish(topology.HintSilent, data)
	}
}
