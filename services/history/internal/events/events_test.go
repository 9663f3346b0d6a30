package events_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/events"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// rig is a publisher for the domains shop and cafe, and what it has published.
type rig struct {
	*events.Publisher
	published, dropped *telemetry.Counter
	sent               []string // subjects with the states of their tasks
	bytes              int
	err                error
}

func newRig(t *testing.T) *rig {
	m := signalkit.Metrics(t)
	r := &rig{published: m.Counter(signals.DomainEventsPublished), dropped: m.Counter(signals.DomainEventsDropped)}
	r.Publisher = events.New(events.Config{
		Domain: func(domain string) events.Settings { return events.Settings{On: domain == "shop" || domain == "cafe"} },
		Publish: func(subject string, data []byte) error {
			var e yardv1.DomainEvents
			testkit.NoError(t, codec.Unmarshal(codec.JSON, data, &e))
			r.bytes = max(r.bytes, len(data))
			text := fmt.Sprint(subject, " ", len(e.Tasks))
			for _, task := range e.Tasks[:min(2, len(e.Tasks))] {
				text += fmt.Sprint(" ", task.State.Name(), "@", task.AtMs)
			}
			r.sent = append(r.sent, text)
			return r.err
		},
	}, r.published, r.dropped)
	return r
}

// flushed is what a flush publishes.
func (r *rig) flushed() []string {
	r.sent = nil
	r.Flush()
	return r.sent
}

func task(domain, tasklist string, state taskstate.State) *taskstate.Task {
	return &taskstate.Task{ID: ids.NewTaskID(time.UnixMilli(5), 0, 1), Domain: domain, Tasklist: tasklist, Type: "t", State: state, FinishedAt: 70}
}

// One flush has one message for each kind and tasklist, in the order in which they came; the next one has none of it. A domain without events has none.
func TestAFlushHasAMessageForEachSubject(t *testing.T) {
	r := newRig(t)
	for _, ended := range []*taskstate.Task{
		task("shop", "mail", taskstate.Completed), task("shop", "mail", taskstate.Dead), task("bank", "mail", taskstate.Completed),
		task("shop", "sms", taskstate.Lapsed), task("shop", "mail", taskstate.Cancelled),
	} {
		r.Ended(ended, 80)
	}
	r.Slow(dispatch.Slow{Task: task("shop", "mail", taskstate.Ready), Since: 20}, 80)
	r.Slow(dispatch.Slow{Task: task("shop", "mail", taskstate.Running), Stuck: true, Since: 30}, 80)
	testkit.Equal(t, "published", r.flushed(), []string{
		"yard.v1.shop.events.finished.mail 2 completed@70 cancelled@70", "yard.v1.shop.events.dead.mail 1 dead@70", "yard.v1.shop.events.finished.sms 1 expired@70",
		"yard.v1.shop.events.late.mail 1 ready@20", "yard.v1.shop.events.stuck.mail 1 running@30",
	})
	testkit.Equal(t, "then", r.flushed(), nil)
	testkit.Equal(t, "counted", []int64{r.published.Value(), r.dropped.Value()}, []int64{6, 0})
}

// Domains share neither a message nor a subject. What ends after a flush is in the next one.
func TestI14_EventsGoToTheirDomain(t *testing.T) {
	r := newRig(t)
	for range 2 {
		for _, domain := range []string{"shop", "cafe", "shop"} {
			r.Ended(task(domain, "mail", taskstate.Completed), 80)
		}
		testkit.Equal(t, "published", r.flushed(), []string{
			"yard.v1.shop.events.finished.mail 2 completed@70 completed@70", "yard.v1.cafe.events.finished.mail 1 completed@70",
		})
	}
}

// An event names its task, what became of it, and how often it was granted.
func TestWhatAnEventSays(t *testing.T) {
	m := signalkit.Metrics(t)
	var got yardv1.DomainEvents
	p := events.New(events.Config{
		Domain:  func(string) events.Settings { return events.Settings{On: true} },
		Publish: func(_ string, data []byte) error { return codec.Unmarshal(codec.JSON, data, &got) },
	}, m.Counter(signals.DomainEventsPublished), m.Counter(signals.DomainEventsDropped))
	dead := task("shop", "mail", taskstate.Dead)
	dead.ErrType, dead.Extra, dead.Version = "timeout", &taskstate.Extra{Group: "acme"}, 3
	p.Ended(dead, 80)
	p.Flush()
	want := &yardv1.DomainEvents{Kind: "dead", Tasklist: "mail", Tasks: []*yardv1.DomainEvent{{
		TaskId: dead.ID.String(), Type: "t", State: yardv1.TaskState_TASK_STATE_DEAD, AtMs: 70, Grants: 3, Group: "acme", ErrorType: "timeout",
	}}}
	if !proto.Equal(&got, want) {
		t.Errorf("the event is %v, want %v", &got, want)
	}
}

// Very many events of a flush go in several messages, none of which is too large for NATS. Those that cannot be sent are counted.
func TestAMessageIsBounded(t *testing.T) {
	r := newRig(t)
	large := task("shop", strings.Repeat("l", 64), taskstate.Dead)
	large.Type, large.ErrType = strings.Repeat("t", 64), strings.Repeat("\x01", 128)
	large.Extra = &taskstate.Extra{Group: strings.Repeat("g", 64)}
	for range 600 {
		r.Ended(large, 80)
	}
	r.err = errors.New("no connection")
	testkit.Equal(t, "messages", len(r.flushed()), 3)
	testkit.Equal(t, "counted", []int64{r.published.Value(), r.dropped.Value()}, []int64{0, 600})
	if r.bytes > 512<<10 {
		t.Errorf("a message has %d bytes", r.bytes)
	}
}

// A type says after how long its attempts are stuck, and otherwise its domain. Without events nothing is late or stuck, but operators may ask.
func TestATypeSaysWhenItsAttemptsAreStuck(t *testing.T) {
	c := events.Config{
		Domain: func(domain string) events.Settings {
			return events.Settings{On: domain == "shop", LateMS: 2000, StuckMS: 3000}
		},
		TypeStuckMS: func(_, typ string) int64 { return map[string]int64{"film": 60_000}[typ] },
	}
	late, stuck := c.SlowAfter("shop")
	testkit.Equal(t, "of a domain with events", fmt.Sprint(late, stuck("film"), stuck("mail")), "2000 60000 3000")
	late, stuck = c.SlowAfter("bank")
	testkit.Equal(t, "of a domain without", fmt.Sprint(late, stuck == nil, c.StuckMS("bank", "film")), "0 true 60000")
}
