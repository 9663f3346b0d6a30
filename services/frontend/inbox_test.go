package frontend

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// goodRequests are one good request per endpoint.
func (s *stage) goodRequests() map[string]codec.Message {
	task := ids.NewTaskID(farPast, 0, 1)
	id, token := task.String(), s.tokens.Print(task, ids.Token{Nonce: 1})
	shop := func(verb string) string { return topology.API("shop", verb) }
	all := map[string]codec.Message{
		shop("tasks.submit"):        tasks(1),
		shop("tasks.poll"):          &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WaitMs: 1000},
		shop("tasks.complete"):      &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{{TaskId: id, Token: token}}},
		shop("tasks.fail"):          &yardv1.FailRequest{Tasks: []*yardv1.Failure{{TaskId: id, Token: token}}},
		shop("tasks.heartbeat"):     &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{TaskId: id, Token: token}}},
		shop("tasks.cancel"):        &yardv1.CancelRequest{TaskIds: []string{id}},
		shop("tasks.get"):           &yardv1.GetRequest{TaskId: id},
		shop("tasks.list"):          &yardv1.ListRequest{},
		shop("tasks.explain"):       &yardv1.ExplainRequest{TaskId: id},
		shop("tasklists.describe"):  &yardv1.DescribeTasklistRequest{Tasklist: "main"},
		shop("tasklists.put"):       &yardv1.PutTasklistRequest{Tasklist: &yardv1.Tasklist{Name: "planted"}},
		shop("tasklists.get"):       &yardv1.GetTasklistRequest{Name: "planted"},
		shop("tasklists.list"):      &yardv1.ListTasklistsRequest{},
		shop("tasklists.delete"):    &yardv1.DeleteTasklistRequest{Name: "planted"},
		shop("types.put"):           &yardv1.PutTypeRequest{Type: &yardv1.TaskType{Name: "planted"}},
		shop("types.get"):           &yardv1.GetTypeRequest{Name: "planted"},
		shop("tasklists.pause"):     &yardv1.PauseRequest{Name: "planted"},
		shop("tasklists.resume"):    &yardv1.ResumeRequest{Name: "planted"},
		shop("tasklists.pollers"):   &yardv1.TasklistPollersRequest{Tasklist: "main"},
		shop("limits.top"):          &yardv1.TopLimitsRequest{},
		shop("types.pause"):         &yardv1.PauseRequest{Name: "planted"},
		shop("types.resume"):        &yardv1.ResumeRequest{Name: "planted"},
		shop("tasklists.drain"):     &yardv1.PauseRequest{Name: "planted"},
		shop("tasklists.peek"):      &yardv1.PeekTasklistRequest{Name: "planted"},
		shop("tasklists.purge"):     &yardv1.PurgeRequest{Name: "planted"},
		shop("types.drain"):         &yardv1.PauseRequest{Name: "planted"},
		shop("types.purge"):         &yardv1.PurgeRequest{Name: "planted"},
		shop("limits.put"):          &yardv1.PutLimitRequest{Limit: &yardv1.Limit{Name: "planted", MaxConcurrency: 1}},
		shop("limits.get"):          &yardv1.GetLimitRequest{Name: "planted"},
		shop("limits.list"):         &yardv1.ListLimitsRequest{},
		shop("limits.delete"):       &yardv1.DeleteLimitRequest{Name: "planted"},
		shop("groups.put"):          &yardv1.PutGroupRequest{Group: &yardv1.Group{Name: "planted"}},
		shop("groups.get"):          &yardv1.GetGroupRequest{Name: "planted"},
		shop("groups.list"):         &yardv1.ListGroupsRequest{},
		shop("groups.delete"):       &yardv1.DeleteGroupRequest{Name: "planted"},
		shop("groups.pause"):        &yardv1.PauseRequest{Name: "planted"},
		shop("groups.resume"):       &yardv1.ResumeRequest{Name: "planted"},
		shop("groups.drain"):        &yardv1.PauseRequest{Name: "planted"},
		shop("groups.purge"):        &yardv1.PurgeRequest{Name: "planted"},
		shop("deadletters.list"):    &yardv1.ListDeadLettersRequest{},
		shop("deadletters.count"):   &yardv1.CountDeadLettersRequest{},
		shop("deadletters.get"):     &yardv1.GetDeadLetterRequest{},
		shop("deadletters.redrive"): &yardv1.RedriveRequest{Filter: &yardv1.DeadLetterFilter{}},
		shop("deadletters.purge"):   &yardv1.PurgeDeadLettersRequest{Filter: &yardv1.DeadLetterFilter{}},
		shop("workers.list"):        &yardv1.ListWorkersRequest{},
		shop("workers.drain"):       &yardv1.DrainWorkerRequest{WorkerId: "planted-worker-id"},
		shop("workers.stop"):        &yardv1.StopWorkerRequest{WorkerId: "planted-worker-id"},
		shop("workers.resume"):      &yardv1.ResumeWorkerRequest{WorkerId: "planted-worker-id"},
		shop("keys.list"):           &yardv1.ListKeysRequest{},
		shop("keys.get"):            &yardv1.GetKeyRequest{OrderKey: "planted"},
		shop("keys.unblock"):        &yardv1.UnblockKeyRequest{OrderKey: "planted"},
		shop("keys.skip"):           &yardv1.SkipKeyRequest{OrderKey: "planted"},
		shop("timers.count"):        &yardv1.CountTimersRequest{},
	}
	maps.Copy(all, goodSchedules())
	maps.Copy(all, goodAdministration())
	all[shop("audit.list")], all[shop("tasks.stuck")] = &yardv1.ListAuditRequest{}, &yardv1.StuckTasksRequest{}
	all[shop("tasks.end")] = &yardv1.EndTasksRequest{TaskIds: []string{id}, State: yardv1.TaskState_TASK_STATE_DEAD}
	return all
}

