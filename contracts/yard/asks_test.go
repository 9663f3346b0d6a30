package yard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
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
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
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
	listening(t, s, subject, func(msg *nats.Msg) any {
		e.asked, e.at = append(e.asked, read[Req, P](s.engine, msg)), append(e.at, time.Now())
		return answers[min(len(e.asked), len(answers))-1]
	})
	return e
}

// listening answers the requests of a subject with what heard returns. The engine is locked.
func listening(t *testing.T, s *stack, subject string, heard func(msg *nats.Msg) any) {
	t.Helper()
	sub, err := s.engine.nc.Subscribe(subject, func(msg *nats.Msg) {
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		switch a := heard(msg).(type) {
		case *fault.Error:
			s.engine.refuse(msg, a)
		case codec.Message:
			s.engine.answer(msg.Reply, a)
		}
	})
	checktest.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() }) // the connection may be gone already
	checktest.NoError(t, s.engine.nc.FlushWithContext(soon(t)))
}

// Each request about settings has the name, the revision or the settings, and its answer is returned: what the settings hold is compared in
// TestOwnSettingsHaveAllThatTheAPITells.
func TestSettingsAreAskedForAndReturned(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		c, admin, paused := s.client, s.client.Admin(), &yardv1.Pause{By: "ann", SinceMs: 1}
		pause := &yard.Pause{By: "ann", Since: time.UnixMilli(1)}
		domain, wireDomain := yard.Domain{Name: "x", Revision: 5}, &yardv1.Domain{Name: "x", Revision: 5}
		typ, wireType := yard.TaskType{Name: "x", Revision: 5}, &yardv1.TaskType{Name: "x", Revision: 5}
		list, wireList := yard.Tasklist{Name: "x", Revision: 5}, &yardv1.Tasklist{Name: "x", Revision: 5}
		group, wireGroup := yard.Group{Name: "x", Weight: 2, Revision: 5}, &yardv1.Group{Name: "x", Weight: new(2.0), Revision: 5}
		limit, wireLimit := yard.Limit{Name: "x", Revision: 5}, &yardv1.Limit{Name: "x", Revision: 5}
		typeNow, listNow, groupNow, limitNow := typ, list, group, limit
		typeNow.SlotsInUse, typeNow.Pause = 4, pause
		listNow.PartitionsNow, listNow.Pause = 3, pause
		groupNow.Pause, limitNow.SlotsInUse = pause, 4
		for subject, ask := range map[string]struct {
			answer, request codec.Message
			do              func(context.Context) (any, error)
			want            any
		}{
			topology.Admin("domains.put"):            {&yardv1.PutDomainResponse{Domain: wireDomain}, &yardv1.PutDomainRequest{Domain: wireDomain}, func(ctx context.Context) (any, error) { return admin.PutDomain(ctx, domain) }, domain},
			topology.Admin("domains.get"):            {&yardv1.GetDomainResponse{Domain: wireDomain}, &yardv1.GetDomainRequest{Name: "x"}, func(ctx context.Context) (any, error) { return admin.GetDomain(ctx, "x") }, domain},
			topology.Admin("domains.delete"):         {&yardv1.DeleteDomainResponse{Domain: wireDomain}, &yardv1.DeleteDomainRequest{Name: "x", Revision: 7}, func(ctx context.Context) (any, error) { return admin.DeleteDomain(ctx, "x", 7) }, domain},
			topology.API("shop", "types.put"):        {&yardv1.PutTypeResponse{Type: wireType}, &yardv1.PutTypeRequest{Type: wireType}, func(ctx context.Context) (any, error) { return c.PutType(ctx, typ) }, typ},
			topology.API("shop", "types.get"):        {&yardv1.GetTypeResponse{Type: wireType, SlotsInUse: 4, Pause: paused}, &yardv1.GetTypeRequest{Name: "x"}, func(ctx context.Context) (any, error) { return c.GetType(ctx, "x") }, typeNow},
			topology.API("shop", "types.delete"):     {&yardv1.DeleteTypeResponse{Type: wireType}, &yardv1.DeleteTypeRequest{Name: "x", Revision: 7}, func(ctx context.Context) (any, error) { return c.DeleteType(ctx, "x", 7) }, typ},
			topology.API("shop", "tasklists.put"):    {&yardv1.PutTasklistResponse{Tasklist: wireList}, &yardv1.PutTasklistRequest{Tasklist: wireList}, func(ctx context.Context) (any, error) { return c.PutTasklist(ctx, list) }, list},
			topology.API("shop", "tasklists.get"):    {&yardv1.GetTasklistResponse{Tasklist: wireList, Partitions: 3, Pause: paused}, &yardv1.GetTasklistRequest{Name: "x"}, func(ctx context.Context) (any, error) { return c.GetTasklist(ctx, "x") }, listNow},
			topology.API("shop", "tasklists.delete"): {&yardv1.DeleteTasklistResponse{Tasklist: wireList}, &yardv1.DeleteTasklistRequest{Name: "x", Revision: 7}, func(ctx context.Context) (any, error) { return c.DeleteTasklist(ctx, "x", 7) }, list},
			topology.API("shop", "groups.put"):       {&yardv1.PutGroupResponse{Group: wireGroup}, &yardv1.PutGroupRequest{Group: wireGroup}, func(ctx context.Context) (any, error) { return c.PutGroup(ctx, group) }, group},
			topology.API("shop", "groups.get"):       {&yardv1.GetGroupResponse{Group: wireGroup, Pause: paused}, &yardv1.GetGroupRequest{Name: "x"}, func(ctx context.Context) (any, error) { return c.GetGroup(ctx, "x") }, groupNow},
			topology.API("shop", "groups.delete"):    {&yardv1.DeleteGroupResponse{Group: wireGroup}, &yardv1.DeleteGroupRequest{Name: "x", Revision: 7}, func(ctx context.Context) (any, error) { return c.DeleteGroup(ctx, "x", 7) }, group},
			topology.API("shop", "limits.put"):       {&yardv1.PutLimitResponse{Limit: wireLimit}, &yardv1.PutLimitRequest{Limit: wireLimit}, func(ctx context.Context) (any, error) { return c.PutLimit(ctx, limit) }, limit},
			topology.API("shop", "limits.get"):       {&yardv1.GetLimitResponse{Limit: wireLimit, SlotsInUse: 4}, &yardv1.GetLimitRequest{Name: "x"}, func(ctx context.Context) (any, error) { return c.GetLimit(ctx, "x") }, limitNow},
			topology.API("shop", "limits.delete"):    {&yardv1.DeleteLimitResponse{Limit: wireLimit}, &yardv1.DeleteLimitRequest{Name: "x", Revision: 7}, func(ctx context.Context) (any, error) { return c.DeleteLimit(ctx, "x", 7) }, limit},
		} {
			var sent []byte
			listening(t, s, subject, func(msg *nats.Msg) any { sent = msg.Data; return ask.answer })
			got, err := ask.do(soon(t))
			if request, _ := codec.Marshal(codec.Protobuf, ask.request); err != nil || !reflect.DeepEqual(got, ask.want) || !bytes.Equal(sent, request) {
				t.Errorf("%s: %+v %v, want %+v", subject, got, err, ask.want)
			}
		}
	})
}

