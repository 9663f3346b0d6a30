package frontend

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/ownership"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// stage is a frontend on a real server, and a client of it.
type stage struct {
	t       *testing.T
	server  *natskit.Server
	client  *nats.Conn
	js      jetstream.JetStream
	metrics *telemetry.Metrics
	tokens  *ids.Tokens
	stop    func()
}

var partitioning = topology.Partitioning{History: 2, Matching: 2}

func newStage(t *testing.T, change ...func(*Deps)) *stage {
	t.Helper()
	s := &stage{t: t, metrics: signalkit.Metrics(t)}
	s.server = natskit.Run(t, natskit.WithOptions(func(o *server.Options) { o.MaxPayload = 2 << 20 }))
	s.client = s.server.Connect(t, nats.CustomInboxPrefix(topology.OperatorInbox("stage")))
	var err error
	s.js, err = jetstream.New(s.client)
	testkit.NoError(t, err)
	ctx := t.Context()
	testkit.NoError(t, provision.Apply(ctx, s.js, partitioning, provision.Options{}))
	s.readTokens()
	env := process.Env{NATS: s.server.Connect(t), Partitioning: partitioning, Node: "n1", Metrics: s.metrics}
	d := Deps{Env: env, Config: DefaultConfig()}
	for _, f := range change {
		f(&d)
	}
	service, err := New(d)
	testkit.NoError(t, err)
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(running) }()
	s.stop = sync.OnceFunc(func() {
		stop()
		testkit.Check(t, <-ended)
	})
	t.Cleanup(s.stop)
	select {
	case <-service.Ready():
	case err := <-ended:
		t.Fatalf("the frontend did not start: %v", err)
	}
	s.must(topology.Admin("domains.put"), &yardv1.PutDomainRequest{Domain: &yardv1.Domain{Name: "shop"}}, &yardv1.PutDomainResponse{})
	return s
}

// readTokens has the test print tokens as history does.
func (s *stage) readTokens() {
	s.t.Helper()
	config, err := s.js.KeyValue(s.t.Context(), topology.ConfigBucket)
	testkit.NoError(s.t, err)
	secret, err := provision.TokenSecret(s.t.Context(), config)
	testkit.NoError(s.t, err)
	s.tokens = ids.NewTokens(secret)
}

// within bounds every wait of these tests; it is for a broken run.
const within = 60 * time.Second

func (s *stage) raw(subject string, header nats.Header, body []byte) *nats.Msg {
	s.t.Helper()
	answer, err := s.client.RequestMsg(&nats.Msg{Subject: subject, Header: header, Data: body}, within)
	if err != nil {
		s.t.Fatalf("%s: %v", subject, err)
	}
	return answer
}

func refusalOf(m *nats.Msg) *fault.Error {
	return fault.Decode(m.Header.Get(fault.HeaderCode), m.Header.Get(fault.HeaderDescription), m.Data)
}

// ask sends a request in protobuf and reads the answer into resp.
func (s *stage) ask(subject string, req, resp codec.Message) *fault.Error {
	s.t.Helper()
	body, err := codec.Marshal(codec.Protobuf, req)
	testkit.NoError(s.t, err)
	answer := s.raw(subject, nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}}, body)
	if e := refusalOf(answer); e != nil {
		return e
	}
	testkit.Equal(s.t, fmt.Sprintf("%s was answered as", subject), answer.Header.Get(codec.HeaderContentType), string(codec.Protobuf))
	testkit.NoError(s.t, codec.Unmarshal(codec.Protobuf, answer.Data, resp))
	return nil
}

func (s *stage) must(subject string, req, resp codec.Message) {
	s.t.Helper()
	if e := s.ask(subject, req, resp); e != nil {
		s.t.Fatalf("%s: %v", subject, e)
	}
}

func (s *stage) submit(n int) []string {
	s.t.Helper()
	resp := &yardv1.SubmitResponse{}
	s.must(topology.API("shop", "tasks.submit"), tasks(n), resp)
	return resp.TaskIDs()
}

// stored is how many messages all history logs hold.
func (s *stage) stored() (messages int) {
	s.t.Helper()
	for p := range partitioning.History {
		stream, err := s.js.Stream(s.t.Context(), topology.HistoryStream(p))
		testkit.NoError(s.t, err)
		messages += int(stream.CachedInfo().State.Msgs)
	}
	return messages
}

