// Package busiest sorts the domains of domains.top.
//
// Owns: by what domains may be sorted, and the order. Never does: count. On failure: nothing can fail; Known says whether there is a measure.
package busiest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Default is the measure if none is named.
const Default = "completed"

// partitionMost is how many domains one partition reports, beside the one that is asked for by its name.
const partitionMost = 1000

// measure is a number of a domain: the largest comes first.
type measure struct {
	name string
	of   func(*yardv1.TopDomain) float64
}

// measures are all of them, in the order of the API.
var measures = []measure{
	{"admitted", (*yardv1.TopDomain).GetAdmittedPerS},
	{"started", (*yardv1.TopDomain).GetStartedPerS},
	{Default, (*yardv1.TopDomain).GetCompletedPerS},
	{"failed", (*yardv1.TopDomain).GetFailedPerS},
	{"ready", whole((*yardv1.TopDomain).GetReady)},
	{"running", whole((*yardv1.TopDomain).GetRunning)},
	{"backoff", whole((*yardv1.TopDomain).GetBackoff)},
	{"waiting", whole((*yardv1.TopDomain).GetWaiting)},
	{"unread", whole((*yardv1.TopDomain).GetUnread)},
	{"oldest", whole((*yardv1.TopDomain).GetOldestReadyMs)},
	{"late", whole((*yardv1.TopDomain).GetLateMs)},
}

func whole(of func(*yardv1.TopDomain) int64) func(*yardv1.TopDomain) float64 {
	return func(d *yardv1.TopDomain) float64 { return float64(of(d)) }
}

// Names are the names of all measures.
func Names() (names []string) {
	for _, m := range measures {
		names = append(names, m.name)
	}
	return names
}

// Known reports whether there is a measure of this name.
func Known(by string) bool { return slices.Contains(Names(), by) }

// First sorts domains by a measure, and returns the first of them, up to most. Of those with the same number the one comes first that completes more, then
// the one with more ready tasks, then the one whose timers are latest, then the one with more waiting tasks.
func First(all []*yardv1.TopDomain, by string, most int) []*yardv1.TopDomain {
	of := (*yardv1.TopDomain).GetCompletedPerS
	if at := slices.IndexFunc(measures, func(m measure) bool { return m.name == by }); at >= 0 {
		of = measures[at].of
	}
	slices.SortFunc(all, func(a, b *yardv1.TopDomain) int {
		return cmp.Or(
			cmp.Compare(of(b), of(a)), cmp.Compare(b.CompletedPerS, a.CompletedPerS), cmp.Compare(b.Ready, a.Ready),
			cmp.Compare(b.LateMs, a.LateMs), cmp.Compare(b.Waiting, a.Waiting), strings.Compare(a.Domain, b.Domain),
		)
	})
	return all[:min(most, len(all))]
}

// OfPartition returns the domains that one partition reports: the first ones by the measure of a request, and the one that it names.
func OfPartition(all []*yardv1.TopDomain, req *yardv1.TopDomainsRequest) []*yardv1.TopDomain {
	first := First(all, req.By, partitionMost)
	for _, d := range all[len(first):] {
		if d.Domain == req.Domain {
			first = append(first, d)
			break
		}
	}
	return first
}