// Lists of settings go on page by page.
func TestListsOfSettingsAreWhole(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		answering[yardv1.ListTypesRequest](t, s, topology.API("shop", "types.list"), &yardv1.ListTypesResponse{Types: []*yardv1.TaskType{{Name: "plain"}}})
		for ty, err := range s.client.Types(soon(t)) {
			if err != nil || ty.Name != "plain" || ty.Retry != nil {
				t.Errorf("%+v %v", ty, err)
			}
		}
		limits := answering[yardv1.ListLimitsRequest](t, s, topology.API("shop", "limits.list"),
			&yardv1.ListLimitsResponse{Limits: []*yardv1.Limit{{Name: "a", MaxConcurrency: 30}}, NextCursor: "a"}, &yardv1.ListLimitsResponse{Limits: []*yardv1.Limit{{Name: "b"}}})
		var names []string
		for l, err := range s.client.Limits(soon(t)) {
			testError(t, err)
			names = append(names, fmt.Sprint(l.Name, l.MaxConcurrency))
		}
		if !slices.Equal(names, []string{"a30", "b0"}) || limits.requests()[0].Cursor != "" || limits.requests()[1].Cursor != "a" {
			t.Errorf("list: %v of %v", names, limits.requests())
		}
		groups := answering[yardv1.ListGroupsRequest](t, s, topology.API("shop", "groups.list"),
			&yardv1.ListGroupsResponse{Groups: []*yardv1.Group{{Name: "a", Weight: new(0.5)}}, NextCursor: "a"}, &yardv1.ListGroupsResponse{
				Groups: []*yardv1.Group{{Name: "b"}, {Name: "c"}}, Stopped: []*yardv1.StoppedGroup{{Name: "c", Drain: &yardv1.Pause{By: "bob"}}},
			})
		var all []yard.Group
		for g, err := range s.client.Groups(soon(t)) {
			testError(t, err)
			all = append(all, g)
		}
		if len(all) != 3 || all[0].Weight != 0.5 || all[1] != (yard.Group{Name: "b", Weight: 1}) || all[2].Pause != nil || all[2].Drain == nil || all[2].Drain.By != "bob" || groups.requests()[1].Cursor != "a" {
			t.Errorf("%+v, asked %v", all, groups.requests())
		}
	})
}