// records are all tasks in the history log of partition p.
func (s *stage) records(p int) (all []*logv1.Record) {
	s.t.Helper()
	stream, err := s.js.Stream(s.t.Context(), topology.HistoryStream(p))
	testkit.NoError(s.t, err)
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(s.t.Context(), seq)
		testkit.NoError(s.t, err)
		var b logv1.Batch
		testkit.NoError(s.t, b.UnmarshalVT(m.Data))
		all = append(all, b.Tasks...)
	}
	return all
}

func tasks(n int) *yardv1.SubmitRequest {
	req := &yardv1.SubmitRequest{Tasklist: "main"}
	for i := range n {
		req.Tasks = append(req.Tasks, &yardv1.NewTask{Type: "email.send", Payload: &yardv1.Payload{Data: fmt.Appendf(nil, "%d", i)}})
	}
	return req
}

func TestJSONIsAnsweredInJSON(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	answer := s.raw(topology.API("shop", "tasks.submit"), nil, []byte(`{"tasklist":"main","tasks":[{"type":"email.send","payload":{"to":1}},{"type":"a","priority":1}]}`))
	if e := refusalOf(answer); e != nil {
		t.Fatal(e)
	}
	testkit.Equal(t, "answered as", answer.Header.Get(codec.HeaderContentType), string(codec.JSON))
	var resp struct {
		Results []struct {
			TaskID  string `json:"task_id"`
			Outcome string `json:"outcome"`
		} `json:"results"`
	}
	if err := json.Unmarshal(answer.Data, &resp); err != nil || len(resp.Results) != 2 || resp.Results[1].TaskID == "" || resp.Results[1].Outcome != "created" {
		t.Fatalf("answer %s: %v", answer.Data, err)
	}
	all := append(s.records(0), s.records(1)...)
	if len(all) != 2 || string(all[0].Payload) != `{"to":1}` || all[0].Policy.MaxAttempts != 5 || all[1].Priority != 1 {
		t.Errorf("stored %v", all)
	}
}

func TestConcurrentRequestsAreMerged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const requests = 400
	var all sync.WaitGroup
	for range requests {
		all.Go(func() { s.submit(2) })
	}
	all.Wait()
	n := s.stored()
	if n >= requests {
		t.Errorf("%d messages for %d requests", n, requests)
	}
	if got := s.metrics.Counter(signals.SubmitMessages).Value(); got != int64(n) {
		t.Errorf("%d messages were counted, %d are stored", got, n)
	}
	testkit.Equal(t, "tasks were counted", s.metrics.Counter(signals.TasksAccepted, "shop", "main").Value(), 2*requests)
	testkit.Equal(t, "tasks are stored", len(s.records(0))+len(s.records(1)), 2*requests)
}

