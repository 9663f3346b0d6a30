// Package domainwork asks the engine for the work of domains: the busiest, those with the oldest ready tasks, and those of a user.
//
// Owns: which calls an answer needs, their number, and what is not known. Never does: keep an answer, or decide who may see a domain. On failure: there is no answer
// if one of its calls fails. Domains beyond the bound of calls, and partitions that do not answer, are named in the answer.
package domainwork

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

const (
	// topMost is how many domains and limits the API lists.
	topMost = 100
	// AskedMost is how many domains of a user are asked for one by one.
	AskedMost = 20
)

// Engine answers domains.top.
type Engine interface {
	TopDomains(ctx context.Context, req *yardv1.TopDomainsRequest) (*yardv1.TopDomainsResponse, error)
}

// Answer is the work of all domains, or of those of a user.
type Answer struct {
	*yardv1.TopDomainsResponse
	// Unknown are domains of the user whose work is not known, since they were too many to ask for each.
	Unknown []string
}

// Silent is how many partitions of history and of the timer do not answer: their tasks are missing in the numbers.
func (a *Answer) Silent() int { return len(a.SilentHistory) + len(a.SilentTimers) }

// Listed is the work of a domain that the answer lists; nil = it lists none.
func (a *Answer) Listed(name string) *yardv1.TopDomain {
	for _, d := range a.Domains {
		if d.Domain == name {
			return d
		}
	}
	return nil
}

// Work is that of a domain that has none unless the answer lists it.
func (a *Answer) Work(name string) *yardv1.TopDomain {
	return cmp.Or(a.Listed(name), &yardv1.TopDomain{Domain: name})
}

// All is the work of all domains. A domain that completes nothing is not among the busiest, so those with the oldest ready tasks come behind them.
func All(ctx context.Context, engine Engine) (*Answer, error) {
	top, err := engine.TopDomains(ctx, &yardv1.TopDomainsRequest{Limit: topMost})
	if err != nil {
		return nil, err
	}
	if top.Others > 0 {
		oldest, err := engine.TopDomains(ctx, &yardv1.TopDomainsRequest{Limit: topMost, By: "oldest"})
		if err != nil {
			return nil, err
		}
		for _, d := range oldest.Domains {
			if !has(top.Domains, d.Domain) {
				top.Domains, top.Others = append(top.Domains, d), max(0, top.Others-1)
			}
		}
	}
	return &Answer{TopDomainsResponse: top}, nil
}

// Own is the work of the domains of a user, with their sum. It asks for each domain that the answer about all domains has left out.
func Own(ctx context.Context, engine Engine, all *Answer, names []string) (*Answer, error) {
	theirs := func(d *yardv1.TopDomain) bool { return !slices.Contains(names, d.Domain) }
	own := &Answer{TopDomainsResponse: &yardv1.TopDomainsResponse{
		Domains: slices.DeleteFunc(slices.Clone(all.Domains), theirs), Late: slices.DeleteFunc(slices.Clone(all.Late), theirs),
		FullLimits:    slices.DeleteFunc(slices.Clone(all.FullLimits), func(l *yardv1.FullLimit) bool { return !slices.Contains(names, l.Domain) }),
		SilentHistory: all.SilentHistory, SilentTimers: all.SilentTimers,
	}}
	if all.Others > 0 {
		missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return has(own.Domains, name) })
		n := min(len(missing), AskedMost)
		asked, err := each(ctx, engine, missing[:n])
		if err != nil {
			return nil, err
		}
		own.Unknown = missing[n:]
		for _, d := range asked {
			own.Domains = append(own.Domains, d)
			if !has(own.Late, d.Domain) {
				own.Late = append(own.Late, d)
			}
		}
	}
	sum := &yardv1.TopDomain{}
	for _, d := range own.Domains {
		sum.CompletedPerS, sum.FailedPerS, sum.OldestReadyMs = sum.CompletedPerS+d.CompletedPerS, sum.FailedPerS+d.FailedPerS, max(sum.OldestReadyMs, d.OldestReadyMs)
		sum.Ready, sum.Running, sum.Backoff = sum.Ready+d.Ready, sum.Running+d.Running, sum.Backoff+d.Backoff
	}
	own.Total = sum
	return own, nil
}

// each asks for domains one by one, and returns those that have work.
func each(ctx context.Context, engine Engine, names []string) (found []*yardv1.TopDomain, err error) {
	answers, errs := make([]*Answer, len(names)), make([]error, len(names))
	var calls sync.WaitGroup
	for i, name := range names {
		calls.Go(func() { answers[i], errs[i] = One(ctx, engine, name) })
	}
	calls.Wait()
	for _, a := range answers {
		if a != nil {
			found = append(found, a.Domains...)
		}
	}
	return found, errors.Join(errs...)
}

// One is the work of one domain.
func One(ctx context.Context, engine Engine, name string) (*Answer, error) {
	top, err := engine.TopDomains(ctx, &yardv1.TopDomainsRequest{Domain: name})
	if err != nil {
		return nil, err
	}
	return &Answer{TopDomainsResponse: top}, nil
}

func has(domains []*yardv1.TopDomain, name string) bool {
	return slices.ContainsFunc(domains, func(d *yardv1.TopDomain) bool { return d.Domain == name })
}
