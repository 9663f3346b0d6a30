package gateway

import (
	"context"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// oversMax is how many records of pauses that are over one pause deletes, to have room.
const oversMax = 10

// pausable is a tasklist or a type.
type pausable struct {
	domain, name string
	// kind is what people and the command line call it.
	kind string
	// key is where its pause is stored, of reads it in the catalog.
	key func(domain, name string) string
	of  func(domain, name string) *yardv1.Pause
}

func (g *Gateway) pausableTasklist(domain, name string) pausable {
	return pausable{domain: domain, name: name, kind: "tasklist", key: topology.TasklistPauseKey, of: g.Catalog.PausedTasklist}
}

func (g *Gateway) pausableType(domain, name string) pausable {
	return pausable{domain: domain, name: name, kind: "type", key: topology.TypePauseKey, of: g.Catalog.PausedType}
}

// PauseTasklist has no task of a tasklist start (tasklists.pause).
func (g *Gateway) PauseTasklist(c Call, req *yardv1.PauseTasklistRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.PauseTasklist(req); err != nil {
		answer(nil, err)
		return
	}
	p := &yardv1.Pause{Reason: req.Reason, By: req.By}
	g.pause(c, g.pausableTasklist(c.Domain, req.Name), p, req.ForMs, answer, func() codec.Message { return &yardv1.PauseTasklistResponse{Pause: p} })
}

// PauseType has no task of a type start (types.pause).
func (g *Gateway) PauseType(c Call, req *yardv1.PauseTypeRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.PauseType(req); err != nil {
		answer(nil, err)
		return
	}
	p := &yardv1.Pause{Reason: req.Reason, By: req.By}
	g.pause(c, g.pausableType(c.Domain, req.Name), p, req.ForMs, answer, func() codec.Message { return &yardv1.PauseTypeResponse{Pause: p} })
}

// pause dates and stores p. Every process keeps all pauses in memory, so a domain may have so many; some more where sets
// meet. A frontend or matching node of an older log version would not know them.
func (g *Gateway) pause(c Call, what pausable, p *yardv1.Pause, forMS int64, answer Answer, resp func() codec.Message) {
	if err := g.pauseKnown(); err != nil {
		answer(nil, err)
		return
	}
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		if p.SinceMs = c.now().UnixMilli(); forMS != 0 {
			p.UntilMs = p.SinceMs + forMS
		}
		if err := g.pauseRoom(ctx, what, p.SinceMs); err != nil {
			return nil, err
		}
		if err := g.Registry.PutPause(ctx, what.key(what.domain, what.name), p); err != nil {
			return nil, notWritten(err)
		}
		g.awaitCatalog(ctx, func() bool { return what.of(what.domain, what.name).GetSinceMs() >= p.SinceMs })
		return resp(), nil
	})
}

// pauseRoom makes room for one more record of a domain, or refuses. Records of pauses that are over count until they
// are deleted, here, since no client resumes what runs.
func (g *Gateway) pauseRoom(ctx context.Context, what pausable, nowMS int64) error {
	tasklists, types := g.Catalog.Pauses(what.domain, 0)
	if what.of(what.domain, what.name) != nil || len(tasklists)+len(types) < validate.PausesMax {
		return nil
	}
	var over []string
	for name, p := range tasklists {
		if !catalog.Paused(p, nowMS) {
			over = append(over, topology.TasklistPauseKey(what.domain, name))
		}
	}
	for name, p := range types {
		if !catalog.Paused(p, nowMS) {
			over = append(over, topology.TypePauseKey(what.domain, name))
		}
	}
	if len(over) == 0 {
		return fault.At(fault.FailedPrecondition, "/name", "%d tasklists and types of the domain are paused, and no more are allowed: resume some", validate.PausesMax)
	}
	for _, key := range over[:min(len(over), oversMax)] {
		if err := g.Registry.DeletePauseOver(ctx, key, nowMS); err != nil {
			return notWritten(err)
		}
	}
	return nil
}

// ResumeTasklist ends the pause of a tasklist (tasklists.resume).
func (g *Gateway) ResumeTasklist(c Call, req *yardv1.ResumeTasklistRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.ResumeTasklist(req); err != nil {
		answer(nil, err)
		return
	}
	g.resume(c, g.pausableTasklist(c.Domain, req.Name), answer, func(p *yardv1.Pause) codec.Message { return &yardv1.ResumeTasklistResponse{Pause: p} })
}

// ResumeType ends the pause of a type (types.resume).
func (g *Gateway) ResumeType(c Call, req *yardv1.ResumeTypeRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.ResumeType(req); err != nil {
		answer(nil, err)
		return
	}
	g.resume(c, g.pausableType(c.Domain, req.Name), answer, func(p *yardv1.Pause) codec.Message { return &yardv1.ResumeTypeResponse{Pause: p} })
}

// resume deletes a pause. The record of one that is over goes, too, and there was none.
func (g *Gateway) resume(c Call, what pausable, answer Answer, resp func(*yardv1.Pause) codec.Message) {
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		p, err := g.Registry.DeletePause(ctx, what.key(what.domain, what.name))
		switch fault.CodeOf(err) {
		case "":
		case fault.NotFound:
			return nil, what.notPaused()
		case fault.Stale:
			return nil, fault.At(fault.Unavailable, "/name", "the %s %q was paused again meanwhile: repeat it", what.kind, what.name).After(awayRetryAfter)
		default:
			return nil, notWritten(err)
		}
		g.awaitCatalog(ctx, func() bool {
			left := what.of(what.domain, what.name)
			return left == nil || left.SinceMs > p.SinceMs
		})
		if !catalog.Paused(p, c.now().UnixMilli()) {
			return nil, what.notPaused()
		}
		return resp(p), nil
	})
}

// notPaused refuses to resume what is not paused.
func (p pausable) notPaused() error {
	return fault.At(fault.NotFound, "/name", "the %s %q is not paused; `yard %s pause %s` pauses it", p.kind, p.name, p.kind, p.name)
}

// inForce is p if it holds now, else nil.
func inForce(c Call, p *yardv1.Pause) *yardv1.Pause {
	if catalog.Paused(p, c.now().UnixMilli()) {
		return p
	}
	return nil
}

// pausedTypesMax is how many names a description has.
const pausedTypesMax = 100

// describePauses puts into a description what is paused.
func (g *Gateway) describePauses(c Call, d *yardv1.DescribeTasklistResponse) {
	tasklists, types := g.Catalog.Pauses(c.Domain, c.now().UnixMilli())
	d.Pause = tasklists[d.Tasklist]
	names := slices.Sorted(maps.Keys(types))
	d.PausedTypes = names[:min(len(names), pausedTypesMax)]
}