// goodAdministration are one good request per administrative endpoint.
func goodAdministration() map[string]codec.Message {
	return map[string]codec.Message{
		topology.Admin("domains.pause"):  &yardv1.PauseRequest{Name: "shop"},
		topology.Admin("domains.resume"): &yardv1.ResumeRequest{Name: "shop"},
		topology.Admin("domains.drain"):  &yardv1.PauseRequest{Name: "shop"},
		topology.Admin("domains.put"):    &yardv1.PutDomainRequest{Domain: &yardv1.Domain{Name: "planted"}},
		topology.Admin("domains.get"):    &yardv1.GetDomainRequest{Name: "shop"},
		topology.Admin("domains.list"):   &yardv1.ListDomainsRequest{},
		topology.Admin("queues.list"):    &yardv1.ListQueuesRequest{},
		topology.Admin("domains.top"):    &yardv1.TopDomainsRequest{},
		topology.Admin("domains.audit"):  &yardv1.ListAuditRequest{},
	}
}

// goodSchedules are one good request per endpoint of schedules.
func goodSchedules() map[string]codec.Message {
	shop := func(verb string) string { return topology.API("shop", verb) }
	return map[string]codec.Message{
		shop("schedules.put"):      &yardv1.PutScheduleRequest{Schedule: &yardv1.Schedule{Name: "planted", EveryMs: 1000, Task: &yardv1.NewTask{Type: "planted", Tasklist: "planted"}}},
		shop("schedules.get"):      &yardv1.GetScheduleRequest{Name: "planted"},
		shop("schedules.list"):     &yardv1.ListSchedulesRequest{},
		shop("schedules.delete"):   &yardv1.DeleteScheduleRequest{Name: "planted"},
		shop("schedules.pause"):    &yardv1.PauseScheduleRequest{Name: "planted"},
		shop("schedules.resume"):   &yardv1.ResumeScheduleRequest{Name: "planted"},
		shop("schedules.trigger"):  &yardv1.TriggerScheduleRequest{Name: "planted"},
		shop("schedules.backfill"): &yardv1.BackfillScheduleRequest{Name: "planted", FromMs: 1, ToMs: 2},
		shop("schedules.next"):     &yardv1.NextScheduleRequest{Name: "planted"},
	}
}

