package catalog

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Stops are the pauses, or the drains, of domains, tasklists, types and groups.
type Stops struct{ Domains, Tasklists, Types, Groups Kind[*yardv1.Pause] }

func declareStops(word string) Stops {
	return Stops{
		declare[*yardv1.Pause](kind{noun: word + " of domain", prefix: word + ".domain.", clusterWide: true}),
		declare[*yardv1.Pause](kind{noun: word + " of tasklist", prefix: word + ".tasklist."}),
		declare[*yardv1.Pause](kind{noun: word + " of type", prefix: word + ".type.", dotted: true}),
		declare[*yardv1.Pause](kind{noun: word + " of group", prefix: word + ".group.", dotted: true}),
	}
}

// Stopped is what is paused, or drained, of a domain, by name; and the domain itself, nil = it is not.
type Stopped struct {
	Domain                   *yardv1.Pause
	Tasklists, Types, Groups map[string]*yardv1.Pause
}

// Len is how many there are in the domain.
func (s Stopped) Len() int { return len(s.Tasklists) + len(s.Types) + len(s.Groups) }

// Of are those of a domain that are not over at an instant, Unix ms; at 0, all that are stored. They are read-only, the maps are not.
func (s Stops) Of(c *Catalog, domain string, nowMS int64) Stopped {
	of := func(k Kind[*yardv1.Pause]) map[string]*yardv1.Pause {
		some := map[string]*yardv1.Pause{}
		for name, p := range k.Each(c, domain) {
			if Paused(p, nowMS) {
				some[name] = p
			}
		}
		return some
	}
	whole := s.Domains.Of(c, "", domain)
	if !Paused(whole, nowMS) {
		whole = nil
	}
	return Stopped{whole, of(s.Tasklists), of(s.Types), of(s.Groups)}
}

// OfTask is what stops a task at an instant, Unix ms: its kind, its name, and the pause or drain; nil = nothing does. Group "" = the task has none.
func (s Stops) OfTask(c *Catalog, domain, tasklist, taskType, group string, nowMS int64) (kind, name string, p *yardv1.Pause) {
	if p = s.Domains.Of(c, "", domain); Paused(p, nowMS) {
		return "domain", domain, p
	}
	if p = s.Tasklists.Of(c, domain, tasklist); Paused(p, nowMS) {
		return "tasklist", tasklist, p
	}
	if p = s.Types.Of(c, domain, taskType); Paused(p, nowMS) {
		return "type", taskType, p
	}
	if p = s.Groups.Of(c, domain, group); group != "" && Paused(p, nowMS) {
		return "group", group, p
	}
	return "", "", nil
}

// Ends are, by domain, when the next of them ends by itself after an instant, Unix ms.
func (s Stops) Ends(c *Catalog, nowMS int64) map[string]int64 {
	ends := map[string]int64{}
	for _, k := range []Kind[*yardv1.Pause]{s.Domains, s.Tasklists, s.Types, s.Groups} {
		for in := range k.InDomains(c) {
			for name, p := range k.Each(c, in) {
				domain := k.concerns(in, name)
				if at, known := ends[domain]; p.UntilMs > nowMS && (!known || p.UntilMs < at) {
					ends[domain] = p.UntilMs
				}
			}
		}
	}
	return ends
}

// Paused reports whether a pause or a drain holds at an instant, Unix ms.
func Paused(p *yardv1.Pause, nowMS int64) bool {
	return p != nil && (p.UntilMs == 0 || nowMS < p.UntilMs)
}

// PutStop stores a pause or a drain. One that meets the deletion of its domain does not outlive it: a domain that is created again under the name would have
// it. Its error is as that of Kind.Put, or NOT_FOUND: there is no such domain.
func PutStop(ctx context.Context, kv Bucket, k Kind[*yardv1.Pause], domain, name string, p *yardv1.Pause) error {
	revision, err := k.PutAs(ctx, kv, domain, name, p)
	if err != nil {
		return err
	}
	// A deletion that begins after this read finds the record.
	_, missing := Domains.Get(ctx, kv, "", k.concerns(domain, name))
	if fault.CodeOf(missing) != fault.NotFound {
		return missing
	}
	if _, err = k.Delete(ctx, kv, domain, name, revision); fault.CodeOf(err) == fault.Unavailable {
		return err
	}
	return missing
}

// DeleteOver deletes a pause or a drain if it is over at an instant, Unix ms. One that was put meanwhile stays.
func DeleteOver(ctx context.Context, kv Bucket, k Kind[*yardv1.Pause], domain, name string, nowMS int64) error {
	_, err := k.deleteIf(ctx, kv, domain, name, 0, func(p *yardv1.Pause) bool { return !Paused(p, nowMS) })
	if code := fault.CodeOf(err); code == fault.Stale || code == fault.NotFound {
		return nil
	}
	return err
}
