package pages

import (
	"context"
	"net/url"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/domainwork"
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
	Load        *yardv1.TopDomain
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
	top, _ := r.pages.Sampler.Last(followCluster(r)).Value.(*domainwork.Answer)
	for d, err := range admin.Domains(r.Context()) {
		if err != nil {
			return nil, err
		}
		if len(body.Domains) == domainsMax {
			body.More = true
			break
		}
		row := domainRow{Name: d.Name, Description: d.Description, Weight: max(1, d.Weight), Load: workOf(top, d.Name)}
		body.Uncounted = body.Uncounted || row.Load == nil
		body.Domains = append(body.Domains, row)
	}
	return body, nil
}

// workOf is what a domain has, by an answer about all domains; nil = that is not known.
func workOf(top *domainwork.Answer, name string) *yardv1.TopDomain {
	if top == nil || top.Silent() > 0 || top.Others > 0 && top.Listed(name) == nil {
		return nil
	}
	return top.Work(name)
}

type domainBody struct {
	yard.Domain
	// Quotas are those that are set, with what is used of them just now.
	Quotas []quotaUse
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
	return body, nil
}

// followDomain is the topic of one domain.
func followDomain(r *Request) sampler.Topic {
	name, pages := r.Domain, r.pages
	return sampler.Topic{Kind: "domain", Name: name, Fetch: func(ctx context.Context, _ sampler.Sample) (any, []float64, error) {
		admin, err := pages.Access.Admin(login.Viewer)
		if err != nil {
			return nil, nil, err
		}
		work, err := domainwork.One(ctx, admin, name)
		if err != nil {
			return nil, nil, err
		}
		return work, numbersOf(work.Work(name)), nil
	}}
}

type domainLive struct {
	*yardv1.TopDomain
	// Cluster: the user may know what part of the cluster the domain has, which says what the others do.
	Cluster bool
	// Problems are partitions that do not answer, and timers that are late.
	Problems []problem
}

func liveDomain(r *Request, s sampler.Sample) any {
	answer := s.Value.(*domainwork.Answer)
	work := answer.Work(r.Domain)
	return domainLive{work, r.Who.SeesAll(), append(notWhole(answer), lateTimer(work)...)}
}