// TestReplySubjectsAreInboxes (R1): a request whose reply subject is a command of
// JetStream or a subject of the log is dropped before anything is appended or
// forwarded, whatever its verb.
func TestReplySubjectsAreInboxes(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newStage(t, func(d *Deps) {
		d.Log = slog.New(slog.NewTextHandler(&log, nil))
		d.Replies = natsrpc.NewReplies(topology.LenientInboxes(), "frontend", d.Metrics, d.Log)
	})
	var polls atomic.Int64
	s.matching(func(*nats.Msg) { polls.Add(1) }) // answers with 0 bytes, as an empty poll in protobuf does
	hostile := []string{
		"$JS.API.STREAM.DELETE." + topology.HistoryStream(0), topology.Event(1), topology.Submit(0, ids.LaneFirst, "shop", "main"),
		topology.API("shop", "tasks.submit"), "_INBOX", "_INBOX.", "_INBOXES.a", "a._INBOX.b",
		// Its answer's line would be longer than the server takes.
		topology.InboxPrefix + strings.Repeat("a", 4000),
	}
	sent := int64(0)
	for subject, message := range s.goodRequests() {
		body, err := codec.Marshal(codec.Protobuf, message)
		testkit.NoError(t, err)
		for _, reply := range hostile {
			sent++
			m := &nats.Msg{Subject: subject, Reply: reply, Data: body, Header: nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}}}
			testkit.NoError(t, s.client.PublishMsg(m))
		}
	}
	testkit.Eventually(t, within, func() error {
		if n := s.metrics.Counter(signals.RepliesRefused, "frontend").Value(); n != sent {
			return fmt.Errorf("%d of %d were dropped", n, sent)
		}
		return nil
	})
	if n := s.stored(); n != 0 || polls.Load() != 0 {
		t.Errorf("%d messages were stored and %d polls forwarded", n, polls.Load())
	}
	resp := &yardv1.ListDomainsResponse{}
	s.must(topology.Admin("domains.list"), &yardv1.ListDomainsRequest{}, resp)
	if len(resp.Domains) != 1 {
		t.Errorf("domains: %v", resp.Domains)
	}
	s.submit(1)
	s.stop()
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
}

// A request without a reply subject is carried out, except for a poll: the tasks it
// gets would be granted to no one.
func TestRequestsWithoutAReply(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var polls atomic.Int64
	s.matching(func(*nats.Msg) { polls.Add(1) })
	for _, verb := range []string{"tasks.poll", "tasks.submit"} {
		subject := topology.API("shop", verb)
		body, err := codec.Marshal(codec.JSON, s.goodRequests()[subject])
		testkit.NoError(t, err)
		testkit.NoError(t, s.client.Publish(subject, body))
	}
	testkit.Eventually(t, within, func() error {
		refused := s.metrics.Counter(signals.RequestsFailed, "tasks.poll", string(fault.InvalidArgument)).Value()
		if refused != 1 || s.stored() != 1 {
			return errors.New("not both were handled")
		}
		return nil
	})
	testkit.Equal(t, "polls were forwarded", polls.Load(), 0)
}

// I14: where each domain has inboxes of its own, a request of one domain cannot have its answer
// sent to another domain's user, an operator or a service, and administrative requests
// are answered to operators only.
func TestI14_StrictInboxesAreOfTheDomainThatAsks(t *testing.T) {
	t.Parallel()
	inboxes, err := topology.NewInboxes([]string{topology.TenantInboxes})
	testkit.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	s := newStage(t, func(d *Deps) { d.Replies = natsrpc.NewReplies(inboxes, "frontend", d.Metrics, log) })
	ask := func(subject, reply string) *nats.Subscription {
		t.Helper()
		inbox, err := s.client.SubscribeSync(reply)
		if err == nil {
			err = s.client.PublishRequest(subject, reply, []byte("{}"))
		}
		testkit.NoError(t, err)
		return inbox
	}
	types, domains := topology.API("shop", "types.list"), topology.Admin("domains.list")
	foreign := []*nats.Subscription{
		ask(types, topology.UserInbox("bank", "ann")+".1"), ask(types, topology.OperatorInbox("ann")+".1"),
		ask(types, topology.ServiceInbox("history")+".1"), ask(types, "_INBOX.1"),
		ask(domains, topology.UserInbox("shop", "ann")+".2"), ask(domains, topology.UserInbox("admin", "ann")+".2"),
	}
	for _, own := range []*nats.Subscription{ask(types, topology.UserInbox("shop", "ann")+".3"), ask(domains, topology.OperatorInbox("ann")+".3")} {
		if _, err := own.NextMsg(within); err != nil {
			t.Errorf("%s: %v", own.Subject, err)
		}
	}
	testkit.Eventually(t, within, func() error {
		if n := s.metrics.Counter(signals.RepliesRefused, "frontend").Value(); n != int64(len(foreign)) {
			return fmt.Errorf("%d of %d were dropped", n, len(foreign))
		}
		return nil
	})
	for _, sub := range foreign {
		if n, _, err := sub.Pending(); n != 0 || err != nil {
			t.Errorf("%s was answered: %d %v", sub.Subject, n, err)
		}
	}
}