func testError(t *testing.T, err error) {
	t.Helper()
	checktest.NoError(t, err)
}

// The zero Part gets an answer, a refusal of the empty name: a subject that no one serves would be tried until ctx ends.
func TestThePartOfNothingReachesAServer(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		pause := answering[yardv1.PauseRequest](t, s, topology.API("shop", "tasklists.pause"), &yardv1.PauseResponse{})
		purge := answering[yardv1.PurgeRequest](t, s, topology.API("shop", "tasklists.purge"), &yardv1.PurgeResponse{})
		_, err := s.client.Pause(soon(t), yard.Part{}, yard.PauseOptions{})
		testError(t, err)
		_, err = s.client.Purge(soon(t), yard.Part{}, yard.PurgeOptions{})
		testError(t, err)
		if pause.requests()[0].Name+purge.requests()[0].Name != "" {
			t.Error("the zero Part has a name")
		}
	})
}

// Pauses and drains go both ways whole, of each part, and in each answer that shows them.
func TestPausesAndDrainsGoBothWaysWhole(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
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

// What an administrative request or a query is refused with is reported as it is.
func TestRefusedQuestionsAreTold(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
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
	onStack(t, func(t *testing.T, s *stack) {
		list := answering[yardv1.ListRequest](t, s, topology.API("shop", "tasks.list"), pagesOf(4)...)
		var got []string
		for task, err := range s.client.Tasks(soon(t), yard.Filter{Tasklist: "mail", Limit: 1}) {
			checktest.NoError(t, err)
			got = append(got, task.ID)
		}
		checktest.Equal(t, "result", got, []string{"0", "1", "2", "3"})
		var cursors []string
		for _, req := range list.requests() {
			cursors = append(cursors, req.Cursor)
			if req.Tasklist != "mail" || req.Limit != 1 {
				t.Errorf("asked was %v", req)
			}
		}
		checktest.Equal(t, "asked from", cursors, []string{"", "after-0", "after-1", "after-2"})
	})
}

// Who has enough asks for no further page, and an error is the last that comes.
func TestPagesEndWhereTheCallerDoes(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		list := answering[yardv1.ListRequest](t, s, topology.API("shop", "tasks.list"), pagesOf(9)...)
		for _, err := range s.client.Tasks(soon(t), yard.Filter{}) {
			checktest.NoError(t, err)
			if len(list.requests()) == 2 {
				break
			}
		}
		if len(list.requests()) != 2 || list.requests()[0].Cursor != "" {
			t.Errorf("asked was %v", list.requests())
		}
	})
}

// count reads at most so many items of a list.
func count[T any](list iter.Seq2[T, error], most int) (n int, last error) {
	for _, err := range list {
		if err != nil {
			last = err
			continue
		}
		if n++; n == most {
			break
		}
	}
	return n, last
}

