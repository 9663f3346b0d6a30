package gateway

import (
	"errors"
	"slices"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
)

// memBus keeps what is sent; the test answers.
type memBus struct {
	silent []*rpcv1.Silent
	mu     sync.Mutex
	polls  []sentPoll
	events []sentEvents
	down   bool
	// unanswerable: polls are not answered here.
	unanswerable bool
	// givenUp are the inboxes that matching was notified of.
	givenUp []*rpcv1.GivenUp
	// hints are the cancels that workers were notified of.
	hints []string
	// answers are those of polls that were given tasks here.
	answers []polled
	// send, if set, is where polls go.
	send func(sentPoll) error
}

type sentPoll struct {
	shard     int
	epoch, id uint64
	poll      *rpcv1.Poll
}

type sentEvents struct {
	p     int
	id    uint64
	data  string
	batch *logv1.EventBatch
}

var errDown = errors.New("not connected")

func (b *memBus) PublishEvents(p int, id uint64, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errDown
	}
	e := sentEvents{p, id, string(data), &logv1.EventBatch{}}
	if err := e.batch.UnmarshalVT(data); err != nil {
		panic(err)
	}
	b.events = append(b.events, e)
	return nil
}

func (b *memBus) VerdictsTo() string { return "here" }

func (b *memBus) PublishCancelHint(domain string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hints = append(b.hints, domain+" "+string(data))
	return nil
}

func (b *memBus) AnsweredTo() string { return "answered" }

func (b *memBus) PublishGivenUp(data []byte) error {
	var m rpcv1.GivenUp
	if err := m.UnmarshalVT(data); err != nil {
		panic(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.givenUp = append(b.givenUp, &m)
	return nil
}

func (b *memBus) PublishUse([]byte) error { return nil }

func (b *memBus) PublishSilent(data []byte) error {
	var m rpcv1.Silent
	if err := m.UnmarshalVT(data); err != nil {
		panic(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent = append(b.silent, &m)
	return nil
}

func (b *memBus) PublishPoll(shard int, epoch, id uint64, data []byte) error {
	s := sentPoll{shard, epoch, id, &rpcv1.Poll{}}
	if err := s.poll.UnmarshalVT(data); err != nil {
		panic(err)
	}
	if b.send != nil {
		return b.send(s)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errDown
	}
	b.polls = append(b.polls, s)
	return nil
}

func (b *memBus) sentEvents() []sentEvents {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

func (b *memBus) sentPolls() []sentPoll {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.polls)
}
