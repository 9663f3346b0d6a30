package yard_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// endpoint answers the requests of one subject one after the other, and the last answer again and again. A fault is a
// refusal, nil is no answer.
type endpoint[Req any] struct {
	asked []*Req
	at    []time.Time
}

// requests are what was asked so far, once all that is under way has come.
func (e *endpoint[Req]) requests() []*Req {
	synctest.Wait()
	return e.asked
}

// times are when.
func (e *endpoint[Req]) times() []time.Time {
	synctest.Wait()
	return e.at
}

func answering[Req any, P interface {
	*Req
	codec.Message
}](t *testing.T, s *stack, subject string, answers ...any) *endpoint[Req] {
	t.Helper()
	e := &endpoint[Req]{}
	sub, err := s.engine.nc.Subscribe(subject, func(msg *nats.Msg) {
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		e.asked, e.at = append(e.asked, read[Req, P](s.engine, msg)), append(e.at, time.Now())
		switch a := answers[min(len(e.asked), len(answers))-1].(type) {
		case *fault.Error:
			s.engine.refuse(msg, a)
		case codec.Message:
			s.engine.answer(msg.Reply, a)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() }) // the connection may be gone already
	if err := s.engine.nc.FlushWithContext(soon(t)); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTypesGoBothWaysWhole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		stored := &yardv1.TaskType{
			Name: "email.send", StartToCloseMs: 60_000, HeartbeatTimeoutMs: 5000, MaxConcurrency: 7, Limits: []string{"acme", "mail"}, Cost: 5, Revision: 12,
			Retry: &yardv1.RetryPolicy{
				MaxAttempts: 3, InitialIntervalMs: 1500, Backoff: 1.5, MaxIntervalMs: 90_000,
				NonRetryable: []string{"a", "b"}, ByError: []*yardv1.ErrorRetry{{ErrorType: "c", InitialIntervalMs: 1, Backoff: 2, MaxIntervalMs: 3, MaxAttempts: 4}, {ErrorType: "d"}},
				Jitter: yardv1.Jitter_JITTER_EQUAL, MaxDeliveries: 9, OnLost: yardv1.OnLost_ON_LOST_FAIL, OnTimeout: yardv1.OnTimeout_ON_TIMEOUT_DEAD,
			},
		}
		want := yard.TaskType{
			Name: "email.send", StartToClose: time.Minute, HeartbeatTimeout: 5 * time.Second, MaxConcurrency: 7, Limits: []string{"acme", "mail"}, Cost: 5, Revision: 12,
			Retry: &yard.RetryPolicy{
				MaxAttempts: 3, InitialInterval: 1500 * time.Millisecond, Backoff: 1.5, MaxInterval: 90 * time.Second,
				NonRetryable: []string{"a", "b"}, ByError: []yard.ErrorRetry{{ErrorType: "c", InitialInterval: time.Millisecond, Backoff: 2, MaxInterval: 3 * time.Millisecond, MaxAttempts: 4}, {ErrorType: "d"}},
				Jitter: yard.JitterEqual, MaxDeliveries: 9, OnLost: yard.OnLostFail, OnTimeout: yard.OnTimeoutDead,
			},
		}
		same := func(what string, got yard.TaskType) {
			t.Helper()
			if got.Retry == nil || !reflect.DeepEqual(got.Retry, want.Retry) {
				t.Errorf("%s: the policy is %+v", what, got.Retry)
			}
			got.Retry = want.Retry
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %+v", what, got)
			}
		}
		put := answering[yardv1.PutTypeRequest](t, s, topology.API("shop", "types.put"), &yardv1.PutTypeResponse{Type: stored})
		got, err := s.client.PutType(soon(t), want)
		if err != nil {
			t.Fatal(err)
		}
		same("put", got)
		if sent := put.requests()[0].Type; !proto.Equal(sent, stored) {
			t.Errorf("sent was %v", sent)
		}
		answering[yardv1.GetTypeRequest](t, s, topology.API("shop", "types.get"), &yardv1.GetTypeResponse{Type: stored, SlotsInUse: 4})
		if got, err = s.client.GetType(soon(t), "email.send"); err != nil || got.SlotsInUse != 4 {
			t.Fatal(got, err)
		}
		got.SlotsInUse = 0
		same("get", got)
		gone := answering[yardv1.DeleteTypeRequest](t, s, topology.API("shop", "types.delete"), &yardv1.DeleteTypeResponse{Type: stored})
		if got, err = s.client.DeleteType(soon(t), "email.send", 12); err != nil {
			t.Fatal(err)
		}
		same("delete", got)
		if req := gone.requests()[0]; req.Name != "email.send" || req.Revision != 12 {
			t.Errorf("asked was %v", req)
		}
		// A type without a policy has none afterwards either.
		answering[yardv1.GetTypeRequest](t, s, topology.API("shop", "types.list"), &yardv1.ListTypesResponse{Types: []*yardv1.TaskType{{Name: "plain"}}})
		for ty, err := range s.client.Types(soon(t)) {
			if err != nil || ty.Name != "plain" || ty.Retry != nil {
				t.Errorf("%+v %v", ty, err)
			}
		}
	})
}

