package yard_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// With weights one request names all tasklists, those of the worker without a weight too, and asks for all free slots. With one tasklist it is
// a poll as every other.
func TestOneRequestPollsTasklistsWithWeights(t *testing.T) {
	for name, c := range map[string]struct {
		opts []yard.WorkerOption
		want map[string]int32
	}{
		"several": {
			[]yard.WorkerOption{yard.WithTasklists("sms"), yard.WithWeights(map[string]int{"push": 4}), yard.WithWeights(map[string]int{"mail": 2})},
			map[string]int32{"mail": 2, "sms": 1, "push": 4},
		},
		"one": {[]yard.WorkerOption{yard.WithWeights(map[string]int{"mail": 7})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := newStack(t)
				sub, err := s.engine.nc.Subscribe(topology.API("shop", "tasks.poll"), func(m *nats.Msg) { s.engine.handle("tasks.poll", m) })
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = sub.Unsubscribe() }()
				if err := s.engine.nc.Flush(); err != nil { // the server knows of it
					t.Fatal(err)
				}
				w := yard.NewWorker(s.client, "mail", append(c.opts, quiet(), yard.WithConcurrency(7))...)
				yard.Handle(w, "x", func(context.Context, yard.Payload) (struct{}, error) { return struct{}{}, nil })
				stop := run(t, w)
				time.Sleep(time.Second)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				polls := s.polls()
				if len(polls) == 0 {
					t.Fatal("it did not poll")
				}
				for _, p := range polls {
					got := map[string]int32{}
					for _, l := range p.Tasklists {
						got[l.Name] = l.Weight
					}
					if len(got) != len(c.want) || (p.Tasklist == "") != (c.want != nil) || p.MaxTasks != 7 {
						t.Errorf("polled %v", p)
					}
					for name, weight := range c.want {
						if got[name] != weight {
							t.Errorf("polled %v", p)
						}
					}
				}
			})
		})
	}
}

// A poll of several tasklists that was given up is named by the next one.
func TestAGivenUpPollOfSeveralTasklists(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		heard := make(chan *yardv1.PollRequest, 2)
		sub, err := s.engine.nc.Subscribe(topology.API("shop", "tasks.poll"), func(m *nats.Msg) {
			var req yardv1.PollRequest
			if err := codec.Unmarshal(codec.Protobuf, m.Data, &req); err != nil {
				t.Error(err)
			}
			heard <- &req // and no answer
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sub.Unsubscribe() }()
		if err := s.engine.nc.Flush(); err != nil { // the server knows of it
			t.Fatal(err)
		}
		for range 2 {
			req := &yardv1.PollRequest{Tasklists: []*yardv1.PolledTasklist{{Name: "a"}, {Name: "b"}}, MaxTasks: 1}
			if _, err := s.client.Wire().Poll(soon(t), req); err == nil {
				t.Error("no one answered")
			}
		}
		if first, second := <-heard, <-heard; len(first.Unanswered) != 0 || len(second.Unanswered) != 1 {
			t.Errorf("polled %v and %v", first, second)
		}
	})
}
