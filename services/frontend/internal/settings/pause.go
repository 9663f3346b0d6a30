package settings

import (
	"cmp"
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
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
func (s *Settings) Pause(k validate.Kind) func(call.Call, *yardv1.PauseRequest, call.Answer) {
	return s.stop(k, false, func(p *yardv1.Pause) codec.Message { return &yardv1.PauseResponse{Pause: p} })
}

// Drain has submits to a tasklist, or of a type or a group, refused (tasklists.drain, types.drain, groups.drain), or to a domain (admin domains.drain).
func (s *Settings) Drain(k validate.Kind) func(call.Call, *yardv1.PauseRequest, call.Answer) {
	return s.stop(k, true, func(p *yardv1.Pause) codec.Message { return &yardv1.DrainResponse{Drain: p} })
}

// stop dates and stores a pause or a drain. Every process keeps all of them in memory, so a domain may have so many; some more where sets
// meet.
func (s *Settings) stop(k validate.Kind, drain bool, resp func(*yardv1.Pause) codec.Message) func(call.Call, *yardv1.PauseRequest, call.Answer) {
	return func(c call.Call, req *yardv1.PauseRequest, answer call.Answer) {
		what, p := stoppableOf(c.Domain, k, req.Name, drain), &yardv1.Pause{Reason: req.Reason, By: req.By, WholeDomain: k == validate.Domain}
		byKind(s, c, k, k.Pause(req), answer, func(ctx context.Context) (codec.Message, error) {
			if p.WholeDomain && s.Catalog.Domain(req.Name) == nil {
				return nil, call.NoDomain("/name", req.Name)
			}
			if p.SinceMs = c.ServerNow().UnixMilli(); req.ForMs != 0 {
				p.UntilMs = p.SinceMs + req.ForMs
			}
			if err := s.stopRoom(ctx, what, p.SinceMs); err != nil {
				return nil, err
			}
			if err := catalog.PutStop(ctx, s.Bucket, what.records, what.domain, what.name, p); err != nil {
				return nil, NotWritten(err)
			}
			AwaitCatalog(ctx, func() bool { return what.in(s.Catalog).GetSinceMs() >= p.SinceMs })
			return resp(p), nil
		})
	}
}

// stopRoom makes room for one more record of a domain, or refuses. Records of what is over count until they
// are deleted, here, since no client resumes what runs.
func (s *Settings) stopRoom(ctx context.Context, what stoppable, nowMS int64) error {
	stored := what.Of(s.Catalog, what.domain, 0)
	if what.in(s.Catalog) != nil || stored.Len() < validate.PausesMax {
		return nil
	}
	over := 0
	forget := func(k catalog.Kind[*yardv1.Pause], all map[string]*yardv1.Pause) (err error) {
		for name, p := range all {
			if err == nil && over < oversMax && !catalog.Paused(p, nowMS) {
				over++
				err = catalog.DeleteOver(ctx, s.Bucket, k, what.domain, name, nowMS)
			}
		}
		return err
	}
	if err := cmp.Or(forget(what.Tasklists, stored.Tasklists), forget(what.Types, stored.Types), forget(what.Groups, stored.Groups)); err != nil {
		return NotWritten(err)
	}
	if over == 0 {
		return fault.At(fault.FailedPrecondition, "/name", "%d tasklists, types and groups of the domain are %s, and no more are allowed: resume some", validate.PausesMax, what.done)
	}
	return nil
}

// byKind carries out a request about one of a kind: an administrative one if that is a domain.
func byKind(s *Settings, c call.Call, k validate.Kind, bad error, answer call.Answer, do call.Work) {
	if k == validate.Domain {
		s.Run.Administer(c, bad, answer, do)
	} else {
		s.Run.Ask(c, bad, answer, do)
	}
}

// Resume ends the pause or the drain of a tasklist, a type or a group (tasklists.resume, types.resume, groups.resume), or of a domain (admin
// domains.resume). The record of one that is over goes, too, and there was none.
func (s *Settings) Resume(k validate.Kind) func(call.Call, *yardv1.ResumeRequest, call.Answer) {
	return func(c call.Call, req *yardv1.ResumeRequest, answer call.Answer) {
		what := stoppableOf(c.Domain, k, req.Name, req.Drain)
		byKind(s, c, k, k.Get(req), answer, func(ctx context.Context) (codec.Message, error) {
			p, err := what.records.Delete(ctx, s.Bucket, what.domain, what.name, 0)
			switch fault.CodeOf(err) {
			case "":
			case fault.NotFound:
				return nil, what.notStopped()
			case fault.Stale:
				return nil, fault.At(fault.Unavailable, "/name", "the %s %q was %s again meanwhile: repeat it", what.kind, what.name, what.done).After(call.AwayRetryAfter)
			default:
				return nil, NotWritten(err)
			}
			AwaitCatalog(ctx, func() bool {
				left := what.in(s.Catalog)
				return left == nil || left.SinceMs > p.SinceMs
			})
			if !catalog.Paused(p, c.ServerNow().UnixMilli()) {
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
func (s *Settings) inForce(c call.Call, k validate.Kind, name string) (pause, drain *yardv1.Pause) {
	now := c.ServerNow().UnixMilli()
	if p := stoppableOf(c.Domain, k, name, false).in(s.Catalog); catalog.Paused(p, now) {
		pause = p
	}
	if p := stoppableOf(c.Domain, k, name, true).in(s.Catalog); catalog.Paused(p, now) {
		drain = p
	}
	return pause, drain
}
