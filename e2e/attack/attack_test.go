package attack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/events"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

const (
	attacker, victim = "shop", "bank"
	within           = 90 * time.Second
)

var parts = topology.Partitioning{History: 2, Matching: 2}

// attackers are who tries, and how each connects.
func attackers() map[string]permissions.User {
	return map[string]permissions.User{
		"tenant":    sealed.Admin(attacker),
		"worker":    {Role: permissions.Worker, Domain: attacker, Name: sealed.UserName},
		"fenced":    {Role: permissions.Worker, Domain: attacker, Name: "fenced", Tasklists: "mail"},
		"submitter": {Role: permissions.Submitter, Domain: attacker, Name: sealed.UserName},
		"operator":  sealed.Operator(),
	}
}

// sealedStack is a system with the users and a domain for each side.
func sealedStack(t *testing.T) *stack.Stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	dir := t.TempDir()
	all := attackers()
	testkit.NoError(t, sealed.Render(dir, parts, []string{attacker, victim}, all["worker"], all["fenced"], all["submitter"]))
	s, err := stack.Start(ctx, stack.Config{Auth: dir, Tables: stack.TablesMemory, Partitioning: parts})
	testkit.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		testkit.Check(t, s.Close(ctx))
	})
	admin, err := yard.NewAdmin(connect(t, s, sealed.Operator()))
	testkit.NoError(t, err)
	for _, d := range []string{attacker, victim} {
		testkit.NoError(t, testkit.Err(admin.PutDomain(ctx, yard.Domain{Name: d})))
	}
	return s
}

