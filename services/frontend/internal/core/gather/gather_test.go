package gather

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Paused tasklists are listed, those that are over are not.
func TestPausedTasklistsAreListed(t *testing.T) {
	all := Tasklists([]*yardv1.Tasklist{{Name: "b"}}, map[string]*yardv1.Pause{"a": {By: "ann"}, "b": {By: "bob"}, "c": {By: "cy"}},
		map[string]*yardv1.Pause{"a": {By: "dee"}, "e": {By: "eve"}}, [][]*yardv1.ListedTasklist{{{Name: "c", Ready: 2}, {Name: "d", Ready: 1}}, {{Name: "c", Ready: 3}}})
	var got []string
	for _, l := range all {
		got = append(got, fmt.Sprint(l.Name, l.Pause.GetBy(), l.Drain.GetBy(), l.Settings != nil, l.Ready))
	}
	testkit.Equal(t, "result", got, []string{"aanndeefalse 0", "bbobtrue 0", "ccyfalse 5", "dfalse 1", "eevefalse 0"})
}

// TestADescriptionIsASum: counts are added up; slots are the domain's, of which each part tells, and one may be late.
func TestADescriptionIsASum(t *testing.T) {
	slots := func(ref string, n int32) *yardv1.SlotUse { return &yardv1.SlotUse{Ref: ref, InUse: n} }
	of := func(partition int32) []*yardv1.TasklistPartition {
		return []*yardv1.TasklistPartition{{Partition: partition}}
	}
	got := Description("mail", []*yardv1.DescribeTasklistResponse{
		{PerPartition: of(4)},
		{PerPartition: of(2)},
		{Ready: 1, Waiting: 2, OldestReadyMs: 30, Slots: []*yardv1.SlotUse{slots("b", 3), slots("a", 1)}},
		{Ready: 4, Dead: 1, OldestReadyMs: 20, Slots: []*yardv1.SlotUse{slots("b", 5)}},
	})
	testkit.Equal(t, "counts", fmt.Sprint(got.Tasklist, got.Ready, got.Waiting, got.Dead, got.OldestReadyMs), "mail5 2 1 30")
	testkit.Equal(t, "partitions", fmt.Sprint(len(got.PerPartition), got.PerPartition[0].Partition, got.PerPartition[1].Partition), "2 2 4")
	testkit.Equal(t, "slots", fmt.Sprint(len(got.Slots), got.Slots[0].Ref, got.Slots[0].InUse, got.Slots[1].Ref, got.Slots[1].InUse), "2a1b5")
}

// TestDomainsAreAddedUp over partitions and the timer. Shares are of the weights of those with work, and who says nothing is named.
func TestDomainsAreAddedUp(t *testing.T) {
	part := func(all ...*yardv1.TopDomain) *yardv1.TopDomainsResponse {
		return &yardv1.TopDomainsResponse{Domains: all}
	}
	full := func(all ...*yardv1.FullLimit) *yardv1.TopDomainsResponse {
		return &yardv1.TopDomainsResponse{FullLimits: all}
	}
	got := TopDomains(TopParts{
		History: []*yardv1.TopDomainsResponse{
			part(&yardv1.TopDomain{Domain: "a", CompletedPerS: 2, StartedPerS: 3, Ready: 1, OldestReadyMs: 50}, &yardv1.TopDomain{Domain: "b", CompletedPerS: 1}),
			nil,
			part(&yardv1.TopDomain{Domain: "a", CompletedPerS: 1, FailedPerS: 4, Ready: 2, OldestReadyMs: 70}),
		},
		Timers: []*yardv1.TopDomainsResponse{part(&yardv1.TopDomain{Domain: "late", Waiting: 5, LateMs: 2000}, &yardv1.TopDomain{Domain: "a", Waiting: 6, LateMs: 999}), nil, nil},
		Shards: []*yardv1.TopDomainsResponse{
			nil,
			full(&yardv1.FullLimit{Domain: "a", Ref: "type/x", MaxConcurrency: 4, Running: 1, FullForMs: 5, WaitingTasklists: 1}, &yardv1.FullLimit{Domain: "b", Ref: "domain", FullForMs: 6}),
			full(&yardv1.FullLimit{Domain: "a", Ref: "type/x", MaxConcurrency: 4, Running: 3, FullForMs: 9, WaitingTasklists: 1}),
		},
	}, &yardv1.TopDomainsRequest{Limit: 2, By: "completed"}, func(domain string) int { return map[string]int{"a": 3}[domain] + 1 })
	a := got.Domains[0]
	testkit.Equal(t, "the first", fmt.Sprint(a.Domain, a.CompletedPerS, a.StartedPerS, a.FailedPerS, a.Ready, a.OldestReadyMs, a.Waiting, a.LateMs), "a3 3 4 3 70 6 999")
	testkit.Equal(t, "its shares", fmt.Sprint(a.Weight, a.Share, a.Received), "4 0.8 0.75")
	testkit.Equal(t, "the others", fmt.Sprint(got.Domains[1].Domain, got.Domains[1].Share, got.Others), "b0.2 1")
	testkit.Equal(t, "all", fmt.Sprint(got.Total.CompletedPerS, got.Total.Weight, got.Total.Waiting, got.Total.LateMs, got.Total.OldestReadyMs), "4 5 11 2000 70")
	testkit.Equal(t, "late", fmt.Sprint(len(got.Late), got.Late[0].Domain), "1late")
	testkit.Equal(t, "silent", fmt.Sprint(got.Partitions, got.Shards, got.SilentHistory, got.SilentTimers, got.SilentShards), "3 3 [1] [1 2] [0]")
	l := got.FullLimits[0]
	testkit.Equal(t, "full", fmt.Sprint(len(got.FullLimits), l.Domain, l.Ref, l.MaxConcurrency, l.Running, l.FullForMs, l.WaitingTasklists), "2atype/x4 4 9 2")
}

// TestOneDomainHasItsShareOfAll: only this one is listed, and the sums are those of all.
func TestOneDomainHasItsShareOfAll(t *testing.T) {
	parts := TopParts{History: []*yardv1.TopDomainsResponse{{Domains: []*yardv1.TopDomain{{Domain: "a", CompletedPerS: 3}, {Domain: "b", CompletedPerS: 1}}}}}
	got := TopDomains(parts, &yardv1.TopDomainsRequest{Limit: 5, Domain: "b"}, func(string) int { return 1 })
	testkit.Equal(t, "the domains", fmt.Sprint(len(got.Domains), got.Domains[0].Domain, got.Domains[0].Share, got.Domains[0].Received, got.Others, got.Total.CompletedPerS), "1b0.5 0.25 1 4")
	got = TopDomains(parts, &yardv1.TopDomainsRequest{Limit: 5, Domain: "c"}, func(string) int { return 1 })
	testkit.Equal(t, "a domain without work", fmt.Sprint(len(got.Domains), got.Others), "0 2")
}