func TestLimitsGoBothWaysWhole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		stored := &yardv1.Limit{Name: "acme", Description: "their API", MaxConcurrency: 30, Revision: 8}
		want := yard.Limit{Name: "acme", Description: "their API", MaxConcurrency: 30, Revision: 8}
		put := answering[yardv1.PutLimitRequest](t, s, topology.API("shop", "limits.put"), &yardv1.PutLimitResponse{Limit: stored})
		if got, err := s.client.PutLimit(soon(t), want); err != nil || got != want || !proto.Equal(put.requests()[0].Limit, stored) {
			t.Errorf("put: %+v %v of %v", got, err, put.requests())
		}
		get := answering[yardv1.GetLimitRequest](t, s, topology.API("shop", "limits.get"), &yardv1.GetLimitResponse{Limit: stored, SlotsInUse: 4})
		used := want
		used.SlotsInUse = 4
		if got, err := s.client.GetLimit(soon(t), "acme"); err != nil || got != used || get.requests()[0].Name != "acme" {
			t.Errorf("get: %+v %v of %v", got, err, get.requests())
		}
		gone := answering[yardv1.DeleteLimitRequest](t, s, topology.API("shop", "limits.delete"), &yardv1.DeleteLimitResponse{Limit: stored})
		if got, err := s.client.DeleteLimit(soon(t), "acme", 8); err != nil || got != want || gone.requests()[0].Name != "acme" || gone.requests()[0].Revision != 8 {
			t.Errorf("delete: %+v %v of %v", got, err, gone.requests())
		}
		list := answering[yardv1.ListLimitsRequest](t, s, topology.API("shop", "limits.list"),
			&yardv1.ListLimitsResponse{Limits: []*yardv1.Limit{stored}, NextCursor: "acme"}, &yardv1.ListLimitsResponse{Limits: []*yardv1.Limit{{Name: "b"}}})
		var names []string
		for l, err := range s.client.Limits(soon(t)) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, fmt.Sprint(l.Name, l.MaxConcurrency))
		}
		if !slices.Equal(names, []string{"acme30", "b0"}) || list.requests()[0].Cursor != "" || list.requests()[1].Cursor != "acme" {
			t.Errorf("list: %v of %v", names, list.requests())
		}
	})
}

