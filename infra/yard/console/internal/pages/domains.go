package pages

import (
	"context"
	"net/url"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/load"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
)

// domainsMax is how many domains the list shows; a form opens others by their name.
const domainsMax = 200

// domainRow is a line of the list of domains. Work is nil if it is not known.
type domainRow struct {
	Name        string
	Description string
	Weight      int
	Load        *load.Domain
}

type domainsBody struct {
	Domains []domainRow
	More    bool
	// Uncounted: there are domains whose work is not known.
	Uncounted bool
}

func showDomains(r *Request) (any, error) {
	if name := r.FormValue("name"); name != "" {
		return nil, redirect("/domains/" + url.PathEscape(name))
	}
	body := domainsBody{}
	if !r.Who.SeesAll() {
		for _, name := range r.Who.Domains {
			body.Domains = append(body.Domains, domainRow{Name: name})
		}
		return body, nil
	}
	admin, err := r.Admin()
	if err != nil {
		return nil, err
	}
	work, _ := r.pages.Sampler.Last(followCluster(r)).Value.(*load.Cluster)
	for d, err := range admin.Domains(r.Context()) {
		if err != nil {
			return nil, err
		}
		if len(body.Domains) == domainsMax {
			body.More = true
			break
		}
		row := domainRow{Name: d.Name, Description: d.Description, Weight: max(1, d.Weight)}
		if work != nil && work.Counted(d.Name) {
			row.Load = work.Of(d.Name)
		}
		body.Uncounted = body.Uncounted || row.Load == nil
		body.Domains = append(body.Domains, row)
	}
	return body, nil
}

type domainBody struct {
	yard.Domain
	// Quotas are those that are set, with what is used of them just now.
	Quotas []quotaUse
	// Problems are timers that are late, or why they could not be checked.
	Problems []problem
}

type quotaUse struct {
	Name        string
	Used, Quota int64
	Bytes       bool
}

func showDomain(r *Request) (any, error) {
	admin, err := r.Admin()
	if err != nil {
		return nil, err
	}
	d, err := admin.GetDomain(r.Context(), r.Domain)
	if err != nil {
		return nil, err
	}
	use := yard.Quota{}
	if d.Use != nil {
		use = *d.Use
	}
	body := domainBody{Domain: d}
	for _, q := range []quotaUse{
		{"Submitted tasks a second", use.SubmitTasksPerSecond, d.Quota.SubmitTasksPerSecond, false},
		{"Submitted bytes a second", use.SubmitBytesPerSecond, d.Quota.SubmitBytesPerSecond, true},
		{"Polls that wait", int64(use.OpenPolls), int64(d.Quota.OpenPolls), false},
		{"Tasks that wait", use.WaitingTasks, d.Quota.WaitingTasks, false},
		{"Stored bytes", use.StoredBytes, d.Quota.StoredBytes, true},
	} {
		if q.Quota > 0 {
			body.Quotas = append(body.Quotas, q)
		}
	}
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	if body.Problems, err = lateTimers(r.Context(), c, r.Now); err != nil {
		body.Problems = []problem{{Text: "The timers could not be checked: " + err.Error()}}
	}
	return body, nil
}

// followDomain is the topic of one domain, which is a part of the cluster's. Partitions are asked for it if they name other domains only.
func followDomain(r *Request) sampler.Topic {
	name, all, pages := r.Domain, followCluster(r), r.pages
	return sampler.Topic{Kind: "domain", Name: name, Fetch: func(ctx context.Context, before sampler.Sample) (any, []float64, error) {
		sample := pages.Sampler.Last(all)
		if sample.Err != nil {
			return nil, nil, sample.Err
		}
		cluster := sample.Value.(*load.Cluster)
		now := domainLive{load: cluster, Alone: !cluster.Counted(name)}
		if now.Alone {
			admin, err := pages.Access.Admin(login.Viewer)
			if err != nil {
				return nil, nil, err
			}
			var was *load.Cluster
			if last, ok := before.Value.(domainLive); ok && last.Alone {
				was = last.load
			}
			if now.load, err = cluster.ReadDomain(ctx, admin, name, was, time.Since(before.At)); err != nil {
				return nil, nil, err
			}
		}
		d := now.load.Of(name)
		if now.Rates, now.Load = now.load.Rates, *d; !now.Rates {
			return now, nil, nil
		}
		return now, []float64{d.Done, d.Failed, float64(d.Ready)}, nil
	}}
}

type domainLive struct {
	Rates bool
	Load  load.Domain
	// Alone: the partitions were asked for this domain, so its share of the cluster is not known.
	Alone bool
	load  *load.Cluster
	// Cluster: the user may know what part of the cluster the domain has, which says what the others do.
	Cluster bool
}

func liveDomain(r *Request, s sampler.Sample) any {
	live := s.Value.(domainLive)
	live.Cluster = r.Who.SeesAll() && !live.Alone
	return live
}
