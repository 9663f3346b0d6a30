package api_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// listen subscribes until the test ends.
func (l *line) listen(subject string) *nats.Subscription {
	l.t.Helper()
	sub, err := l.nc.SubscribeSync(subject)
	if err == nil {
		err = l.nc.Flush()
	}
	testkit.NoError(l.t, err)
	return sub
}

func (l *line) publish(subject string, m natsrpc.Message) {
	l.t.Helper()
	data, err := m.MarshalVT()
	if err == nil {
		err = l.nc.Publish(subject, data)
	}
	testkit.NoError(l.t, err)
}

// pollSubject is where the owner of an epoch takes polls.
func pollSubject(epoch uint64) string { return topology.MatchingPoll(0, epoch) }

// served waits until the shard's subscriptions are there.
func (l *line) served(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		_, err := l.nc.Request(topology.MatchingCall(0, "describe"), nil, time.Second)
		return err
	})
}

// TestR41_AnswersThatNobodyGetsAreTold, with and without anybody there, by the answer's id.
func TestR41_AnswersThatNobodyGetsAreTold(t *testing.T) {
	t.Parallel()
	l, n := serving(t)
	inbox := l.listen("inbox.there")
	task := testkit.Encoded(t, &yardv1.PolledTask{TaskId: "x", Payload: &yardv1.Payload{Data: []byte(`{"a":1}`)}})
	n.do(match.Effects{Replies: waiting.Replies{Answers: []grab.Answer{
		{ID: 5, ReplyTo: "inbox.there", Tasks: [][]byte{task, task}},
		{ID: 6, ReplyTo: "inbox.gone", Tasks: [][]byte{task}},
		{ReplyTo: "inbox.gone"},
		{ID: 7, ReplyTo: "", Tasks: [][]byte{task}},
		{ID: 8, ReplyTo: "inbox.there", JSON: true, Tasks: [][]byte{[]byte("\xff")}},
		{ReplyTo: "inbox.there", JSON: true, Tasks: [][]byte{task}},
		{ReplyTo: "inbox.there", JSON: true},
	}, Refusals: []waiting.Refusal{{ReplyTo: "inbox.there", Why: fault.New(fault.ResourceExhausted, "full").After(time.Second)}}}})
	n.saw(t, func(in *match.Inputs) error {
		if slices.Sort(in.Bounced); !slices.Equal(in.Bounced, []uint64{6, 7, 8}) {
			return fmt.Errorf("bounced are %v", in.Bounced)
		}
		return nil
	})
	m, err := inbox.NextMsg(patience)
	var resp yardv1.PollResponse
	if err != nil || resp.UnmarshalVT(m.Data) != nil || len(resp.Tasks) != 2 || resp.Tasks[1].TaskId != "x" ||
		m.Header.Get(codec.HeaderContentType) != string(codec.Protobuf) {
		t.Fatalf("%v %v", m, err)
	}
	for _, want := range []string{`{"tasks":[{"task_id":"x","payload":{"a":1}}]}`, `{"tasks":[]}`} {
		if m, err = inbox.NextMsg(patience); err != nil || string(m.Data) != want {
			t.Fatalf("%s %v", m.Data, err)
		}
	}
	m, err = inbox.NextMsg(patience)
	testkit.NoError(t, err)
	e := fault.Decode(m.Header.Get(fault.HeaderCode), "", m.Data)
	if e == nil || e.Code != fault.ResourceExhausted || e.RetryAfter != time.Second {
		t.Fatalf("refused with %v", e)
	}
}

// An answer that somebody replies to was heard: its tasks are not taken back.
func TestAnswersThatAreRepliedToAreHeard(t *testing.T) {
	t.Parallel()
	l, n := serving(t)
	inbox := l.listen("inbox.there")
	task := testkit.Encoded(t, &yardv1.PolledTask{TaskId: "x"})
	n.do(match.Effects{Replies: waiting.Replies{Answers: []grab.Answer{{ID: 5, ReplyTo: "inbox.there", Tasks: [][]byte{task}}}}})
	m, err := inbox.NextMsg(patience)
	if err == nil {
		err = errors.Join(m.Respond(nil), m.Respond([]byte("thanks")), l.nc.Flush())
	}
	testkit.NoError(t, err)
	n.do(match.Effects{Replies: waiting.Replies{Answers: []grab.Answer{{ID: 6, ReplyTo: "inbox.gone", Tasks: [][]byte{task}}}}})
	n.saw(t, func(in *match.Inputs) error {
		if !slices.Equal(in.Bounced, []uint64{6}) {
			return fmt.Errorf("bounced are %v", in.Bounced)
		}
		return nil
	})
}

