package frontend

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// audited waits until a domain's list has so many entries, and returns them.
func (s *stage) audited(subject string, n int) (all []*yardv1.AuditEntry) {
	s.t.Helper()
	testkit.Eventually(s.t, within, func() error {
		resp := &yardv1.ListAuditResponse{}
		s.must(subject, &yardv1.ListAuditRequest{Limit: topology.AuditEntries}, resp)
		if all = resp.Entries; len(all) != n {
			return fmt.Errorf("%d entries, want %d", len(all), n)
		}
		return nil
	})
	return all
}

// TestTheAuditHasWhatOperatorsDid, each request once, and nothing that was refused, shown only, or is a program's daily work.
func TestTheAuditHasWhatOperatorsDid(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	shop := func(verb string) string { return topology.API("shop", verb) }
	s.submit(3)
	s.must(shop("deadletters.redrive"), &yardv1.RedriveRequest{Filter: &yardv1.DeadLetterFilter{}, Preview: true}, &yardv1.RedriveResponse{})
	if e := s.ask(shop("types.delete"), &yardv1.DeleteTypeRequest{Name: "absent"}, nil); e == nil {
		t.Fatal("a type that does not exist was deleted")
	}
	answer := s.raw(shop("tasklists.pause"), nats.Header{codec.HeaderBy: {"ann"}}, []byte(`{"name":"main","reason":"a test"}`))
	testkit.MustEqual(t, "refused", refusalOf(answer), nil)
	s.must(shop("schedules.put"), &yardv1.PutScheduleRequest{Schedule: &yardv1.Schedule{
		Name: "night", EveryMs: 3_600_000, Task: &yardv1.NewTask{Type: "report", Tasklist: "main", Payload: &yardv1.Payload{Data: []byte(`"secret"`)}},
	}}, &yardv1.PutScheduleResponse{})
	all := s.audited(shop("audit.list"), 2)
	testkit.Equal(t, "the last", all[0].Verb, "schedules.put")
	if strings.Contains(all[0].Request, "secret") || !strings.Contains(all[0].Request, `"night"`) {
		t.Errorf("the request of the schedule: %s", all[0].Request)
	}
	first := all[1]
	testkit.Equal(t, "the first", []string{first.Verb, first.User, first.By, first.Code}, []string{"tasklists.pause", "stage", "ann", ""})
	testkit.Equal(t, "its request", first.Request, `{"name":"main","reason":"a test"}`)
	cluster := s.audited(topology.Admin("domains.audit"), 1)
	testkit.Equal(t, "the cluster's", cluster[0].Verb, "domains.put")
	resp := &yardv1.ListAuditResponse{}
	s.must(shop("audit.list"), &yardv1.ListAuditRequest{Limit: 1}, resp)
	testkit.Equal(t, "entries", len(resp.Entries), 1)
}

// TestTheAuditOfADomainIsBounded, and a domain puts no entry of another one out.
func TestTheAuditOfADomainIsBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const more = topology.AuditEntries + 5
	long := strings.Repeat("é", 600)
	for i := range more {
		s.must(topology.API("shop", "groups.put"), &yardv1.PutGroupRequest{Group: &yardv1.Group{Name: fmt.Sprint("g", i%3), Weight: new(1.0)}}, &yardv1.PutGroupResponse{})
	}
	s.raw(topology.API("shop", "groups.delete"), nats.Header{codec.HeaderBy: {long}}, []byte(`{"name":"g1"}`))
	testkit.Eventually(t, within, func() error {
		all := s.audited(topology.API("shop", "audit.list"), topology.AuditEntries)
		if all[0].Verb != "groups.delete" {
			return errors.New("the last request is not stored yet")
		}
		testkit.Equal(t, "its name is cut", all[0].By, long[:128])
		return nil
	})
	testkit.Equal(t, "the cluster's", len(s.audited(topology.Admin("domains.audit"), 1)), 1)
}
