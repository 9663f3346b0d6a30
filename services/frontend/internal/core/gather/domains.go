package gather

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/busiest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// TopParts are what the partitions of history and of the timer say of domains, and the shards of matching; nil stands for one that is silent.
type TopParts struct {
	History, Timers, Shards []*yardv1.TopDomainsResponse
}

// TopDomains adds up what the owners say of domains. Weight is that of a domain.
func TopDomains(parts TopParts, req *yardv1.TopDomainsRequest, weight func(domain string) int) *yardv1.TopDomainsResponse {
	resp := &yardv1.TopDomainsResponse{
		Partitions: int32(len(parts.History)), Shards: int32(len(parts.Shards)), Total: &yardv1.TopDomain{},
		SilentHistory: silent(parts.History), SilentTimers: silent(parts.Timers), SilentShards: silent(parts.Shards),
	}
	byName := map[string]*yardv1.TopDomain{}
	var all []*yardv1.TopDomain
	for _, part := range slices.Concat(parts.History, parts.Timers) {
		for _, d := range part.GetDomains() {
			sum := byName[d.Domain]
			if sum == nil {
				sum = &yardv1.TopDomain{Domain: d.Domain}
				byName[d.Domain], all = sum, append(all, sum)
			}
			addDomain(sum, d)
			addDomain(resp.Total, d)
		}
	}
	for _, d := range all {
		if d.Weight = int32(weight(d.Domain)); shares(d) {
			resp.Total.Weight += d.Weight
		}
	}
	for _, d := range all {
		if shares(d) {
			d.Share = float64(d.Weight) / float64(resp.Total.Weight)
		}
		if resp.Total.CompletedPerS > 0 {
			d.Received = d.CompletedPerS / resp.Total.CompletedPerS
		}
	}
	resp.Late = late(all)
	resp.Domains = busiest.First(only(all, req.Domain), req.By, int(req.Limit))
	resp.Others = int32(len(all) - len(resp.Domains))
	resp.FullLimits = fullLimits(parts.Shards, int(req.Limit))
	return resp
}

// shares reports whether a domain counts among those that share what is completed.
func shares(d *yardv1.TopDomain) bool { return d.CompletedPerS > 0 || d.Ready+d.Running+d.Unread > 0 }

const (
	// lateAfterMS is how late the timers of a domain in the list of late ones are at least, lateMost how many domains it has.
	lateAfterMS = 1000
	lateMost    = 10
)

// late are the domains whose timers are latest.
func late(all []*yardv1.TopDomain) []*yardv1.TopDomain {
	some := slices.DeleteFunc(slices.Clone(all), func(d *yardv1.TopDomain) bool { return d.LateMs < lateAfterMS })
	return busiest.First(some, "late", lateMost)
}

// only is the domain of a name; of "" it is all.
func only(all []*yardv1.TopDomain, name string) []*yardv1.TopDomain {
	return slices.DeleteFunc(slices.Clone(all), func(d *yardv1.TopDomain) bool { return name != "" && d.Domain != name })
}

func silent(parts []*yardv1.TopDomainsResponse) (numbers []int32) {
	for i, part := range parts {
		if part == nil {
			numbers = append(numbers, int32(i))
		}
	}
	return numbers
}

func addDomain(sum, d *yardv1.TopDomain) {
	sum.AdmittedPerS += d.AdmittedPerS
	sum.StartedPerS += d.StartedPerS
	sum.CompletedPerS += d.CompletedPerS
	sum.FailedPerS += d.FailedPerS
	sum.Ready += d.Ready
	sum.Running += d.Running
	sum.Backoff += d.Backoff
	sum.Waiting += d.Waiting
	sum.Unread += d.Unread
	sum.OldestReadyMs = max(sum.OldestReadyMs, d.OldestReadyMs)
	sum.LateMs = max(sum.LateMs, d.LateMs)
}

// fullLimits joins what the shards say of the same limits.
func fullLimits(shards []*yardv1.TopDomainsResponse, most int) (all []*yardv1.FullLimit) {
	type name struct{ domain, ref string }
	byName := map[name]*yardv1.FullLimit{}
	for _, part := range shards {
		for _, l := range part.GetFullLimits() {
			sum := byName[name{l.Domain, l.Ref}]
			if sum == nil {
				sum = &yardv1.FullLimit{Domain: l.Domain, Ref: l.Ref}
				byName[name{l.Domain, l.Ref}], all = sum, append(all, sum)
			}
			sum.MaxConcurrency = max(sum.MaxConcurrency, l.MaxConcurrency) // a shard may know an older setting
			sum.Running += l.Running
			sum.FullForMs = max(sum.FullForMs, l.FullForMs)
			sum.WaitingTasklists += l.WaitingTasklists
		}
	}
	slices.SortFunc(all, func(a, b *yardv1.FullLimit) int {
		return cmp.Or(cmp.Compare(b.FullForMs, a.FullForMs), strings.Compare(a.Domain, b.Domain), strings.Compare(a.Ref, b.Ref))
	})
	return all[:min(most, len(all))]
}
