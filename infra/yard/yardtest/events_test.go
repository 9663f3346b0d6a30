package yardtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/events"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A program's test of what it does on events: a domain of a test has them, and fake time makes a task late at once.
func TestAProgramHearsEvents(t *testing.T) {
	yardtest.FakeTime(t, func(t *testing.T, e *yardtest.Engine) {
		testkit.NoError(t, testkit.Err(e.Client.Admin().PutDomain(t.Context(), yard.Domain{Name: e.Domain(), Events: true, LateAfter: time.Hour})))
		all, err := events.Listen(t.Context(), e.Client, events.Filter{})
		testkit.NoError(t, err)
		defer all.Close()
		began := time.Now()
		id := submit(t, e.Client, "ann")
		next := func() (heard events.Event) {
			for heard, err = range all.Events(t.Context()) {
				testkit.NoError(t, err)
				break
			}
			return heard
		}
		late := next()
		testkit.Equal(t, "late", late.TaskID+" "+string(late.Kind), id+" late")
		if after := time.Since(began); after < time.Hour || after > time.Hour+time.Minute {
			t.Errorf("it is late after %v", after)
		}
		w := worker(e.Client, sendEmail.Tasklist())
		sendEmail.Handle(w, func(context.Context, email) (string, error) { return "sent", nil })
		testkit.NoError(t, e.RunFor(t.Context(), time.Minute, w))
		finished := next()
		testkit.Equal(t, "finished", finished.TaskID+" "+string(finished.Kind)+" "+string(finished.State), id+" finished completed")
	})
}

// A program that is slower than events come hears so, and then what comes next.
func TestASlowProgramHearsThatItMissedEvents(t *testing.T) {
	e := yardtest.New(t)
	all, err := events.Listen(bounded(t), e.Client, events.Filter{Tasklist: "mail"})
	testkit.NoError(t, err)
	defer all.Close()
	nc := yard.Conn(e.Client)
	publish := func(times int, id string) {
		for range times {
			testkit.NoError(t, nc.Publish(topology.TaskEvents(e.Domain(), topology.EventDead, "mail"), []byte(`{"kind":"dead","tasklist":"mail","tasks":[{"task_id":"`+id+`"}]}`)))
		}
		testkit.NoError(t, nc.FlushWithContext(bounded(t))) // what was published is here
	}
	publish(5000, "old")
	heard, missed := 0, 0
	for event, err := range all.Events(bounded(t)) {
		if errors.Is(err, events.ErrMissed) {
			missed++
			publish(1, "new") // there is room again
			continue
		}
		testkit.NoError(t, err)
		if heard++; event.TaskID == "new" {
			break
		}
	}
	if missed != 1 || heard < 2 || heard > 5000 {
		t.Errorf("it missed some %d times, and heard %d events", missed, heard)
	}
}

// A program whose connection was lost hears so, and then what comes next.
func TestAProgramHearsThatItWasDisconnected(t *testing.T) {
	e := yardtest.New(t)
	all, err := events.Listen(bounded(t), e.Client, events.Filter{Tasklist: "mail"})
	testkit.NoError(t, err)
	defer all.Close()
	nc := yard.Conn(e.Client)
	testkit.NoError(t, nc.ForceReconnect())
	missed := 0
	for event, err := range all.Events(bounded(t)) {
		if errors.Is(err, events.ErrMissed) {
			missed++
			testkit.NoError(t, nc.Publish(topology.TaskEvents(e.Domain(), topology.EventDead, "mail"), []byte(`{"kind":"dead","tasklist":"mail","tasks":[{"task_id":"new"}]}`)))
			continue
		}
		testkit.NoError(t, err)
		testkit.Equal(t, "task", event.TaskID, "new")
		break
	}
	testkit.Equal(t, "missed", missed, 1)
}
