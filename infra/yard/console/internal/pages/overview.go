package pages

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/domainwork"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/words"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/health"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// Limits of the overview.
const (
	// rowsMax is how many domains it shows.
	rowsMax = 20
	// checkedDomains are the domains with the most ready tasks, whose tasklists are checked; checkedTasklists are how many tasklists of each are.
	checkedDomains, checkedTasklists = 3, 5
	// checkTimeout bounds the checks, so that a broken cluster still has an overview.
	checkTimeout = 3 * time.Second
	// lateAfter is how late a timer, and oldAfter how old a ready task is, if the page says so.
	lateAfter, oldAfter = 5 * time.Second, time.Minute
)

// followCluster is the topic of the domains that the user may see. The one of all domains is the same for all users.
func followCluster(r *Request) sampler.Topic {
	pages, names := r.pages, r.Who.Domains
	all := sampler.Topic{Kind: "cluster", Fetch: func(ctx context.Context, _ sampler.Sample) (any, []float64, error) {
		admin, err := pages.Access.Admin(login.Viewer)
		if err != nil {
			return nil, nil, err
		}
		top, err := domainwork.All(ctx, admin)
		if err != nil {
			return nil, nil, err
		}
		return top, numbersOf(top.Total), nil
	}}
	if r.Who.SeesAll() {
		return all
	}
	return sampler.Topic{Kind: "own", Name: strings.Join(names, " "), Fetch: func(ctx context.Context, _ sampler.Sample) (any, []float64, error) {
		top := pages.Sampler.Last(all)
		if top.Err != nil {
			return nil, nil, top.Err
		}
		admin, err := pages.Access.Admin(login.Viewer)
		if err != nil {
			return nil, nil, err
		}
		own, err := domainwork.Own(ctx, admin, top.Value.(*domainwork.Answer), names)
		return own, nil, err
	}}
}

// numbersOf are what a chart shows of a domain.
func numbersOf(d *yardv1.TopDomain) []float64 {
	return []float64{d.CompletedPerS, d.FailedPerS, float64(d.Ready)}
}

// problem is a line of the red list.
type problem struct{ Text, Path string }

// overviewLive is the part of the overview that changes.
type overviewLive struct {
	Sum      *yardv1.TopDomain
	Domains  []*yardv1.TopDomain
	Others   int
	Full     []*yardv1.FullLimit
	Problems []problem
	// Cluster: the user may see all domains, and whether partitions answer.
	Cluster bool
}

func liveOverview(r *Request, s sampler.Sample) any {
	top := s.Value.(*domainwork.Answer)
	live := overviewLive{Cluster: r.Who.SeesAll(), Sum: top.Total, Domains: top.Domains[:min(len(top.Domains), rowsMax)], Full: top.FullLimits[:min(len(top.FullLimits), rowsMax)]}
	live.Others = len(top.Domains) - len(live.Domains) + int(top.Others)
	if s.Err != nil {
		live.Problems = append(live.Problems, problem{Text: "The numbers are from " + words.At(s.At).Text + ": " + s.Err.Error()})
	}
	if n := len(top.Unknown); n > 0 {
		live.Problems = append(live.Problems, problem{fmt.Sprintf("The work of %d of your domains is not known, since they are too many. Their pages have it", n), "/domains"})
	}
	if live.Cluster {
		live.Problems = append(live.Problems, silence(top)...)
	} else {
		live.Problems = append(live.Problems, notWhole(top)...)
	}
	for _, d := range top.Late {
		live.Problems = append(live.Problems, lateTimer(d)...)
	}
	for _, d := range top.Domains {
		if age := time.Duration(d.OldestReadyMs) * time.Millisecond; age >= oldAfter {
			live.Problems = append(live.Problems, problem{fmt.Sprintf("A task of domain %s is ready for %s and has not started", d.Domain, words.Lasting(age)), "/domains/" + d.Domain + "/tasklists"})
		}
	}
	live.Problems = live.Problems[:min(len(live.Problems), rowsMax)]
	return live
}

// silence names the partitions and shards that do not answer.
func silence(top *domainwork.Answer) (found []problem) {
	for _, silent := range []struct {
		what    string
		numbers []int32
	}{{"Partition %d of history", top.SilentHistory}, {"Partition %d of the timer", top.SilentTimers}, {"Shard %d of matching", top.SilentShards}} {
		for _, number := range silent.numbers {
			found = append(found, problem{fmt.Sprintf(silent.what, number) + " does not answer", "/cluster"})
		}
	}
	return found
}

