// Package events hears what becomes of the tasks of a domain, so that no program has to poll.
//
// Owns: the Go form of events, and the subscription. Never does: keep events, or ask for those that were missed. An operator turns the events of
// a domain on (yard.Domain.Events).
//
// On failure: an event may be lost, and may come twice. Nothing keeps it for a program that does not listen, and a partition of the engine that changes its
// owner loses some, or repeats a few. Client.Get has the truth; take an event as a reason to look.
//
//	all, err := events.Listen(ctx, client, events.Filter{Kinds: []events.Kind{events.Dead, events.Late}})
//	if err != nil {
//		return err
//	}
//	defer all.Close()
//	for e, err := range all.Events(ctx) {
package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Kind is a kind of event.
type Kind string

// The kinds.
const (
	// Finished: the task was completed, was cancelled, or has expired.
	Finished Kind = topology.EventFinished
	// Dead: the task became a dead letter.
	Dead Kind = topology.EventDead
	// Late: the task is due, and has not started for longer than yard.Domain.LateAfter.
	Late Kind = topology.EventLate
	// Stuck: an attempt of the task runs for longer than yard.Domain.StuckAfter.
	Stuck Kind = topology.EventStuck
)

// Filter says which events are heard.
type Filter struct {
	// Kinds are those that are heard. Default: all.
	Kinds []Kind
	// Tasklist is the one whose tasks are heard. Default: all.
	Tasklist string
}

// Event is an event of a task.
type Event struct {
	Kind     Kind
	Tasklist string
	TaskID   string
	Type     string
	// State is that of the task when the event was published.
	State yard.State
	// At is when the task ended; of a late task, since when it is due; of a stuck one, when its attempt started.
	At time.Time
	// Grants is how often the task was granted to a worker.
	Grants int
	Group  string
	// ErrorType is the class of error of its last failure.
	ErrorType string
}

// Wire is the event as the API writes it.
func (e Event) Wire() *yardv1.DomainEvent {
	w := &yardv1.DomainEvent{TaskId: e.TaskID, Type: e.Type, AtMs: e.At.UnixMilli(), Grants: int32(e.Grants), Group: e.Group, ErrorType: e.ErrorType}
	_ = w.State.UnmarshalText([]byte(e.State)) // a state of a later version is left out
	return w
}

// ErrMissed is yielded if the loop was slower than events came, and some were dropped, and if the connection was lost and is back. The loop may go on.
var ErrMissed = errors.New("events may have been missed: the program is slower than they come, or the connection was lost")

// waitingMax is how many messages, of up to 250 events each, may wait for the loop.
const waitingMax = 1024

// Listener hears the events of a domain.
type Listener struct {
	nc      *nats.Conn
	in      chan *nats.Msg
	closed  chan nats.Status
	back    chan nats.Status // the connection is back
	subs    []*nats.Subscription
	dropped int
}

// Listen begins to hear the events of the client's domain: those that are published after it has returned. The error is PERMISSION_DENIED if the login may not
// hear them, INVALID_ARGUMENT if the filter is malformed, NOT_FOUND if the domain does not exist.
func Listen(ctx context.Context, c *yard.Client, f Filter) (*Listener, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	kinds := slices.Compact(slices.Sorted(slices.Values(f.Kinds)))
	if len(kinds) == 0 {
		kinds = []Kind{""}
	}
	nc := yard.Conn(c)
	l := &Listener{nc: nc, in: make(chan *nats.Msg, waitingMax), closed: nc.StatusChanged(nats.CLOSED), back: nc.StatusChanged(nats.CONNECTED)}
	for _, kind := range kinds {
		if err := l.subscribe(ctx, topology.TaskEvents(c.Domain(), string(kind), f.Tasklist)); err != nil {
			l.Close()
			return nil, err
		}
	}
	if err := exists(ctx, c); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// exists returns NOT_FOUND if a frontend says that the domain of the client does not exist: another domain refuses an id that is malformed. A client that
// may not ask, or asks in vain, listens all the same.
func exists(ctx context.Context, c *yard.Client) error {
	ctx, cancel := context.WithTimeout(ctx, existsTimeout)
	defer cancel()
	if _, err := c.Wire().Get(ctx, ""); fault.CodeOf(err) == fault.NotFound {
		return err
	}
	return nil
}

func (f Filter) check() error {
	for i, kind := range f.Kinds {
		if names := topology.EventNames(); !slices.Contains(names, string(kind)) {
			return fault.At(fault.InvalidArgument, fmt.Sprintf("/kinds/%d", i), "there is no kind %q: want one of %s", kind, strings.Join(names, ", "))
		}
	}
	if f.Tasklist == "" {
		return nil
	}
	if err := ids.CheckName(f.Tasklist); err != nil {
		return fault.At(fault.InvalidArgument, "/tasklist", "%v", err)
	}
	return nil
}

// subscribe returns when the server has the subscription.
func (l *Listener) subscribe(ctx context.Context, subject string) error {
	sub, err := l.nc.ChanSubscribe(subject, l.in)
	if err != nil {
		return fault.New(fault.Unavailable, "listen to %s: %v", subject, err)
	}
	l.subs = append(l.subs, sub)
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := l.nc.FlushWithContext(ctx); err != nil {
		return fault.New(fault.Unavailable, "listen to %s: %v", subject, err)
	}
	if err := l.nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`) {
		return fault.New(fault.PermissionDenied, "listen to %s: %v", subject, err)
	}
	return nil
}

// flushTimeout bounds how long the server may take to answer, existsTimeout how long a frontend may.
const (
	flushTimeout  = 10 * time.Second
	existsTimeout = 2 * time.Second
)

// Close ends the listener, and with UNAVAILABLE a loop over its events.
func (l *Listener) Close() {
	for _, s := range l.subs {
		_ = s.Unsubscribe() // it fails only if the connection is closed
	}
	l.nc.RemoveStatusListener(l.closed)
	l.nc.RemoveStatusListener(l.back)
}

// Events yields events until ctx ends. It yields ErrMissed where some may have been missed, and goes on; another error is the last that it yields. A listener
// has one loop at a time.
func (l *Listener) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.closed:
				yield(Event{}, fault.New(fault.Unavailable, "the listener, or the connection to NATS, is closed"))
				return
			case _, again := <-l.back:
				if again && !yield(Event{}, ErrMissed) {
					return
				}
			case m := <-l.in:
				if l.missed() && !yield(Event{}, ErrMissed) {
					return
				}
				if !each(m.Data, yield) {
					return
				}
			}
		}
	}
}

// missed reports whether messages were dropped since it was asked last.
func (l *Listener) missed() bool {
	dropped := 0
	for _, s := range l.subs {
		if n, err := s.Dropped(); err == nil {
			dropped += n
		}
	}
	before := l.dropped
	l.dropped = max(before, dropped)
	return dropped > before
}

// each yields the events of a message, and reports whether to go on. One that cannot be read is left out.
func each(data []byte, yield func(Event, error) bool) bool {
	var all yardv1.DomainEvents
	if codec.Unmarshal(codec.JSON, data, &all) != nil {
		return true
	}
	for _, t := range all.Tasks {
		e := Event{
			Kind: Kind(all.Kind), Tasklist: all.Tasklist, TaskID: t.TaskId, Type: t.Type, State: yard.State(t.State.Name()), At: time.UnixMilli(t.AtMs),
			Grants: int(t.Grants), Group: t.Group, ErrorType: t.ErrorType,
		}
		if !yield(e, nil) {
			return false
		}
	}
	return true
}