func TestI1_AMissingOrFullPartitionIsPassedOver(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(*stage){
		"missing": func(s *stage) {
			testkit.NoError(s.t, s.js.DeleteStream(s.t.Context(), topology.HistoryStream(0)))
		},
		"full": func(s *stage) {
			stream, err := s.js.Stream(s.t.Context(), topology.HistoryStream(0))
			testkit.NoError(s.t, err)
			cfg := stream.CachedInfo().Config
			cfg.MaxBytes = 1
			testkit.NoError(s.t, testkit.Err(s.js.UpdateStream(s.t.Context(), cfg)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			harm(s)
			for range 20 {
				s.submit(3)
			}
			testkit.Equal(t, "tasks in the healthy partition", len(s.records(1)), 60)
		})
	}
}

// matching takes the polls of all shards, in an epoch of its own.
func (s *stage) matching(take func(*nats.Msg)) {
	s.t.Helper()
	kv, err := s.js.KeyValue(s.t.Context(), topology.CheckpointsBucket)
	testkit.NoError(s.t, err)
	for m := range partitioning.Matching {
		term, err := ownership.TakeEpoch(s.t.Context(), kv, topology.MatchingEpoch(m), 0)
		testkit.NoError(s.t, err)
		testkit.NoError(s.t, testkit.Err(s.client.Subscribe(topology.MatchingPoll(m, term.Number()), take)))
		testkit.NoError(s.t, term.Open(s.t.Context()))
	}
}

// TestR42AParkedPollEndsWithItsOwner: the next owner's epoch ends it, and the poll after it
// goes to that one.
func TestR42AParkedPollEndsWithItsOwner(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	body, err := codec.Marshal(codec.JSON, &yardv1.PollRequest{Tasklist: "main", MaxTasks: 1, WaitMs: 60_000})
	testkit.NoError(t, err)
	answer, err := s.client.SubscribeSync(s.client.NewInbox())
	testkit.NoError(t, err)
	polls := make(chan string, 9)
	poll := func() string {
		t.Helper()
		testkit.NoError(t, s.client.PublishRequest(topology.API("shop", "tasks.poll"), answer.Subject, body))
		return <-polls
	}
	take := func(msg *nats.Msg) { polls <- msg.Subject }
	s.matching(take)
	if subject := poll(); !strings.HasSuffix(subject, ".1") {
		t.Errorf("the first poll went to %s", subject)
	}
	s.matching(take)
	m, err := answer.NextMsg(10 * time.Second)
	testkit.NoError(t, err)
	resp := &yardv1.PollResponse{}
	if err := codec.Unmarshal(codec.JSON, m.Data, resp); err != nil || len(resp.Tasks) != 0 || len(m.Header.Get(fault.HeaderCode)) > 0 {
		t.Errorf("answered %q %v: %v", m.Data, m.Header, err)
	}
	if subject := poll(); !strings.HasSuffix(subject, ".2") {
		t.Errorf("the second poll went to %s", subject)
	}
}

func TestPollReachesMatchingAndIsAnsweredByIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.matching(func(msg *nats.Msg) {
		var p rpcv1.Poll
		testkit.Check(t, p.UnmarshalVT(msg.Data))
		data, err := codec.Marshal(codec.Protobuf, &yardv1.PollResponse{Tasks: []*yardv1.PolledTask{{Type: p.Tasklist, Tasklist: p.Tasklist}}})
		if err != nil || p.Json {
			t.Error(err, p.Json)
		}
		testkit.Check(t, s.client.PublishMsg(&nats.Msg{Subject: p.ReplyTo, Data: data, Header: nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}}}))
	})
	for i := range 5 {
		resp := &yardv1.PollResponse{}
		s.must(topology.API("shop", "tasks.poll"), &yardv1.PollRequest{Tasklist: fmt.Sprint("list", i), MaxTasks: 1, WaitMs: 1000}, resp)
		if len(resp.Tasks) != 1 || resp.Tasks[0].Tasklist != fmt.Sprint("list", i) {
			t.Errorf("got %v", resp)
		}
	}
}

func TestMicroTellsOfTheService(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var info struct {
		Name      string `json:"name"`
		Endpoints []struct {
			Subject  string            `json:"subject"`
			Metadata map[string]string `json:"metadata"`
		} `json:"endpoints"`
	}
	testkit.NoError(t, json.Unmarshal(s.raw("$SRV.INFO.yard-frontend", nil, nil).Data, &info))
	found := map[string]bool{}
	for _, e := range info.Endpoints {
		found[e.Subject] = true
		for _, key := range []string{"request_schema", "response_schema"} {
			if !json.Valid([]byte(e.Metadata[key])) {
				t.Errorf("%s of %s is not JSON: %s", key, e.Subject, e.Metadata[key])
			}
		}
		if e.Metadata["description"] == "" {
			t.Errorf("%s says nothing", e.Subject)
		}
	}
	for _, subject := range []string{topology.APIAny("tasks.submit"), topology.APIAny("types.get"), topology.Admin("domains.list")} {
		if !found[subject] {
			t.Errorf("%s is not served", subject)
		}
	}
}

func TestStopAnswersWhatHasArrived(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	inbox, err := s.client.SubscribeSync(s.client.NewInbox())
	testkit.NoError(t, err)
	body, err := codec.Marshal(codec.JSON, tasks(10))
	testkit.NoError(t, err)
	const requests = 200
	for range requests {
		testkit.NoError(t, s.client.PublishRequest(topology.API("shop", "tasks.submit"), inbox.Subject, body))
	}
	testkit.NoError(t, s.client.Flush()) // they are the server's now
	s.stop()
	for i := range requests {
		m, err := inbox.NextMsg(within)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if e := refusalOf(m); e != nil {
			t.Fatalf("answer %d: %v", i, e)
		}
	}
	testkit.Equal(t, "tasks", len(s.records(0))+len(s.records(1)), 10*requests)
}