// Pauses and drains go both ways whole, of each part, and in each answer that shows them.
func TestPausesAndDrainsGoBothWaysWhole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		stored := &yardv1.Pause{Reason: "down", By: "ann", SinceMs: 1000, UntilMs: 3000}
		want := yard.Pause{Reason: "down", By: "ann", Since: time.UnixMilli(1000), Until: time.UnixMilli(3000)}
		o, asked := yard.PauseOptions{Reason: "down", By: "ann", For: 2 * time.Second}, &yardv1.PauseRequest{Name: "x", Reason: "down", By: "ann", ForMs: 2000}
		is := func(what string, got yard.Pause, err error, sent, wanted proto.Message) {
			t.Helper()
			if err != nil || got != want || !proto.Equal(sent, wanted) {
				t.Errorf("%s: %+v %v of %v", what, got, err, sent)
			}
		}
		for noun, part := range map[string]yard.Part{"tasklists": yard.OfTasklist("x"), "types": yard.OfType("x"), "groups": yard.OfGroup("x")} {
			pause := answering[yardv1.PauseRequest](t, s, topology.API("shop", noun+".pause"), &yardv1.PauseResponse{Pause: stored})
			drain := answering[yardv1.PauseRequest](t, s, topology.API("shop", noun+".drain"), &yardv1.DrainResponse{Drain: stored})
			resume := answering[yardv1.ResumeRequest](t, s, topology.API("shop", noun+".resume"), &yardv1.PauseResponse{Pause: stored})
			got, err := s.client.Pause(soon(t), part, o)
			is(noun+".pause", got, err, pause.requests()[0], asked)
			got, err = s.client.Drain(soon(t), part, o)
			is(noun+".drain", got, err, drain.requests()[0], asked)
			got, err = s.client.Resume(soon(t), part)
			is(noun+".resume", got, err, resume.requests()[0], &yardv1.ResumeRequest{Name: "x"})
			got, err = s.client.ResumeDrained(soon(t), part)
			is(noun+".resume of a drain", got, err, resume.requests()[1], &yardv1.ResumeRequest{Name: "x", Drain: true})
		}
		answering[yardv1.GetTasklistRequest](t, s, topology.API("shop", "tasklists.get"),
			&yardv1.GetTasklistResponse{Tasklist: &yardv1.Tasklist{Name: "mail"}, Pause: stored}, &yardv1.GetTasklistResponse{Drain: stored})
		answering[yardv1.GetTypeRequest](t, s, topology.API("shop", "types.get"),
			&yardv1.GetTypeResponse{Type: &yardv1.TaskType{Name: "pay"}, Pause: stored}, &yardv1.GetTypeResponse{Drain: stored})
		answering[yardv1.ListTasklistsRequest](t, s, topology.API("shop", "tasklists.list"),
			&yardv1.ListTasklistsResponse{Tasklists: []*yardv1.ListedTasklist{{Name: "mail", Pause: stored}}})
		shows := func(what string, got, other *yard.Pause, err error) {
			t.Helper()
			if err != nil || got == nil || *got != want || other != nil {
				t.Errorf("%s: %+v, %+v, %v", what, got, other, err)
			}
		}
		list, err := s.client.GetTasklist(soon(t), "mail")
		shows("a paused tasklist "+list.Name, list.Pause, list.Drain, err)
		list, err = s.client.GetTasklist(soon(t), "mail")
		shows("a drained tasklist", list.Drain, list.Pause, err)
		typ, err := s.client.GetType(soon(t), "pay")
		shows("a paused type "+typ.Name, typ.Pause, typ.Drain, err)
		typ, err = s.client.GetType(soon(t), "pay")
		shows("a drained type", typ.Drain, typ.Pause, err)
		for l, err := range s.client.Tasklists(soon(t)) {
			shows("a listed tasklist "+l.Name, l.Pause, l.Drain, err)
		}
	})
}

func TestDomainsGoBothWaysWhole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		admin := s.client.Admin()
		stored := &yardv1.Domain{Name: "shop", Description: "sells", RetentionMs: 3_600_000, MaxConcurrency: 9, DeadLettersMaxAgeMs: 60_000, DeadLettersMax: 7, Revision: 5}
		want := yard.Domain{Name: "shop", Description: "sells", Retention: time.Hour, MaxConcurrency: 9, DeadLettersMaxAge: time.Minute, DeadLettersMax: 7, Revision: 5}
		put := answering[yardv1.PutDomainRequest](t, s, topology.Admin("domains.put"), &yardv1.PutDomainResponse{Domain: stored})
		if got, err := admin.PutDomain(soon(t), want); err != nil || got != want || !proto.Equal(put.requests()[0].Domain, stored) {
			t.Errorf("put: %+v %v of %v", got, err, put.requests())
		}
		get := answering[yardv1.GetDomainRequest](t, s, topology.Admin("domains.get"), &yardv1.GetDomainResponse{Domain: stored})
		if got, err := admin.GetDomain(soon(t), "shop"); err != nil || got != want || get.requests()[0].Name != "shop" {
			t.Errorf("get: %+v %v of %v", got, err, get.requests())
		}
		gone := answering[yardv1.DeleteDomainRequest](t, s, topology.Admin("domains.delete"), &yardv1.DeleteDomainResponse{Domain: stored})
		if got, err := admin.DeleteDomain(soon(t), "shop", 5); err != nil || got != want || gone.requests()[0].Name != "shop" || gone.requests()[0].Revision != 5 {
			t.Errorf("delete: %+v %v of %v", got, err, gone.requests())
		}
	})
}

