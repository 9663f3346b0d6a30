package gateway

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// oversMax is how many records of pauses that are over one pause deletes, to have room.
const oversMax = 10

// stops are pauses, or drains.
type stops struct {
	// verb and done are what people and the command line call it.
	verb, done string
	catalog.Stops
}

func stopsOf(drain bool) stops {
	if drain {
		return stops{"drain", "drained", catalog.Drains}
	}
	return stops{"pause", "paused", catalog.Pauses}
}

// stoppable is a domain, a tasklist, a type or a group that may be paused, or drained.
type stoppable struct {
	stops
	domain, name string // of a domain, domain is ""
	kind         validate.Kind
	// records has its pause or its drain.
	records catalog.Kind[*yardv1.Pause]
}

func stoppableOf(domain string, k validate.Kind, name string, drain bool) stoppable {
	s := stopsOf(drain)
	all := map[validate.Kind]catalog.Kind[*yardv1.Pause]{validate.Domain: s.Domains, validate.Tasklist: s.Tasklists, validate.Type: s.Types, validate.Group: s.Groups}
	if k == validate.Domain {
		domain = ""
	}
	return stoppable{s, domain, name, k, all[k]}
}

// in is what a catalog has of it, which may be over by now, or nil.
func (s stoppable) in(c *catalog.Catalog) *yardv1.Pause { return s.records.Of(c, s.domain, s.name) }

// Pause has no task of a tasklist, a type or a group start (tasklists.pause, types.pause, groups.pause), or of a domain (admin domains.pause).
func (g *Gateway) Pause(k validate.Kind) func(Call, *yardv1.PauseRequest, Answer) {
	return g.stop(k, false, func(p *yardv1.Pause) codec.Message { return &yardv1.PauseResponse{Pause: p} })
}

// Drain has submits to a tasklist, or of a type or a group, refused (tasklists.drain, types.drain, groups.drain), or to a domain (admin domains.drain).
func (g *Gateway) Drain(k validate.Kind) func(Call, *yardv1.PauseRequest, Answer) {
	return g.stop(k, true, func(p *yardv1.Pause) codec.Message { return &yardv1.DrainResponse{Drain: p} })
}

// stop dates and stores a pause or a drain. Every process keeps all of them in memory, so a domain may have so many; some more where sets
// meet.
func (g *Gateway) stop(k validate.Kind, drain bool, resp func(*yardv1.Pause) codec.Message) func(Call, *yardv1.PauseRequest, Answer) {
	return func(c Call, req *yardv1.PauseRequest, answer Answer) {
		what, p := stoppableOf(c.Domain, k, req.Name, drain), &yardv1.Pause{Reason: req.Reason, By: req.By, WholeDomain: k == validate.Domain}
		byKind(g, c, k, k.Pause(req), answer, func(ctx context.Context) (codec.Message, error) {
			if p.WholeDomain && g.Catalog.Domain(req.Name) == nil {
				return nil, noDomain("/name", req.Name)
			}
			if p.SinceMs = c.now().UnixMilli(); req.ForMs != 0 {
				p.UntilMs = p.SinceMs + req.ForMs
			}
			if err := g.stopRoom(ctx, what, p.SinceMs); err != nil {
				return nil, err
			}
			if err := catalog.PutStop(ctx, g.Settings, what.records, what.domain, what.name, p); err != nil {
				return nil, notWritten(err)
			}
			g.awaitCatalog(ctx, func() bool { return what.in(g.Catalog).GetSinceMs() >= p.SinceMs })
			return resp(p), nil
		})
	}
}

// stopRoom makes room for one more record of a domain, or refuses. Records of what is over count until they
// are deleted, here, since no client resumes what runs.
func (g *Gateway) stopRoom(ctx context.Context, what stoppable, nowMS int64) error {
	stored := what.Of(g.Catalog, what.domain, 0)
	if what.in(g.Catalog) != nil || stored.Len() < validate.PausesMax {
		return nil
	}
	over := 0
	forget := func(k catalog.Kind[*yardv1.Pause], all map[string]*yardv1.Pause) (err error) {
		for name, p := range all {
			if err == nil && over < oversMax && !catalog.Paused(p, nowMS) {
				over++
				err = catalog.DeleteOver(ctx, g.Settings, k, what.domain, name, nowMS)
			}
		}
		return err
	}
	if err := cmp.Or(forget(what.Tasklists, stored.Tasklists), forget(what.Types, stored.Types), forget(what.Groups, stored.Groups)); err != nil {
		return notWritten(err)
	}
	if over == 0 {
		return fault.At(fault.FailedPrecondition, "/name", "%d tasklists, types and groups of the domain are %s, and no more are allowed: resume some", validate.PausesMax, what.done)
	}
	return nil
}

// byKind carries out a request about one of a kind: an administrative one if that is a domain.
func byKind(g *Gateway, c Call, k validate.Kind, bad error, answer Answer, do work) {
	if k == validate.Domain {
		g.administer(c.Deadline, bad, answer, do)
	} else {
		g.asks(c, bad, answer, do)
	}
}

