package frontend

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestStatsCountErrors: what micro's STATS shows of a verb are its errors, those too that were found out after
// the handler had returned.
func TestStatsCountErrors(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const refusals = 3
	for range refusals {
		if e := s.ask(topology.API("shop", "tasks.submit"), tasks(0), &yardv1.SubmitResponse{}); e == nil || e.Code != fault.InvalidArgument {
			t.Fatalf("%v", e)
		}
	}
	s.must(topology.API("shop", "tasks.submit"), tasks(1), &yardv1.SubmitResponse{})
	late := s.ask(topology.API("shop", "tasks.poll"), &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WaitMs: 250}, &yardv1.PollResponse{})
	if late == nil {
		t.Fatal("a poll without matching was answered")
	}
	testkit.Eventually(t, within, func() error { // micro counts after it has answered
		submit, poll := s.statsOf("tasks-submit"), s.statsOf("tasks-poll")
		switch {
		case submit.NumRequests != refusals+1 || submit.NumErrors != refusals || submit.LastError == "":
			return fmt.Errorf("submit: %+v", submit)
		case submit.errors[fault.InvalidArgument] != refusals || len(submit.errors) != 1:
			return fmt.Errorf("submit: %v", submit.errors)
		case poll.errors[late.Code] != 1:
			return fmt.Errorf("poll: %v", poll.errors)
		}
		return nil
	})
	testkit.Equal(t, "were counted", s.metrics.Counter(signals.RequestsFailed, "tasks.submit", string(fault.InvalidArgument)).Value(), refusals)
}

type verbStats struct {
	*micro.EndpointStats
	errors map[fault.Code]int64
}

// statsOf is what STATS tells of an endpoint.
func (s *stage) statsOf(name string) verbStats {
	s.t.Helper()
	subject, err := micro.ControlSubject(micro.StatsVerb, "yard-frontend", "")
	testkit.NoError(s.t, err)
	answer, err := s.client.Request(subject, nil, within)
	testkit.NoError(s.t, err)
	var all micro.Stats
	var data struct {
		Errors map[fault.Code]int64 `json:"errors"`
	}
	testkit.NoError(s.t, json.Unmarshal(answer.Data, &all))
	for _, e := range all.Endpoints {
		if e.Name == name {
			testkit.NoError(s.t, json.Unmarshal(e.Data, &data))
			return verbStats{e, data.Errors}
		}
	}
	s.t.Fatalf("no endpoint %s: %s", name, answer.Data)
	return verbStats{}
}