// What an administrative request or a query is refused with is reported as it is.
func TestRefusedQuestionsAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		no := fault.At(fault.FailedPrecondition, "/name", "has tasks")
		for _, verb := range []string{"domains.put", "domains.get", "domains.list", "domains.delete"} {
			answering[yardv1.GetDomainRequest](t, s, topology.Admin(verb), no)
		}
		for _, verb := range []string{"types.put", "types.get", "types.list", "types.delete", "limits.put", "limits.get", "limits.list", "limits.delete", "tasklists.describe", "tasks.list"} {
			answering[yardv1.GetTypeRequest](t, s, topology.API("shop", verb), no)
		}
		// One connection has one fake engine, which would read these requests as others: the forms are not compared.
		ctx, admin, c := soon(t), s.client.Admin(), s.client
		for what, ask := range map[string]func() error{
			"get a domain":    func() error { _, err := admin.GetDomain(ctx, "shop"); return err },
			"delete a domain": func() error { _, err := admin.DeleteDomain(ctx, "shop", 0); return err },
			"list domains":    func() error { _, err := admin.ListDomains(ctx); return err },
			"get a type":      func() error { _, err := c.GetType(ctx, "x"); return err },
			"delete a type":   func() error { _, err := c.DeleteType(ctx, "x", 0); return err },
			"put a limit":     func() error { _, err := c.PutLimit(ctx, yard.Limit{Name: "x"}); return err },
			"get a limit":     func() error { _, err := c.GetLimit(ctx, "x"); return err },
			"delete a limit":  func() error { _, err := c.DeleteLimit(ctx, "x", 0); return err },
			"list":            func() error { _, err := c.List(ctx, yard.Filter{}); return err },
		} {
			var e *fault.Error
			if err := ask(); !errors.As(err, &e) || e.Code != no.Code || e.Path != no.Path || e.Message != no.Message {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// pagesOf are answers of tasks in pages of one.
func pagesOf(n int) (all []any) {
	for i := range n {
		page := &yardv1.ListResponse{Tasks: []*yardv1.Task{{TaskId: fmt.Sprint(i)}}}
		if i+1 < n {
			page.NextCursor = fmt.Sprintf("after-%d", i)
		}
		all = append(all, page)
	}
	return all
}

func TestAllPagesAreAskedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		list := answering[yardv1.ListRequest](t, s, topology.API("shop", "tasks.list"), pagesOf(4)...)
		var got []string
		for task, err := range s.client.Tasks(soon(t), yard.Filter{Tasklist: "mail", Limit: 1}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, task.ID)
		}
		if !slices.Equal(got, []string{"0", "1", "2", "3"}) {
			t.Errorf("got %v", got)
		}
		var cursors []string
		for _, req := range list.requests() {
			cursors = append(cursors, req.Cursor)
			if req.Tasklist != "mail" || req.Limit != 1 {
				t.Errorf("asked was %v", req)
			}
		}
		if !slices.Equal(cursors, []string{"", "after-0", "after-1", "after-2"}) {
			t.Errorf("asked from %q", cursors)
		}
	})
}

// Who has enough asks for no further page, and an error is the last that comes.
func TestPagesEndWhereTheCallerDoes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		list := answering[yardv1.ListRequest](t, s, topology.API("shop", "tasks.list"), pagesOf(9)...)
		for _, err := range s.client.Tasks(soon(t), yard.Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if len(list.requests()) == 2 {
				break
			}
		}
		if len(list.requests()) != 2 || list.requests()[0].Cursor != "" {
			t.Errorf("asked was %v", list.requests())
		}
		answering[yardv1.ListDomainsRequest](t, s, topology.Admin("domains.list"),
			&yardv1.ListDomainsResponse{Domains: []*yardv1.Domain{{Name: "a"}, {Name: "b"}}, NextCursor: "b"}, fault.At(fault.InvalidArgument, "/cursor", "is old"))
		var seen []string
		for d, err := range s.client.Admin().Domains(soon(t)) {
			seen = append(seen, fmt.Sprint(d.Name, fault.CodeOf(err)))
		}
		if !slices.Equal(seen, []string{"a", "b", "INVALID_ARGUMENT"}) {
			t.Errorf("got %v", seen)
		}
		all, err := s.client.Admin().ListDomains(soon(t))
		if fault.CodeOf(err) != fault.InvalidArgument || all != nil {
			t.Errorf("%v %v", all, err)
		}
	})
}

