package domainwork_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/busiest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/domainwork"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// engine answers for these domains, as the engine does. It fails for the domain "broken".
type engine struct {
	domains []*yardv1.TopDomain
	calls   atomic.Int64
}

func (e *engine) TopDomains(_ context.Context, req *yardv1.TopDomainsRequest) (*yardv1.TopDomainsResponse, error) {
	e.calls.Add(1)
	if req.Domain == "broken" {
		return nil, errors.New("no answer")
	}
	var some []*yardv1.TopDomain
	for _, d := range e.domains {
		if req.Domain == "" || req.Domain == d.Domain {
			some = append(some, d)
		}
	}
	first := busiest.First(some, req.By, max(1, int(req.Limit)))
	return &yardv1.TopDomainsResponse{Domains: first, Others: int32(len(e.domains) - len(first)), Total: &yardv1.TopDomain{}}, nil
}

// busy is an engine with n domains that complete tasks, and these.
func busy(n int, others ...*yardv1.TopDomain) *engine {
	e := &engine{domains: others}
	for i := range n {
		e.domains = append(e.domains, &yardv1.TopDomain{Domain: fmt.Sprint("busy", i), CompletedPerS: 1, OldestReadyMs: 1})
	}
	return e
}

func names(all []*yardv1.TopDomain) map[string]bool {
	found := map[string]bool{}
	for _, d := range all {
		found[d.Domain] = true
	}
	return found
}

// TestADomainThatCompletesNothingIsFound, however many others complete tasks.
func TestADomainThatCompletesNothingIsFound(t *testing.T) {
	e := busy(150, &yardv1.TopDomain{Domain: "stuck", Ready: 50_000, OldestReadyMs: 86_400_000})
	all, err := domainwork.All(t.Context(), e)
	testkit.NoError(t, err)
	testkit.Equal(t, "stuck is there", names(all.Domains)["stuck"], true)
	testkit.Equal(t, "all domains", len(all.Domains)+int(all.Others), 151)
	testkit.Equal(t, "domains that are there twice", len(all.Domains)-len(names(all.Domains)), 0)
}

// TestFewDomainsNeedOneCall: the first answer has them all.
func TestFewDomainsNeedOneCall(t *testing.T) {
	e := busy(100)
	all, err := domainwork.All(t.Context(), e)
	testkit.NoError(t, err)
	_, err = domainwork.Own(t.Context(), e, all, []string{"busy1", "idle"})
	testkit.NoError(t, err)
	testkit.Equal(t, "calls", e.calls.Load(), 1)
}

// TestAUserSeesTheOwnDomains: the busy ones, those that the list of all has left out, and no others.
func TestAUserSeesTheOwnDomains(t *testing.T) {
	e := busy(300, &yardv1.TopDomain{Domain: "failing", Backoff: 3, LateMs: 9000})
	all, err := domainwork.All(t.Context(), e)
	testkit.NoError(t, err)
	testkit.Equal(t, "failing is among all", names(all.Domains)["failing"], false)
	own, err := domainwork.Own(t.Context(), e, all, []string{all.Domains[0].Domain, "failing", "idle"})
	testkit.NoError(t, err)
	testkit.Equal(t, "own domains with work", len(own.Domains), 2)
	testkit.Equal(t, "failing is there, and late", names(own.Domains)["failing"] && names(own.Late)["failing"], true)
	testkit.Equal(t, "tasks of the sum", own.Total.Backoff, 3)
	testkit.Equal(t, "completed tasks of the sum", own.Total.CompletedPerS, 1.0)
	testkit.Equal(t, "others", own.Others, 0)
	_, err = domainwork.Own(t.Context(), e, all, []string{"broken"})
	testkit.Equal(t, "a call that fails has an answer", err == nil, false)
}

// TestManyOwnDomainsAreNotAllKnown: the answer says which.
func TestManyOwnDomainsAreNotAllKnown(t *testing.T) {
	e := busy(300)
	all, err := domainwork.All(t.Context(), e)
	testkit.NoError(t, err)
	var mine []string
	for i := range domainwork.AskedMost + 2 {
		mine = append(mine, fmt.Sprint("idle", i))
	}
	before := e.calls.Load()
	own, err := domainwork.Own(t.Context(), e, all, mine)
	testkit.NoError(t, err)
	testkit.Equal(t, "calls", e.calls.Load()-before, domainwork.AskedMost)
	testkit.Equal(t, "domains that are not known", fmt.Sprint(own.Unknown), fmt.Sprint(mine[domainwork.AskedMost:]))
}