// Every list asks for what is read, and ends with its error, behind what came before.
func TestEveryListEndsWithItsError(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		c := s.client
		for subject, list := range map[string]struct {
			page codec.Message
			read func(ctx context.Context, most int) (int, error)
		}{
			topology.API("shop", "tasks.list"):     {&yardv1.ListResponse{Tasks: []*yardv1.Task{{}, {}}, NextCursor: "c"}, func(ctx context.Context, n int) (int, error) { return count(c.Tasks(ctx, yard.Filter{}), n) }},
			topology.API("shop", "types.list"):     {&yardv1.ListTypesResponse{Types: []*yardv1.TaskType{{}, {}}, NextCursor: "c"}, func(ctx context.Context, n int) (int, error) { return count(c.Types(ctx), n) }},
			topology.API("shop", "tasklists.list"): {&yardv1.ListTasklistsResponse{Tasklists: []*yardv1.ListedTasklist{{}, {}}, NextCursor: "c"}, func(ctx context.Context, n int) (int, error) { return count(c.Tasklists(ctx), n) }},
			topology.API("shop", "groups.list"):    {&yardv1.ListGroupsResponse{Groups: []*yardv1.Group{{}, {}}, NextCursor: "c"}, func(ctx context.Context, n int) (int, error) { return count(c.Groups(ctx), n) }},
			topology.API("shop", "limits.list"):    {&yardv1.ListLimitsResponse{Limits: []*yardv1.Limit{{}, {}}, NextCursor: "c"}, func(ctx context.Context, n int) (int, error) { return count(c.Limits(ctx), n) }},
			topology.API("shop", "batches.list"):   {&yardv1.ListBatchesResponse{Batches: []*yardv1.Batch{{}, {}}, NextCursor: "c"}, func(ctx context.Context, n int) (int, error) { return count(c.Batches(ctx), n) }},
			topology.API("shop", "keys.list"):      {&yardv1.ListKeysResponse{Keys: []*yardv1.OrderKey{{}, {}}, NextCursor: "c"}, func(ctx context.Context, n int) (int, error) { return count(c.OrderKeys(ctx, yard.KeyFilter{}), n) }},
			topology.API("shop", "deadletters.list"): {&yardv1.ListDeadLettersResponse{Tasks: []*yardv1.Task{{}, {}}, NextCursor: "c"}, func(ctx context.Context, n int) (int, error) {
				return count(c.ListDeadLetters(ctx, yard.DeadLetterFilter{}), n)
			}},
			topology.Admin("domains.list"): {&yardv1.ListDomainsResponse{Domains: []*yardv1.Domain{{}, {}}, NextCursor: "c"}, func(ctx context.Context, n int) (int, error) { return count(c.Admin().Domains(ctx), n) }},
		} {
			asked, answers := 0, []any{list.page, list.page, fault.New(fault.PermissionDenied, "no")}
			listening(t, s, subject, func(*nats.Msg) any { asked++; return answers[min(asked, len(answers))-1] })
			if n, err := list.read(soon(t), 1); n != 1 || err != nil || asked != 1 {
				t.Errorf("%s: %d items of one, %v, after %d requests", subject, n, err, asked)
			}
			if n, err := list.read(soon(t), 9); n != 2 || fault.CodeOf(err) != fault.PermissionDenied || asked != 3 {
				t.Errorf("%s: %d items of two, %v, after %d requests", subject, n, err, asked)
			}
		}
		if all, err := c.Admin().ListDomains(soon(t)); fault.CodeOf(err) != fault.PermissionDenied || all != nil {
			t.Errorf("%v %v", all, err)
		}
	})
}

func TestListIsOnePage(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		list := answering[yardv1.ListRequest](t, s, topology.API("shop", "tasks.list"), pagesOf(3)...)
		tasks, err := s.client.List(soon(t), yard.Filter{Tasklist: "mail"})
		if err != nil || len(tasks) != 1 || len(list.requests()) != 1 || list.requests()[0].Tasklist != "mail" {
			t.Errorf("%v %v of %v", tasks, err, list.requests())
		}
		checktest.Check(t, checktest.Err(s.client.List(soon(t), yard.Filter{})))
		describe := answering[yardv1.DescribeTasklistRequest](t, s, topology.API("shop", "tasklists.describe"), &yardv1.DescribeTasklistResponse{Ready: 7})
		if got, err := s.client.DescribeTasklist(soon(t), "mail"); err != nil || got.Ready != 7 || describe.requests()[0].Tasklist != "mail" {
			t.Errorf("%v %v of %v", got, err, describe.requests())
		}
	})
}

// A passing trouble is asked about again after a growing wait, or the one that the engine asks for; what is certain is not.
func TestQuestionsAreRepeatedWhileTheTroublePasses(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
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
	onStack(t, func(t *testing.T, s *stack) {
		get := answering[yardv1.GetTypeRequest](t, s, topology.API("shop", "types.get"), nil, &yardv1.GetTypeResponse{Type: &yardv1.TaskType{Name: "x"}})
		checktest.NoError(t, checktest.Err(s.client.GetType(soon(t), "x")))
		if wait := get.times()[1].Sub(get.times()[0]); wait < 12*time.Second || wait > 14*time.Second {
			t.Errorf("the repeat came after %v", wait)
		}
	})
}

// That no process serves is reported at once, as "not sent".
func TestWithoutAnEngineQuestionsAreUnavailable(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		checktest.Code(t, "error", checktest.Err(s.client.GetType(ctx, "x")), fault.Unavailable)
		s.nats.stop()
		ctx, cancel = context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		checktest.Code(t, "without a server", checktest.Err(s.client.GetType(ctx, "x")), fault.Unavailable)
		s.client.Close()
		began := time.Now()
		if _, err := s.client.GetType(soon(t), "x"); fault.CodeOf(err) != fault.Unavailable || !errors.Is(err, nats.ErrConnectionClosed) || time.Since(began) > time.Second {
			t.Errorf("closed: %v after %v", err, time.Since(began))
		}
	})
}

// A connection that breaks ends the tries that wait on it: what they asked is asked again on the next.
func TestABrokenConnectionIsNoticedSoon(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
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
