package pages

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/load"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/health"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// Limits of the overview.
const (
	// rowsMax is how many domains it shows.
	rowsMax = 20
	// checkedDomains are the domains with the most ready tasks, whose tasklists and timers are checked; checkedTasklists are how many tasklists of each are.
	checkedDomains, checkedTasklists = 3, 5
	// checkTimeout bounds the checks, so that a broken cluster still has an overview.
	checkTimeout = 3 * time.Second
	// lateAfter is how late a timer, and oldAfter how old a ready task is, if the page says so.
	lateAfter, oldAfter = 5 * time.Second, time.Minute
)

// followCluster is the topic of the whole cluster.
func followCluster(r *Request) sampler.Topic {
	return sampler.Topic{Kind: "cluster", Fetch: func(ctx context.Context, before sampler.Sample) (any, []float64, error) {
		admin, err := r.pages.Access.Admin(login.Viewer)
		if err != nil {
			return nil, nil, err
		}
		was, _ := before.Value.(*load.Cluster)
		now, err := load.Read(ctx, admin, was, time.Since(before.At))
		if err != nil {
			return nil, nil, err
		}
		if !now.Rates {
			return now, nil, nil
		}
		sum := now.Sum()
		return now, []float64{sum.Done, sum.Failed, float64(sum.Ready)}, nil
	}}
}

// problem is a line of the red list.
type problem struct{ Text, Path string }

// overviewLive is the part of the overview that changes.
type overviewLive struct {
	Rates    bool
	Sum      load.Domain
	Domains  []*load.Domain
	Others   int
	Problems []problem
	// Cluster: the user may see all domains, and whether partitions answer.
	Cluster bool
}

func liveOverview(r *Request, s sampler.Sample) any {
	l := s.Value.(*load.Cluster).Some(r.Who.Sees)
	live := overviewLive{Cluster: r.Who.SeesAll(), Rates: l.Rates, Sum: l.Sum(), Domains: l.Domains[:min(len(l.Domains), rowsMax)]}
	live.Others = len(l.Domains) - len(live.Domains)
	if s.Err != nil {
		live.Problems = append(live.Problems, problem{Text: "The numbers are from " + at(s.At).Text + ": " + s.Err.Error()})
	}
	if r.Who.SeesAll() {
		for _, p := range l.Partitions {
			if p.Error != "" {
				live.Problems = append(live.Problems, problem{fmt.Sprintf("Partition %d does not answer: %s", p.Partition, p.Error), "/cluster"})
			}
		}
	}
	for _, d := range l.Domains {
		if len(live.Problems) >= rowsMax {
			break
		}
		if age := time.Duration(d.OldestReady) * time.Millisecond; age >= oldAfter {
			live.Problems = append(live.Problems, problem{fmt.Sprintf("A task of domain %s is ready for %s and has not started", d.Name, lasting(age)), "/domains/" + d.Name + "/tasklists"})
		}
	}
	return live
}

// showOverview checks the processes and the busiest domains once, when the page is opened. The page of a domain checks its timers.
func showOverview(r *Request) (any, error) {
	sample := r.pages.Sampler.Last(followCluster(r))
	if sample.Value == nil {
		return nil, sample.Err
	}
	busiest := sample.Value.(*load.Cluster).Some(r.Who.Sees).Domains
	slices.SortStableFunc(busiest, func(a, b *load.Domain) int { return cmp.Compare(b.Ready, a.Ready) })
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	n := min(len(busiest), checkedDomains)
	found := make([][]problem, n+1)
	var checks sync.WaitGroup
	for i := range n {
		checks.Go(func() { found[i+1] = r.check(ctx, busiest[i].Name) })
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

// check looks for tasklists of a domain that no worker polls, and for timers that are late.
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
			text := fmt.Sprintf("No worker polls tasklist %s of domain %s. Ready tasks: %s", t.Name, domain, count(d.Ready))
			found = append(found, problem{text, "/domains/" + domain + "/tasklists/" + url.PathEscape(t.Name)})
		}
	}
	late, err := lateTimers(ctx, c, r.Now)
	if err != nil {
		return failed(err)
	}
	return append(found, late...)
}

// lateTimers finds a task of a domain whose time has come and that has not been admitted.
func lateTimers(ctx context.Context, c *yard.Client, now time.Time) (found []problem, err error) {
	due, err := c.Wire().List(ctx, &yardv1.ListRequest{DueWithinMs: 1, Limit: 1})
	if err != nil {
		return nil, err
	}
	for _, t := range due.Tasks {
		if late := now.Sub(time.UnixMilli(t.DueAtMs)); late >= lateAfter {
			found = append(found, problem{fmt.Sprintf("A timer of domain %s is late by %s", c.Domain(), lasting(late)), "/domains/" + c.Domain() + "/tasks/" + t.TaskId})
		}
	}
	return found, nil
}

// fairnessLive is the page of shares.
type fairnessLive struct {
	Rates   bool
	Domains []*load.Domain
	Others  int
}

// fairnessMax is how many domains the page of shares shows.
const fairnessMax = 100

func liveFairness(_ *Request, s sampler.Sample) any {
	l := s.Value.(*load.Cluster)
	shown := l.Domains[:min(len(l.Domains), fairnessMax)]
	return fairnessLive{l.Rates, shown, len(l.Domains) - len(shown)}
}
