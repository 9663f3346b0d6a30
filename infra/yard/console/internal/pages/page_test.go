package pages

import (
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/domainwork"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/words"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAUserHasSoManyPagesOpen, and leaves room for others.
func TestAUserHasSoManyPagesOpen(t *testing.T) {
	p := &Pages{open: map[string]int{}}
	for range openMax {
		testkit.Equal(t, "room", p.enter("ann"), true)
	}
	testkit.Equal(t, "one more", p.enter("ann"), false)
	testkit.Equal(t, "another user", p.enter("bob"), true)
	p.leave("ann")
	testkit.Equal(t, "after one is closed", p.enter("ann"), true)
}

// TestADomainBeyondTheBusiestIsNotCounted: 0 would be wrong.
func TestADomainBeyondTheBusiestIsNotCounted(t *testing.T) {
	busy := []*yardv1.TopDomain{{Domain: "busy", Ready: 7}}
	answer := func(others int32, silent ...int32) *domainwork.Answer {
		return &domainwork.Answer{TopDomainsResponse: &yardv1.TopDomainsResponse{Domains: busy, Others: others, SilentHistory: silent}}
	}
	for name, c := range map[string]struct {
		top  *domainwork.Answer
		want string
	}{
		"listed": {answer(1), "7"}, "idle": {answer(0), "0"},
		"beyond": {answer(1), "unknown"}, "no answer": {nil, "unknown"},
		"missing in a partition": {answer(0, 3), "unknown"}, "listed without a partition": {answer(0, 3), "unknown"},
	} {
		domain, got := "other", "unknown"
		if strings.HasPrefix(name, "listed") {
			domain = "busy"
		}
		if work := workOf(c.top, domain); work != nil {
			got = words.Count(work.Ready)
		}
		testkit.Equal(t, "ready tasks of a domain that is "+name, got, c.want)
	}
}

// TestTheOverviewIsNotGreen while a domain stands still, or while something is not known.
func TestTheOverviewIsNotGreen(t *testing.T) {
	top := func() *yardv1.TopDomainsResponse { return &yardv1.TopDomainsResponse{Total: &yardv1.TopDomain{}} }
	stuck := top()
	stuck.Domains = []*yardv1.TopDomain{{Domain: "busy", CompletedPerS: 1}, {Domain: "stuck", Ready: 1, OldestReadyMs: time.Hour.Milliseconds()}}
	silent := top()
	silent.SilentHistory, silent.SilentTimers = []int32{1, 4}, []int32{4}
	for want, answer := range map[string]*domainwork.Answer{
		"":                                    {TopDomainsResponse: top()},
		"A task of domain stuck is ready for": {TopDomainsResponse: stuck},
		"The work of 2 of your domains is not known":                  {TopDomainsResponse: top(), Unknown: []string{"a", "b"}},
		"The numbers are not whole. Partitions that do not answer: 3": {TopDomainsResponse: silent},
	} {
		r := &Request{Who: login.Identity{Name: "bob", Role: login.Viewer, Domains: []string{"stuck", "busy", "a", "b"}}}
		problems := liveOverview(r, sampler.Sample{Value: answer, At: time.Now()}).(overviewLive).Problems
		if want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || !strings.HasPrefix(problems[0].Text, want)) {
			t.Errorf("want %q, got %v", want, problems)
		}
	}
}

// TestADomainSaysThatItsNumbersAreNotWhole while partitions do not answer.
func TestADomainSaysThatItsNumbersAreNotWhole(t *testing.T) {
	r := &Request{Who: login.Identity{Name: "bob", Role: login.Viewer, Domains: []string{"shop"}}, Domain: "shop"}
	for want, top := range map[string]*yardv1.TopDomainsResponse{
		"": {Domains: []*yardv1.TopDomain{{Domain: "shop", Ready: 7}}},
		"The numbers are not whole. Partitions that do not answer: 1": {Domains: []*yardv1.TopDomain{{Domain: "shop", Ready: 7}}, SilentHistory: []int32{2}},
		"A timer of domain shop is late by 1 min":                     {Domains: []*yardv1.TopDomain{{Domain: "shop", Ready: 7, LateMs: time.Minute.Milliseconds()}}},
	} {
		live := liveDomain(r, sampler.Sample{Value: &domainwork.Answer{TopDomainsResponse: top}, At: time.Now()}).(domainLive)
		testkit.Equal(t, "ready tasks", live.Ready, 7)
		if want == "" && len(live.Problems) > 0 || want != "" && (len(live.Problems) != 1 || !strings.HasPrefix(live.Problems[0].Text, want)) {
			t.Errorf("want %q, got %v", want, live.Problems)
		}
	}
}