// Verdicts are read with their partition, of this ownership only.
func TestVerdictsAreOfTheirPartition(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	events := l.listen(topology.EventRequests(1))
	n := l.serve(3)
	l.served(t)
	n.do(match.Effects{Effects: grab.Effects{Batches: []grab.Batch{{Partition: 1, Number: 9, Fence: true}}}})
	m, err := events.NextMsg(patience)
	var batch logv1.EventBatch
	if err != nil || batch.UnmarshalVT(m.Data) != nil || batch.Shard != 1 || batch.ShardEpoch != 3 || batch.RequestId != 9 ||
		len(batch.Events) != 1 || batch.Events[0].Kind != logv1.EventKind_EVENT_KIND_FENCE {
		t.Fatalf("%v %v", &batch, err)
	}
	if err := l.nc.Publish(batch.ReplyTo, []byte("\xff\xff")); err != nil { // dropped
		t.Fatal(err)
	}
	l.publish(batch.ReplyTo[:len(batch.ReplyTo)-1]+"7", &logv1.VerdictBatch{}) // there is no partition 7
	l.publish(batch.ReplyTo, &logv1.VerdictBatch{RequestId: 9, First: 2, Verdicts: []*logv1.EventVerdict{{Code: "STALE", Fenced: true}}})
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Verdicts) != 1 {
			return fmt.Errorf("%d verdicts", len(in.Verdicts))
		}
		v := in.Verdicts[0]
		if v.Partition != 1 || v.Batch != 9 || v.First != 2 || len(v.All) != 1 || !v.All[0].Fenced || v.All[0].Refused != "STALE" {
			t.Fatalf("%v", v)
		}
		return nil
	})
}

func TestPollsAreReadOrRefused(t *testing.T) {
	t.Parallel()
	l, n := serving(t)
	for _, unreadable := range [][]byte{[]byte("\xff\xff"), nil} {
		m, err := l.nc.Request(pollSubject(1), unreadable, patience)
		testkit.NoError(t, err)
		if e := fault.Decode(m.Header.Get(fault.HeaderCode), "", m.Data); e == nil || e.Code != fault.Internal {
			t.Fatalf("an unreadable poll: %v", e)
		}
	}
	l.publish(pollSubject(1), &rpcv1.Poll{
		Domain: domain, Tasklist: tasklist, MaxTasks: 7, Types: []string{"b", "a"}, Worker: "w", ReplyTo: "_INBOX.worker", Json: true, WaitMs: 59_990,
	})
	l.publish(pollSubject(1), &rpcv1.Poll{Domain: domain, Tasklist: tasklist, MaxTasks: 1, ReplyTo: "_INBOX.worker"})
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Polls) != 2 {
			return fmt.Errorf("%d polls", len(in.Polls))
		}
		p := in.Polls[0] // R40: it waits for as long as it says, whatever any clock shows
		if p.Domain != domain || p.Tasklist != tasklist || p.Max != 7 || len(p.Types) != 2 || p.Worker != "w" || p.ReplyTo != "_INBOX.worker" || !p.JSON ||
			p.For != 59_990*time.Millisecond || in.Polls[1].For != 0 {
			t.Fatalf("%v", in.Polls)
		}
		return nil
	})
}