// Resume ends the pause or the drain of a tasklist, a type or a group (tasklists.resume, types.resume, groups.resume), or of a domain (admin
// domains.resume). The record of one that is over goes, too, and there was none.
func (g *Gateway) Resume(k validate.Kind) func(Call, *yardv1.ResumeRequest, Answer) {
	return func(c Call, req *yardv1.ResumeRequest, answer Answer) {
		what := stoppableOf(c.Domain, k, req.Name, req.Drain)
		byKind(g, c, k, k.Get(req), answer, func(ctx context.Context) (codec.Message, error) {
			p, err := what.records.Delete(ctx, g.Settings, what.domain, what.name, 0)
			switch fault.CodeOf(err) {
			case "":
			case fault.NotFound:
				return nil, what.notStopped()
			case fault.Stale:
				return nil, fault.At(fault.Unavailable, "/name", "the %s %q was %s again meanwhile: repeat it", what.kind, what.name, what.done).After(awayRetryAfter)
			default:
				return nil, notWritten(err)
			}
			g.awaitCatalog(ctx, func() bool {
				left := what.in(g.Catalog)
				return left == nil || left.SinceMs > p.SinceMs
			})
			if !catalog.Paused(p, c.now().UnixMilli()) {
				return nil, what.notStopped()
			}
			return &yardv1.PauseResponse{Pause: p}, nil
		})
	}
}

// notStopped refuses to resume what is not paused, or not drained.
func (s stoppable) notStopped() error {
	return fault.At(fault.NotFound, "/name", "the %s %q is not %s; `yard %s %s %s` %ss it", s.kind, s.name, s.done, s.kind, s.verb, s.name, s.verb)
}

// inForce are the pause and the drain of a tasklist, a type or a group that hold now; nil = there is none.
func (g *Gateway) inForce(c Call, k validate.Kind, name string) (pause, drain *yardv1.Pause) {
	now := c.now().UnixMilli()
	if p := stoppableOf(c.Domain, k, name, false).in(g.Catalog); catalog.Paused(p, now) {
		pause = p
	}
	if p := stoppableOf(c.Domain, k, name, true).in(g.Catalog); catalog.Paused(p, now) {
		drain = p
	}
	return pause, drain
}

// stoppedMax is how many names of paused types a description has, and how many of drained ones, and of groups.
const stoppedMax = 100

// describeStops puts into a description what is paused, and what is drained.
func (g *Gateway) describeStops(c Call, d *yardv1.DescribeTasklistResponse) {
	now := c.now().UnixMilli()
	paused, drained := catalog.Pauses.Of(g.Catalog, c.Domain, now), catalog.Drains.Of(g.Catalog, c.Domain, now)
	d.Pause, d.PausedTypes, d.PausedGroups = cmp.Or(paused.Domain, paused.Tasklists[d.Tasklist]), firstNames(paused.Types), firstNames(paused.Groups)
	d.Drain, d.DrainedTypes, d.DrainedGroups = cmp.Or(drained.Domain, drained.Tasklists[d.Tasklist]), firstNames(drained.Types), firstNames(drained.Groups)
}

func firstNames(all map[string]*yardv1.Pause) []string {
	names := slices.Sorted(maps.Keys(all))
	return names[:min(len(names), stoppedMax)]
}

// drained refuses a submit to what is drained, or returns nil. The whole request is refused: it is stored whole or not.
func (g *Gateway) drained(c Call, req *yardv1.SubmitRequest) error {
	now := c.Now.UnixMilli()
	if p := catalog.Drains.Domains.Of(g.Catalog, "", c.Domain); catalog.Paused(p, now) {
		return drainRefusal("", "domain", c.Domain, p)
	}
	var last *yardv1.NewTask
	for i, t := range req.Tasks {
		if last != nil && t.Type == last.Type && t.Tasklist == last.Tasklist && t.Group == last.Group {
			continue
		}
		last = t
		path, list := "/tasks/"+strconv.Itoa(i), t.Tasklist
		listPath := path + "/tasklist"
		if list == "" {
			list, listPath = req.Tasklist, "/tasklist"
		}
		if p := catalog.Drains.Tasklists.Of(g.Catalog, c.Domain, list); catalog.Paused(p, now) {
			return drainRefusal(listPath, "tasklist", list, p)
		}
		if p := catalog.Drains.Types.Of(g.Catalog, c.Domain, t.Type); catalog.Paused(p, now) {
			return drainRefusal(path+"/type", "type", t.Type, p)
		}
		if t.Group == "" {
			continue
		}
		if p := catalog.Drains.Groups.Of(g.Catalog, c.Domain, t.Group); catalog.Paused(p, now) {
			return drainRefusal(path+"/group", "group", t.Group, p)
		}
	}
	return nil
}

func drainRefusal(path, kind, name string, p *yardv1.Pause) error {
	return fault.At(fault.FailedPrecondition, path, "nothing was stored, the %s %q takes no new tasks: it is %s", kind, name, validate.ReasonOf("drained", p.By, p.Reason))
}
