package pages

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
)

// Limits of lists.
const (
	// listMax is how many entries a page of a list has.
	listMax = 100
	// pollersMax is how many workers, and headsMax how many of the next tasks a page of a tasklist has.
	pollersMax, headsMax = 50, 20
)

func listTasklists(ctx context.Context, c *yard.Client, cursor string) (*yardv1.ListTasklistsResponse, error) {
	return yard.Call[yardv1.ListTasklistsResponse](ctx, c, "tasklists.list", &yardv1.ListTasklistsRequest{Limit: listMax, Cursor: cursor})
}

func showTasklists(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	page, err := listTasklists(r.Context(), c, r.FormValue("cursor"))
	if err != nil {
		return nil, err
	}
	return listed[*yardv1.ListedTasklist]{page.Tasklists, r.next(page.NextCursor)}, nil
}

type tasklistBody struct {
	// Settings are nil if it has none.
	Settings *yardv1.Tasklist
	Pollers  *yardv1.TasklistPollersResponse
	// Heads are the tasks that start next, by priority.
	Heads []heads
	// Unread are messages on disk that may have more tasks.
	Unread int64
}

// heads are the next tasks of a priority.
type heads struct {
	Priority int32
	Tasks    []*yardv1.PeekedTask
}

func showTasklist(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	ctx, name, body := r.Context(), r.PathValue("tasklist"), tasklistBody{}
	settings, err := yard.Call[yardv1.GetTasklistResponse](ctx, c, "tasklists.get", &yardv1.GetTasklistRequest{Name: name})
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	body.Settings = settings.GetTasklist()
	if body.Pollers, err = c.Wire().TasklistPollers(ctx, &yardv1.TasklistPollersRequest{Tasklist: name, Limit: pollersMax}); err != nil {
		return nil, err
	}
	next, err := c.Wire().PeekTasklist(ctx, &yardv1.PeekTasklistRequest{Name: name, Limit: headsMax})
	if err != nil {
		return nil, err
	}
	body.Unread = next.UnreadBatches
	for _, t := range next.Tasks {
		if n := len(body.Heads); n == 0 || body.Heads[n-1].Priority != t.Task.GetPriority() {
			body.Heads = append(body.Heads, heads{Priority: t.Task.GetPriority()})
		}
		last := &body.Heads[len(body.Heads)-1]
		last.Tasks = append(last.Tasks, t)
	}
	return body, nil
}

// tasklistLive is what a tasklist has, and its rates since the sample before.
type tasklistLive struct {
	*yardv1.DescribeTasklistResponse
	Rates        bool
	Done, Failed float64
}

// branch is a partition of a tasklist, with those that send their polls on to it.
type branch struct {
	Partition int
	// Counts are nil if its owner does not know it.
	Counts *yardv1.TasklistPartition
	Below  []branch
}

// Root is the first partition of the tasklist, with all others below it.
func (t tasklistLive) Root() branch { return t.branch(0) }

func (t tasklistLive) branch(partition int) branch {
	b := branch{Partition: partition}
	for _, p := range t.GetPerPartition() {
		if int(p.Partition) == partition {
			b.Counts = p
		}
	}
	for n := partition + 1; n < int(t.GetPartitions()); n++ {
		if ids.ParentPartition(n) == partition {
			b.Below = append(b.Below, t.branch(n))
		}
	}
	return b
}

func followTasklist(r *Request) sampler.Topic {
	domain, name, pages := r.Domain, r.PathValue("tasklist"), r.pages
	return sampler.Topic{Kind: "tasklist", Name: domain + "/" + name, Fetch: func(ctx context.Context, before sampler.Sample) (any, []float64, error) {
		c, err := pages.Access.Client(login.Viewer, domain)
		if err != nil {
			return nil, nil, err
		}
		d, err := c.Wire().DescribeTasklist(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		now := tasklistLive{DescribeTasklistResponse: d}
		was, ok := before.Value.(tasklistLive)
		if !ok {
			return now, nil, nil
		}
		seconds := time.Since(before.At).Seconds()
		now.Rates, now.Done, now.Failed = true, sampler.PerSecond(d.Completed, was.Completed, seconds), sampler.PerSecond(d.Failed, was.DescribeTasklistResponse.Failed, seconds)
		return now, []float64{now.Done, now.Failed, float64(d.Ready)}, nil
	}}
}

func liveTasklist(_ *Request, s sampler.Sample) any { return s.Value }

type limitsBody struct {
	Top *yardv1.TopLimitsResponse
	// Shared are the limits that types share, with settings, by name.
	Shared listed[*yardv1.Limit]
}

func showLimits(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	body := limitsBody{}
	if body.Top, err = c.Wire().TopLimits(r.Context(), &yardv1.TopLimitsRequest{Limit: listMax, Each: 1}); err != nil {
		return nil, err
	}
	page, err := yard.Call[yardv1.ListLimitsResponse](r.Context(), c, "limits.list", &yardv1.ListLimitsRequest{Limit: listMax, Cursor: r.FormValue("cursor")})
	if err != nil {
		return nil, err
	}
	body.Shared = listed[*yardv1.Limit]{page.Limits, r.next(page.NextCursor)}
	return body, nil
}

// showLimit needs no call of its own: the live block has everything.
func showLimit(*Request) (any, error) { return nil, nil }

// limitLive is a limit in use; Use is nil if it is not in use, or 100 others are more saturated.
type limitLive struct {
	Ref    string
	Use    *yardv1.LimitUse
	Silent []int32
}

// holdersMax is how many holders and waiters the API returns of a limit.
const holdersMax = 10

func followLimit(r *Request) sampler.Topic {
	domain, ref, pages := r.Domain, r.PathValue("ref"), r.pages
	return sampler.Topic{Kind: "limit", Name: domain + "/" + ref, Fetch: func(ctx context.Context, _ sampler.Sample) (any, []float64, error) {
		c, err := pages.Access.Client(login.Viewer, domain)
		if err != nil {
			return nil, nil, err
		}
		top, err := c.Wire().TopLimits(ctx, &yardv1.TopLimitsRequest{Limit: listMax, Each: holdersMax})
		if err != nil {
			return nil, nil, err
		}
		now := limitLive{Ref: ref, Silent: top.SilentShards}
		for _, l := range top.Limits {
			if l.Ref == ref {
				now.Use = l
			}
		}
		return now, []float64{float64(now.Use.GetSlotsInUse()), float64(now.Use.GetMaxConcurrency()), float64(now.Use.GetWaitingTasks())}, nil
	}}
}

func liveLimit(_ *Request, s sampler.Sample) any { return s.Value }

// shared is the name of the limit, if types share it; "" = they do not.
func (l limitLive) shared() string {
	if name, ok := strings.CutPrefix(l.Ref, "shared/"); ok && !strings.Contains(name, "/") {
		return name
	}
	return ""
}

// Unused says why there is nothing to see.
func (l limitLive) Unused() string {
	return fmt.Sprintf("Limit %s is not in use now, and was not full in the last hour.", l.Ref)
}