func TestListIsOnePage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		list := answering[yardv1.ListRequest](t, s, topology.API("shop", "tasks.list"), pagesOf(3)...)
		tasks, err := s.client.List(soon(t), yard.Filter{Tasklist: "mail"})
		if err != nil || len(tasks) != 1 || len(list.requests()) != 1 || list.requests()[0].Tasklist != "mail" {
			t.Errorf("%v %v of %v", tasks, err, list.requests())
		}
		if _, err := s.client.List(soon(t), yard.Filter{}); err != nil {
			t.Error(err)
		}
		describe := answering[yardv1.DescribeTasklistRequest](t, s, topology.API("shop", "tasklists.describe"), &yardv1.DescribeTasklistResponse{Ready: 7})
		if got, err := s.client.DescribeTasklist(soon(t), "mail"); err != nil || got.Ready != 7 || describe.requests()[0].Tasklist != "mail" {
			t.Errorf("%v %v of %v", got, err, describe.requests())
		}
	})
}

// A passing trouble is asked about again after a growing wait, or the one that the engine asks for; what is certain is not.
func TestQuestionsAreRepeatedWhileTheTroublePasses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		get := answering[yardv1.GetTypeRequest](t, s, topology.API("shop", "types.get"),
			fault.New(fault.Unavailable, "no owner"), fault.New(fault.Unknown, "who knows"), fault.New(fault.ResourceExhausted, "full").After(8*time.Second),
			&yardv1.GetTypeResponse{Type: &yardv1.TaskType{Name: "x"}})
		if got, err := s.client.GetType(soon(t), "x"); err != nil || got.Name != "x" || len(get.times()) != 4 {
			t.Fatal(got, err, len(get.times()))
		}
		for i, bounds := range [][2]time.Duration{{25 * time.Millisecond, 60 * time.Millisecond}, {50 * time.Millisecond, 110 * time.Millisecond}, {8 * time.Second, 13 * time.Second}} {
			if wait := get.times()[i+1].Sub(get.times()[i]); wait < bounds[0] || wait > bounds[1] {
				t.Errorf("repeat %d came after %v, want %v", i+1, wait, bounds)
			}
		}
	})
}

// A question has as long as its context, or else as the client's timeout.
func TestAQuestionEndsInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t, yard.WithTimeout(3*time.Second))
		answering[yardv1.GetTypeRequest](t, s, topology.API("shop", "types.get"), nil)
		took := func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			_, err := s.client.GetType(ctx, "x")
			return time.Since(began), err
		}
		if d, err := took(context.Background()); d != 3*time.Second || fault.CodeOf(err) != fault.Unknown || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("by default it ends after %v: %v", d, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if d, err := took(ctx); d > time.Minute || d < time.Minute-5*time.Second || fault.CodeOf(err) != fault.Unknown {
			t.Errorf("with a minute it ends after %v: %v", d, err)
		}
		ended, end := context.WithCancel(context.Background())
		end()
		if d, err := took(ended); d != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended it ends after %v: %v", d, err)
		}
	})
}

// One try does not wait longer than an engine takes to know that it does not know: the process may have died.
func TestATryOfAQuestionIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		get := answering[yardv1.GetTypeRequest](t, s, topology.API("shop", "types.get"), nil, &yardv1.GetTypeResponse{Type: &yardv1.TaskType{Name: "x"}})
		if _, err := s.client.GetType(soon(t), "x"); err != nil {
			t.Fatal(err)
		}
		if wait := get.times()[1].Sub(get.times()[0]); wait < 12*time.Second || wait > 14*time.Second {
			t.Errorf("the repeat came after %v", wait)
		}
	})
}

// That no process serves is reported at once, as "not sent".
func TestWithoutAnEngineQuestionsAreUnavailable(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := s.client.GetType(ctx, "x"); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("got %v", err)
		}
		s.nats.stop()
		ctx, cancel = context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if _, err := s.client.GetType(ctx, "x"); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("without a server: %v", err)
		}
		s.client.Close()
		began := time.Now()
		if _, err := s.client.GetType(soon(t), "x"); fault.CodeOf(err) != fault.Unavailable || !errors.Is(err, nats.ErrConnectionClosed) || time.Since(began) > time.Second {
			t.Errorf("closed: %v after %v", err, time.Since(began))
		}
	})
}

// A connection that breaks ends the tries that wait on it: what they asked is asked again on the next.
func TestABrokenConnectionIsNoticedSoon(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		get := answering[yardv1.GetTypeRequest](t, s, topology.API("shop", "types.get"), nil, &yardv1.GetTypeResponse{Type: &yardv1.TaskType{Name: "x"}})
		got := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := s.client.GetType(soon(t), "x")
			got <- err
		}()
		time.Sleep(time.Second)
		s.nats.stop()
		s.nats.start()
		if err := <-got; err != nil || len(get.times()) != 2 {
			t.Fatal(err, len(get.times()))
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