// notWhole says for domains that partitions do not answer, if that is so. A user who may not see the cluster learns only how many.
func notWhole(top *domainwork.Answer) []problem {
	n := top.Silent()
	if n == 0 {
		return nil
	}
	return []problem{{Text: fmt.Sprintf("The numbers are not whole. Partitions that do not answer: %d", n)}}
}

// lateTimer says that the timers of a domain are late, if they are.
func lateTimer(d *yardv1.TopDomain) []problem {
	late := time.Duration(d.LateMs) * time.Millisecond
	if late < lateAfter {
		return nil
	}
	return []problem{{fmt.Sprintf("A timer of domain %s is late by %s", d.Domain, words.Lasting(late)), "/domains/" + d.Domain + "/timers"}}
}

// showOverview checks the processes and the busiest domains once, when the page is opened.
func showOverview(r *Request) (any, error) {
	sample := r.pages.Sampler.Last(followCluster(r))
	if sample.Value == nil {
		return nil, sample.Err
	}
	busiest := slices.Clone(sample.Value.(*domainwork.Answer).Domains)
	slices.SortStableFunc(busiest, func(a, b *yardv1.TopDomain) int { return cmp.Compare(b.Ready, a.Ready) })
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	n := min(len(busiest), checkedDomains)
	found := make([][]problem, n+1)
	var checks sync.WaitGroup
	for i := range n {
		checks.Go(func() { found[i+1] = r.check(ctx, busiest[i].Domain) })
	}
	if r.Who.SeesAll() {
		checks.Go(func() { found[0] = r.checkProcesses(ctx) })
	}
	checks.Wait()
	return slices.Concat(found...), nil
}

// checkProcesses finds services without a process that is ready, and what processes warn of, such as partitions without an owner.
func (r *Request) checkProcesses(ctx context.Context) (found []problem) {
	const path = "/cluster"
	answers, err := r.pages.Access.Health(ctx, login.Viewer)
	if err != nil {
		return []problem{{"The processes could not be asked for their health: " + err.Error(), path}}
	}
	for _, service := range health.Services() {
		if !slices.ContainsFunc(answers, func(a process.Answer) bool { return a.Service == service && a.Ready }) {
			found = append(found, problem{fmt.Sprintf("No process of the service %s is ready", service), path})
		}
	}
	for _, a := range answers {
		for _, c := range a.Checks {
			if !c.OK && len(found) < rowsMax {
				found = append(found, problem{fmt.Sprintf("Process %s of %s: %s: %s", a.Node, a.Service, c.Name, c.Error), path})
			}
		}
	}
	return found
}

// check looks for tasklists of a domain that no worker polls.
func (r *Request) check(ctx context.Context, domain string) (found []problem) {
	failed := func(err error) []problem {
		return append(found, problem{fmt.Sprintf("Domain %s could not be checked: %v", domain, err), "/domains/" + domain})
	}
	c, err := r.pages.Access.Client(login.Viewer, domain)
	if err != nil {
		return failed(err)
	}
	all, err := listTasklists(ctx, c, "")
	if err != nil {
		return failed(err)
	}
	slices.SortStableFunc(all.Tasklists, func(a, b *yardv1.ListedTasklist) int { return cmp.Compare(b.Ready, a.Ready) })
	for _, t := range all.Tasklists[:min(len(all.Tasklists), checkedTasklists)] {
		if t.Ready == 0 || t.Pause != nil {
			continue
		}
		d, err := c.Wire().DescribeTasklist(ctx, t.Name)
		switch {
		case err != nil:
			return failed(err)
		case d.Pollers == 0 && d.Ready > 0:
			text := fmt.Sprintf("No worker polls tasklist %s of domain %s. Ready tasks: %s", t.Name, domain, words.Count(d.Ready))
			found = append(found, problem{text, "/domains/" + domain + "/tasklists/" + url.PathEscape(t.Name)})
		}
	}
	return found
}

// fairnessLive is the page of shares.
type fairnessLive struct {
	Domains []*yardv1.TopDomain
	Others  int32
}

func liveFairness(_ *Request, s sampler.Sample) any {
	top := s.Value.(*domainwork.Answer)
	return fairnessLive{top.Domains, top.Others}
}
