// Package events publishes what becomes of the tasks of domains that want it (topology.EventKinds).
//
// Owns: which tasks go into which message, and how large a message is. Never does: decide that a task is late or stuck, or keep a
// message. On failure: a message that cannot be sent is lost, and counted. Core NATS forgets it at once if no client listens.
//
// An event of this package is a yardv1.DomainEvent. A logv1.Event is a record of the log, and a yardv1.TaskEvent is a step of a task.
package events

import (
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// tasksMax is how many tasks one message has: with the longest names and error types it has a quarter of what NATS takes.
const tasksMax = 250

// Settings are which events of its tasks a domain has.
type Settings struct {
	On bool
	// LateMS and StuckMS are after how long a task is late, and an attempt stuck; 0 = never.
	LateMS, StuckMS int64
}

// Config is what a publisher works with. The zero one publishes nothing.
type Config struct {
	// Domain is the settings of a domain.
	Domain func(name string) Settings
	// TypeStuckMS is after how long an attempt of a type is stuck; 0 = the type does not say; nil = no type does.
	TypeStuckMS func(domain, typ string) int64
	// Publish sends a message by core NATS.
	Publish func(subject string, data []byte) error
}

// Of is the settings of a domain.
func (c Config) Of(domain string) Settings {
	if c.Domain == nil {
		return Settings{}
	}
	return c.Domain(domain)
}

// SlowAfter returns after how long tasks of a domain are late, and attempts of a type of it stuck, ms; 0 = they never are. A nil stuckMS: the domain has no events.
func (c Config) SlowAfter(domain string) (lateMS int64, stuckMS func(typ string) int64) {
	s := c.Of(domain)
	if !s.On {
		return 0, nil
	}
	return s.LateMS, func(typ string) int64 { return c.StuckMS(domain, typ) }
}

// StuckMS is after how long an attempt of a type is stuck; 0 = neither the type nor the domain says.
func (c Config) StuckMS(domain, typ string) int64 {
	if c.TypeStuckMS != nil {
		if ms := c.TypeStuckMS(domain, typ); ms > 0 {
			return ms
		}
	}
	return c.Of(domain).StuckMS
}

// Publisher gathers the events of a flush. It is not safe for concurrent use.
type Publisher struct {
	Config
	published, dropped *telemetry.Counter
	messages           []*message
	open               map[place]*message
}

// place is where messages are published.
type place struct{ domain, kind, tasklist string }

type message struct {
	place
	tasks []*yardv1.DomainEvent
}

// New makes a publisher. The counters are of events.
func New(cfg Config, published, dropped *telemetry.Counter) *Publisher {
	return &Publisher{Config: cfg, published: published, dropped: dropped, open: make(map[place]*message)}
}

// Ended adds a task that has just ended.
func (p *Publisher) Ended(t *taskstate.Task, nowMS int64) {
	if t.State == taskstate.Dead {
		p.add(topology.EventDead, t, t.FinishedAt, nowMS)
		return
	}
	p.add(topology.EventFinished, t, t.FinishedAt, nowMS)
}

// Slow adds a task that is late or stuck.
func (p *Publisher) Slow(o dispatch.Slow, nowMS int64) {
	if o.Stuck {
		p.add(topology.EventStuck, o.Task, o.Since, nowMS)
		return
	}
	p.add(topology.EventLate, o.Task, o.Since, nowMS)
}

func (p *Publisher) add(kind string, t *taskstate.Task, atMS, nowMS int64) {
	if !p.Of(t.Domain).On {
		return
	}
	at := place{t.Domain, kind, t.Tasklist}
	m := p.open[at]
	if m == nil || len(m.tasks) == tasksMax {
		m = &message{place: at}
		p.open[at], p.messages = m, append(p.messages, m)
	}
	m.tasks = append(m.tasks, &yardv1.DomainEvent{
		TaskId: t.ID.String(), Type: t.Type, State: record.State(t, nowMS), AtMs: atMS, Grants: int32(t.Grants()), Group: t.Group(), ErrorType: t.ErrType,
	})
}

// Flush publishes what was added.
func (p *Publisher) Flush() {
	for _, m := range p.messages {
		data, err := codec.Marshal(codec.JSON, &yardv1.DomainEvents{Kind: m.kind, Tasklist: m.tasklist, Tasks: m.tasks})
		if err == nil {
			err = p.Publish(topology.TaskEvents(m.domain, m.kind, m.tasklist), data)
		}
		if err != nil {
			p.dropped.Add(int64(len(m.tasks)))
			continue
		}
		p.published.Add(int64(len(m.tasks)))
	}
	if len(p.messages) > 0 {
		clear(p.messages)
		clear(p.open)
		p.messages = p.messages[:0]
	}
}