func connect(t *testing.T, s *stack.Stack, u permissions.User, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := sealed.Connect(s, u, opts...)
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// passes tells whether the server takes an attempt. A connection of its own has no errors of others.
func passes(dial func(...nats.Option) (*nats.Conn, error), a attempt) (bool, error) {
	nc, err := dial(nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if errors.Is(err, nats.ErrAuthorization) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer nc.Close()
	if a.subscribe {
		if a.queue == "" {
			_, err = nc.SubscribeSync(a.subject)
		} else {
			_, err = nc.QueueSubscribeSync(a.subject, a.queue)
		}
	} else {
		err = nc.PublishMsg(&nats.Msg{Subject: a.subject, Reply: a.reply, Data: []byte(a.body)})
	}
	if err == nil {
		err = nc.FlushTimeout(within) // the server's refusal comes before its answer
	}
	if err != nil {
		return false, err
	}
	if err := nc.LastError(); err != nil {
		if strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

// try makes all attempts and returns those that got through.
func try(t *testing.T, who string, dial func(...nats.Option) (*nats.Conn, error), all []attempt) (through []attempt) {
	t.Helper()
	for _, a := range all {
		ok, err := passes(dial, a)
		if err != nil {
			t.Fatalf("%s: %s: %v", who, a, err)
		}
		if ok {
			through = append(through, a)
		}
	}
	t.Logf("%s: %d attempts, %d got through", who, len(all), len(through))
	return through
}

// allowed tells what a user may do and others of its kind may not.
func allowed(t *testing.T, u permissions.User, a attempt) bool {
	t.Helper()
	p, err := permissions.Of(u, parts)
	testkit.NoError(t, err)
	list := p.Publish
	if a.subscribe {
		list = p.Subscribe
	}
	for _, pattern := range list {
		if covers(pattern, a.subject) {
			return true
		}
	}
	return false
}

func covers(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		switch {
		case token == ">":
			return len(s) > i
		case i >= len(s), token != "*" && token != s[i]:
			return false
		}
	}
	return len(p) == len(s)
}

// I14: nothing that is not a tenant's gets through the permissions, from any of a tenant's users or from
// no one; and an operator, who may do more, gets through to nothing but that.
func TestI14_NoAttackGetsThroughTheSeal(t *testing.T) {
	testkit.Slow(t, "closes a system with polls in it, which takes seconds")
	s := sealedStack(t)
	all := attempts(parts)
	t.Run("attackers", func(t *testing.T) {
		for who, u := range attackers() {
			t.Run(who, func(t *testing.T) {
				t.Parallel()
				dial := func(opts ...nats.Option) (*nats.Conn, error) { return sealed.Connect(s, u, opts...) }
				for _, a := range try(t, who, dial, all) {
					if u.Role != permissions.Operator || !allowed(t, u, a) {
						t.Errorf("%s got through: %s", who, a)
					}
				}
			})
		}
		t.Run("anonymous", func(t *testing.T) {
			t.Parallel()
			dial := func(opts ...nats.Option) (*nats.Conn, error) { return nats.Connect(s.URL, opts...) }
			if through := try(t, "anonymous", dial, all); len(through) > 0 {
				t.Errorf("anonymous got through: %v", through)
			}
		})
	})
	workers(t, s)
	listeners(t, s)
	intact(t, s)
}

// listeners of events are admins and submitters of the domain, and no others. The SDK says that it is refused.
func listeners(t *testing.T, s *stack.Stack) {
	t.Helper()
	for who, u := range attackers() {
		dial := func(opts ...nats.Option) (*nats.Conn, error) { return sealed.Connect(s, u, opts...) }
		for _, subject := range []string{topology.TaskEventsOf(attacker), topology.TaskEvents(attacker, "", "mail")} {
			want := who == "tenant" || who == "submitter"
			if got, err := passes(dial, attempt{subject: subject, subscribe: true}); err != nil || got != want {
				t.Errorf("%s hears %s: %v %v, want %v", who, subject, got, err, want)
			}
		}
	}
	client, err := yard.NewClient(connect(t, s, sealed.Admin(attacker), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})), victim)
	testkit.NoError(t, err)
	testkit.Code(t, "events of another domain", testkit.Err(events.Listen(t.Context(), client, events.Filter{})), fault.PermissionDenied)
}

// workers may not submit or administer, and submitters not poll.
func workers(t *testing.T, s *stack.Stack) {
	t.Helper()
	may := map[string]string{
		"worker": "tasks.poll tasks.poll.mail tasks.poll.other tasks.complete tasks.fail tasks.heartbeat", "submitter": "tasks.submit tasks.get tasks.cancel tasks.update",
		"fenced": "tasks.poll.mail tasks.complete tasks.fail tasks.heartbeat",
		"tenant": strings.Join(verbs, " "), "operator": "",
	}
	for who, u := range attackers() {
		dial := func(opts ...nats.Option) (*nats.Conn, error) { return sealed.Connect(s, u, opts...) }
		for _, verb := range verbs {
			want := strings.Contains(" "+may[who]+" ", " "+verb+" ")
			got, err := passes(dial, attempt{subject: topology.API(attacker, verb), body: "{}"})
			if err != nil || got != want {
				t.Errorf("%s may %s: %v %v, want %v", who, verb, got, err, want)
			}
		}
	}
}

// intact checks that every stream is there, and the cluster's keys are what they were.
func intact(t *testing.T, s *stack.Stack) {
	t.Helper()
	nc, err := s.Connect("spy")
	testkit.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	names := 0
	for range js.StreamNames(t.Context()).Name() {
		names++
	}
	testkit.Equal(t, "streams", names, len(topology.Streams(parts))+len(topology.Buckets()))
	if got, err := provision.Partitioning(t.Context(), js); err != nil || got != parts {
		t.Errorf("%v %v", got, err)
	}
}

// The same attempts on a server without the permissions: most get through, so it is them that hold.
func TestTheSuiteCanFail(t *testing.T) {
	testkit.Slow(t, "sends what every user may not")
	server := natskit.Run(t)
	js, err := jetstream.New(server.Connect(t))
	testkit.NoError(t, err)
	testkit.NoError(t, provision.Apply(t.Context(), js, parts, provision.Options{}))
	all := attempts(parts)
	open := func(opts ...nats.Option) (*nats.Conn, error) { return nats.Connect(server.URL, opts...) }
	if through := try(t, "anyone, without permissions", open, all); len(through) < len(all)*9/10 {
		t.Errorf("%d of %d", len(through), len(all))
	}
}

// answersWithin is how long answers are waited for that must not come.
const answersWithin = 2 * time.Second

// R1: a reply subject that points at the engine's inside, at a command of the server or at somebody else's
// inbox is answered by no one, whatever the verb.
func TestR1_NoServiceIsADeputy(t *testing.T) {
	testkit.Slow(t, "sends what every user may not")
	s := sealedStack(t)
	spy, err := s.Connect("spy")
	testkit.NoError(t, err)
	defer spy.Close()
	nc := connect(t, s, sealed.Admin(attacker), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // some the server refuses itself
	targets := append(append(places(parts), commands(parts)...), inboxes()...)
	sent := map[string]bool{}
	for _, target := range targets {
		sent[target] = true
	}
	seen, err := spy.SubscribeSync(">")
	testkit.NoError(t, err)
	_ = seen.SetPendingLimits(-1, -1)
	testkit.NoError(t, spy.Flush())
	answers := sendAll(t, nc, targets)
	testkit.NoError(t, spy.Flush())
	// The system is never silent for long. Answers have a time to come; then all is read that the spy has.
	const last = "attack.last"
	time.AfterFunc(answersWithin, func() { _ = spy.Publish(last, nil) })
	mark := map[string]bool{}
	for {
		m, err := seen.NextMsg(2 * answersWithin)
		testkit.NoError(t, err)
		if m.Subject == last {
			break
		}
		// An answer has an error's or a content type's header; what services tell each other has neither.
		if sent[m.Subject] && (m.Header.Get(fault.HeaderCode) != "" || m.Header.Get("Content-Type") != "") {
			mark[m.Subject] = true
		}
	}
	if len(mark) > 0 {
		t.Errorf("answered: %v", mark)
	}
	client, err := yard.NewClient(nc, attacker)
	testkit.NoError(t, err)
	d, err := client.Wire().DescribeTasklist(t.Context(), "mail")
	testkit.NoError(t, err)
	testkit.Equal(t, "tasks were stored", d.Ready, 0)
	t.Logf("%d requests with a foreign reply subject, %d answered", answers, len(mark))
	intact(t, s)
}

// sendAll sends a request of each verb with each reply subject, as JSON and as protobuf in turn, and
// returns how many once all are handled.
func sendAll(t *testing.T, nc *nats.Conn, targets []string) (n int) {
	t.Helper()
	bodies := map[string]string{"tasks.poll": `{"tasklist":"mail","max_tasks":1}`, "tasks.submit": `{"tasklist":"mail","tasks":[{"type":"deputy"}]}`}
	for _, verb := range verbs {
		body := bodies[verb]
		if body == "" {
			body = "{}"
		}
		for i, target := range targets {
			m := &nats.Msg{Subject: topology.API(attacker, verb), Reply: target, Data: []byte(body), Header: nats.Header{"Content-Type": {"application/protobuf"}}}
			if i%2 == 0 {
				m.Header = nil
			}
			testkit.NoError(t, nc.PublishMsg(m))
			n++
		}
		// One endpoint takes its requests one after the other.
		if _, err := nc.Request(topology.API(attacker, verb), []byte("{}"), within); err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
	}
	return n
}

// I14: another domain's task ids and tokens are unknown, in every verb that takes one.
func TestI14_ForeignIDsAndTokens(t *testing.T) {
	s := sealedStack(t)
	owner, thief := connect(t, s, sealed.Admin(victim)), connect(t, s, sealed.Admin(attacker))
	ask := func(nc *nats.Conn, domain, verb, body string) string {
		t.Helper()
		m, err := nc.Request(topology.API(domain, verb), []byte(body), within)
		if err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
		if code := m.Header.Get(fault.HeaderDescription); code != "" {
			return code + " " + string(m.Data)
		}
		return string(m.Data)
	}
	ask(owner, victim, "tasks.submit", `{"tasklist":"mail","tasks":[{"type":"x"}]}`)
	ask(owner, victim, "tasks.submit", `{"tasklist":"mail","tasks":[{"type":"x","delay_ms":1800000}]}`)
	var raw struct {
		Tasks []map[string]any `json:"tasks"`
	}
	if err := json.Unmarshal([]byte(ask(owner, victim, "tasks.poll", `{"tasklist":"mail","max_tasks":1,"wait_ms":30000}`)), &raw); err != nil || len(raw.Tasks) != 1 {
		t.Fatal(raw, err)
	}
	id, token := fmt.Sprint(raw.Tasks[0]["task_id"]), fmt.Sprint(raw.Tasks[0]["token"])
	proof := fmt.Sprintf(`{"tasks":[{"task_id":%q,"token":%q}]}`, id, token)
	tried := 0
	for verb, body := range map[string]string{
		"tasks.complete": proof, "tasks.fail": proof, "tasks.heartbeat": proof,
		"tasks.cancel": fmt.Sprintf(`{"task_ids":[%q]}`, id), "tasks.get": fmt.Sprintf(`{"task_id":%q}`, id),
		"tasks.explain": fmt.Sprintf(`{"task_id":%q}`, id),
	} {
		tried++
		if got := ask(thief, attacker, verb, body); !strings.Contains(got, "NOT_FOUND") && !strings.Contains(got, "STALE") {
			t.Errorf("%s: %s", verb, got)
		}
	}
	for _, body := range []string{"{}", `{"due_within_ms":3600000}`} {
		if got := ask(thief, attacker, "tasks.list", body); strings.Contains(got, `"task_id"`) {
			t.Errorf("tasks.list %s: %s", body, got)
		}
	}
	if got := ask(thief, attacker, "timers.count", "{}"); strings.Contains(got, `"tasks"`) {
		t.Errorf("timers.count: %s", got)
	}
	if got := ask(owner, victim, "tasks.complete", proof); !strings.Contains(got, `"OK"`) {
		t.Errorf("the owner's own: %s", got)
	}
	t.Logf("%d verbs with another domain's id and token, 0 got through", tried+1)
}
