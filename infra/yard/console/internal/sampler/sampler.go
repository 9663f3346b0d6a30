// Package sampler follows numbers of the engine while somebody watches them.
//
// Owns: one goroutine for each topic that is watched, its newest sample, and the last hour of its numbers, in bounded memory. All who watch a topic share its
// calls. Never does: call the engine for a topic that is not watched. On failure: the sample has the error, and the next one comes a second later.
package sampler

import (
	"context"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// Limits.
const (
	// Every is the time between two samples, KeepFor is how long their numbers are kept.
	Every   = time.Second
	KeepFor = time.Hour
	// watchersMax is how many streams there may be.
	watchersMax = 500
	// fetchTimeout bounds a sample.
	fetchTimeout = 5 * time.Second
)

// topicsMax is how many topics of a kind have samples: those that were watched first go first.
var topicsMax = map[string]int{"own": 50, "domain": 50, "tasklist": 200, "limit": 200}

// Topic is what is sampled.
type Topic struct {
	// Kind and Name tell topics apart; the number of topics of a kind is bounded.
	Kind, Name string
	// Fetch takes a sample, and returns the numbers of it that are kept for an hour, nil = none. Before is the last sample; its Value is nil if there is none.
	Fetch func(ctx context.Context, before Sample) (value any, numbers []float64, err error)
}

// Sample is what was found.
type Sample struct {
	At    time.Time
	Value any
	Err   error
}

// Point is the numbers of a sample.
type Point struct {
	At      time.Time
	Numbers []float64
}

type key struct{ kind, name string }

func (t Topic) key() key { return key{t.Kind, t.Name} }

// Sampler takes samples.
type Sampler struct {
	ctx context.Context

	mu       sync.Mutex
	followed map[key]*followed
	watchers int
}

// followed is a topic with samples.
type followed struct {
	topic    Topic
	last     Sample
	points   []Point
	usedAt   time.Time
	triedAt  time.Time
	watchers map[*Watch]bool
	stop     context.CancelFunc
	// fetching is one: two who ask for the same topic at once share the answer.
	fetching sync.Mutex
}

// New makes a sampler, whose goroutines end with ctx.
func New(ctx context.Context) *Sampler { return &Sampler{ctx: ctx, followed: map[key]*followed{}} }

// Watch is a subscription of a topic.
type Watch struct {
	// Changed has a value when there is a new sample.
	Changed chan struct{}
	sampler *Sampler
	topic   *followed
}

// Watch follows a topic until the watch is closed. RESOURCE_EXHAUSTED: too many streams are open.
func (s *Sampler) Watch(t Topic) (*Watch, error) {
	f := s.of(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers >= watchersMax {
		return nil, fault.New(fault.ResourceExhausted, "%d pages are watched, which is the most", watchersMax)
	}
	w := &Watch{Changed: make(chan struct{}, 1), sampler: s, topic: f}
	s.watchers++
	f.watchers[w] = true
	if f.stop == nil {
		ctx, stop := context.WithCancel(s.ctx)
		f.stop = stop
		go s.follow(ctx, f)
	}
	return w, nil
}

// Close ends a watch.
func (w *Watch) Close() {
	s := w.sampler
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.topic.watchers[w] {
		return
	}
	s.watchers--
	delete(w.topic.watchers, w)
	if len(w.topic.watchers) == 0 {
		w.topic.stop()
		w.topic.stop = nil
	}
}

// Last is the newest sample of a topic. One that is older than the time between two samples is taken again, for all who ask: it does not end with the request
// of one of them.
func (s *Sampler) Last(t Topic) Sample {
	f := s.of(t)
	s.sample(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.last
}

// Hour is the numbers of a topic of the last hour, oldest first.
func (s *Sampler) Hour(t Topic) []Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followed[t.key()]
	if f == nil {
		return nil
	}
	return f.points[:len(f.points):len(f.points)]
}

// of is the state of a topic. If there are too many of its kind, the one that was used first goes.
func (s *Sampler) of(t Topic) *followed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followed[t.key()]
	if f == nil {
		s.evict(t.Kind)
		f = &followed{topic: t, watchers: map[*Watch]bool{}}
		s.followed[t.key()] = f
	}
	f.usedAt = time.Now()
	return f
}

func (s *Sampler) evict(kind string) {
	count, first := 0, (*followed)(nil)
	for _, f := range s.followed {
		if f.topic.Kind != kind {
			continue
		}
		count++
		if len(f.watchers) == 0 && (first == nil || f.usedAt.Before(first.usedAt)) {
			first = f
		}
	}
	if first != nil && count >= max(1, topicsMax[kind]) {
		delete(s.followed, first.topic.key())
	}
}

// follow takes samples until ctx ends.
func (s *Sampler) follow(ctx context.Context, f *followed) {
	ticks := time.NewTicker(Every)
	defer ticks.Stop()
	for {
		s.sample(f)
		s.notify(f)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

func (s *Sampler) notify(f *followed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range f.watchers {
		select {
		case w.Changed <- struct{}{}:
		default:
		}
	}
}

// sample takes a sample unless there is one that is fresh.
func (s *Sampler) sample(f *followed) {
	f.fetching.Lock()
	defer f.fetching.Unlock()
	s.mu.Lock()
	before, fresh := f.last, time.Since(f.triedAt) < Every*9/10
	s.mu.Unlock()
	if fresh {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, fetchTimeout)
	defer cancel()
	value, numbers, err := f.topic.Fetch(ctx, before)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	f.triedAt = now
	if err != nil {
		f.last.Err = err // the numbers before the failure still count
		return
	}
	f.last = Sample{At: now, Value: value}
	if numbers == nil {
		return
	}
	keep := f.points
	for len(keep) > 0 && (now.Sub(keep[0].At) > KeepFor || len(keep) >= int(KeepFor/Every)) {
		keep = keep[1:]
	}
	f.points = append(keep, Point{At: now, Numbers: numbers})
}

// PerSecond is the rate of a counter. One that went back belongs to a new owner, which counts from 0.
func PerSecond(now, before int64, seconds float64) float64 {
	if now < before {
		before = 0
	}
	if seconds <= 0 {
		return 0
	}
	return float64(now-before) / seconds
}