// Hints of shards reach all shards, hungry ones history.
func TestHintsAreHeard(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	hungry := l.listen(topology.HintMissingTriggers)
	n := l.serve(1)
	l.served(t)
	for _, subject := range []string{topology.HintFreed, topology.HintRestore} {
		if err := l.nc.Publish(subject, []byte("\xff\xff")); err != nil { // dropped
			t.Fatal(err)
		}
	}
	n.do(match.Effects{
		Freed:   []match.LimitHint{{Domain: "d", Limits: []table.Ref{"type/a", "type/b"}}},
		Restore: []match.LimitHint{{Domain: "e", Limits: []table.Ref{"type/c"}}},
		Hungry:  []match.Hungry{{Domain: "d", Tasklist: "l", Present: []string{"a", "b"}}},
	})
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Freed) == 0 || len(in.Restore) == 0 {
			return errors.New("not heard")
		}
		if fmt.Sprint(in.Freed, in.Restore) != "[{d [type/a type/b]}] [{e [type/c]}]" {
			t.Fatalf("%v %v", in.Freed, in.Restore)
		}
		return nil
	})
	m, err := hungry.NextMsg(patience)
	var h rpcv1.Hungry
	if err != nil || h.UnmarshalVT(m.Data) != nil || h.Domain != "d" || h.Tasklist != "l" || !slices.Equal(h.Present, []string{"a", "b"}) {
		t.Fatalf("%v %v", &h, err)
	}
}

// R1, I14: a client that reaches the subject of polls cannot have tasks of a domain sent to another
// domain's inbox, or an answer to a subject that is none.
func TestR1_PollsAreAnsweredInInboxesOnly(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	inboxes, err := topology.NewInboxes([]string{topology.TenantInboxes})
	testkit.NoError(t, err)
	metrics := signalkit.Metrics(t)
	p := l.portWith(l.server.Connect(t, nats.CustomInboxPrefix(topology.ServiceInbox("matching"))), 1, natsrpc.NewReplies(inboxes, "matching", metrics, testLog()))
	n := l.serveOn(p)
	l.served(t)
	own := topology.UserInbox(domain, "ann") + ".1"
	wrong := []string{"$JS.API.STREAM.DELETE.YARD_HISTORY_0", topology.Event(0), topology.UserInbox("bank", "ann") + ".1", "_INBOX.1", own + "\r\nPING"}
	for _, to := range wrong {
		l.publish(pollSubject(1), &rpcv1.Poll{Domain: domain, Tasklist: tasklist, MaxTasks: 1, ReplyTo: to})
	}
	l.publish(pollSubject(1), &rpcv1.Poll{Domain: domain, Tasklist: tasklist, MaxTasks: 1, ReplyTo: own, AnsweredTo: topology.Event(0)})
	for _, subject := range []string{pollSubject(1), topology.MatchingCall(0, "describe")} { // the poll is unreadable
		testkit.NoError(t, l.nc.PublishRequest(subject, topology.Event(0), []byte{0xff}))
	}
	l.publish(pollSubject(1), &rpcv1.Poll{Domain: domain, Tasklist: tasklist, MaxTasks: 1, ReplyTo: own})
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Polls) == 0 {
			return errors.New("no poll was read")
		}
		if len(in.Polls) != 1 || in.Polls[0].ReplyTo != own {
			t.Fatalf("%v", in.Polls)
		}
		return nil
	})
	testkit.Eventually(t, time.Minute, func() error {
		if n := metrics.Counter(signals.RepliesRefused, "matching").Value(); n != int64(len(wrong)+3) {
			return fmt.Errorf("%d were counted", n)
		}
		return nil
	})
}

// R1: what history found undelivered in its log is sent again to the domain's own inboxes only.
func TestR1_UndeliveredGrantsGoToInboxesOfTheirDomain(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	inboxes, err := topology.NewInboxes([]string{topology.TenantInboxes})
	testkit.NoError(t, err)
	p := l.portWith(l.nc, 1, natsrpc.NewReplies(inboxes, "matching", nil, testLog()))
	own, id := topology.UserInbox(domain, "ann")+".1", make([]byte, 16)
	serve(t, l, "undelivered", func(*rpcv1.UndeliveredRequest) (natsrpc.Message, error) {
		return &rpcv1.UndeliveredResponse{Grants: []*rpcv1.UndeliveredGrant{
			{ReplyTo: own, Domain: "bank", TaskId: id}, {ReplyTo: topology.Event(0), Domain: domain, TaskId: id}, {ReplyTo: own, Domain: domain, TaskId: id},
		}}, nil
	})
	got, err := p.Ask(t.Context(), question.Question{Kind: question.Undelivered, Partition: 1})
	if err != nil || len(got.Undelivered) != 3 {
		t.Fatalf("%v %v", got, err)
	}
	for i, want := range []string{"", "", own} {
		testkit.Equal(t, fmt.Sprintf("%d goes to", i), got.Undelivered[i].ReplyTo, want)
	}
}
