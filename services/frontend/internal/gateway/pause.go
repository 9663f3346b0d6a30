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

// stops are the pauses of a domain, or its drains.
type stops struct {
	// verb and done are what people and the command line call it.
	verb, done string
	// all reads them in the catalog.
	all func(domain string, nowMS int64) catalog.Stopped
	// tasklistKey, typeKey and groupKey are where they are stored.
	tasklistKey, typeKey, groupKey func(domain, name string) string
}

func (g *Gateway) pauses() stops {
	return stops{"pause", "paused", g.Catalog.Pauses, topology.TasklistPauseKey, topology.TypePauseKey, topology.GroupPauseKey}
}

func (g *Gateway) drains() stops {
	return stops{"drain", "drained", g.Catalog.Drains, topology.TasklistDrainKey, topology.TypeDrainKey, topology.GroupDrainKey}
}

// stoppable is a tasklist, a type or a group that may be paused, or drained.
type stoppable struct {
	stops
	domain, name string
	// kind is what people and the command line call it.
	kind string
	// key is where its pause or its drain is stored, of reads it in the catalog.
	key string
	of  func(domain, name string) *yardv1.Pause
}

func (g *Gateway) stoppableTasklist(domain, name string, drain bool) stoppable {
	if drain {
		return stoppable{g.drains(), domain, name, "tasklist", topology.TasklistDrainKey(domain, name), g.Catalog.DrainedTasklist}
	}
	return stoppable{g.pauses(), domain, name, "tasklist", topology.TasklistPauseKey(domain, name), g.Catalog.PausedTasklist}
}

func (g *Gateway) stoppableType(domain, name string, drain bool) stoppable {
	if drain {
		return stoppable{g.drains(), domain, name, "type", topology.TypeDrainKey(domain, name), g.Catalog.DrainedType}
	}
	return stoppable{g.pauses(), domain, name, "type", topology.TypePauseKey(domain, name), g.Catalog.PausedType}
}

func (g *Gateway) stoppableGroup(domain, name string, drain bool) stoppable {
	if drain {
		return stoppable{g.drains(), domain, name, "group", topology.GroupDrainKey(domain, name), g.Catalog.DrainedGroup}
	}
	return stoppable{g.pauses(), domain, name, "group", topology.GroupPauseKey(domain, name), g.Catalog.PausedGroup}
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
	g.stop(c, g.stoppableTasklist(c.Domain, req.Name, false), p, req.ForMs, answer, func() codec.Message { return &yardv1.PauseTasklistResponse{Pause: p} })
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
	g.stop(c, g.stoppableType(c.Domain, req.Name, false), p, req.ForMs, answer, func() codec.Message { return &yardv1.PauseTypeResponse{Pause: p} })
}

// PauseGroup has no task of a group start (groups.pause).
func (g *Gateway) PauseGroup(c Call, req *yardv1.PauseGroupRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.PauseGroup(req); err != nil {
		answer(nil, err)
		return
	}
	p := &yardv1.Pause{Reason: req.Reason, By: req.By}
	g.stop(c, g.stoppableGroup(c.Domain, req.Name, false), p, req.ForMs, answer, func() codec.Message { return &yardv1.PauseGroupResponse{Pause: p} })
}

// stop dates and stores p. Every process keeps all of them in memory, so a domain may have so many; some more where sets
// meet.
func (g *Gateway) stop(c Call, what stoppable, p *yardv1.Pause, forMS int64, answer Answer, resp func() codec.Message) {
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		if p.SinceMs = c.now().UnixMilli(); forMS != 0 {
			p.UntilMs = p.SinceMs + forMS
		}
		if err := g.stopRoom(ctx, what, p.SinceMs); err != nil {
			return nil, err
		}
		if err := g.Registry.PutPause(ctx, what.key, p); err != nil {
			return nil, notWritten(err)
		}
		g.awaitCatalog(ctx, func() bool { return what.of(what.domain, what.name).GetSinceMs() >= p.SinceMs })
		return resp(), nil
	})
}

// stopRoom makes room for one more record of a domain, or refuses. Records of what is over count until they
// are deleted, here, since no client resumes what runs.
func (g *Gateway) stopRoom(ctx context.Context, what stoppable, nowMS int64) error {
	stored := what.all(what.domain, 0)
	if what.of(what.domain, what.name) != nil || stored.Len() < validate.PausesMax {
		return nil
	}
	var over []string
	look := func(all map[string]*yardv1.Pause, key func(domain, name string) string) {
		for name, p := range all {
			if !catalog.Paused(p, nowMS) {
				over = append(over, key(what.domain, name))
			}
		}
	}
	look(stored.Tasklists, what.tasklistKey)
	look(stored.Types, what.typeKey)
	look(stored.Groups, what.groupKey)
	if len(over) == 0 {
		return fault.At(fault.FailedPrecondition, "/name", "%d tasklists, types and groups of the domain are %s, and no more are allowed: resume some", validate.PausesMax, what.done)
	}
	for _, key := range over[:min(len(over), oversMax)] {
		if err := g.Registry.DeletePauseOver(ctx, key, nowMS); err != nil {
			return notWritten(err)
		}
	}
	return nil
}

// ResumeTasklist ends the pause or the drain of a tasklist (tasklists.resume).
func (g *Gateway) ResumeTasklist(c Call, req *yardv1.ResumeTasklistRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.ResumeTasklist(req); err != nil {
		answer(nil, err)
		return
	}
	g.resume(c, g.stoppableTasklist(c.Domain, req.Name, req.Drain), answer, func(p *yardv1.Pause) codec.Message { return &yardv1.ResumeTasklistResponse{Pause: p} })
}

// ResumeType ends the pause or the drain of a type (types.resume).
func (g *Gateway) ResumeType(c Call, req *yardv1.ResumeTypeRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.ResumeType(req); err != nil {
		answer(nil, err)
		return
	}
	g.resume(c, g.stoppableType(c.Domain, req.Name, req.Drain), answer, func(p *yardv1.Pause) codec.Message { return &yardv1.ResumeTypeResponse{Pause: p} })
}

// ResumeGroup ends the pause or the drain of a group (groups.resume).
func (g *Gateway) ResumeGroup(c Call, req *yardv1.ResumeGroupRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.ResumeGroup(req); err != nil {
		answer(nil, err)
		return
	}
	g.resume(c, g.stoppableGroup(c.Domain, req.Name, req.Drain), answer, func(p *yardv1.Pause) codec.Message { return &yardv1.ResumeGroupResponse{Pause: p} })
}

// resume deletes a pause or a drain. The record of one that is over goes, too, and there was none.
func (g *Gateway) resume(c Call, what stoppable, answer Answer, resp func(*yardv1.Pause) codec.Message) {
	g.query(c.Domain, c.Deadline, answer, func(ctx context.Context) (codec.Message, error) {
		p, err := g.Registry.DeletePause(ctx, what.key)
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
			left := what.of(what.domain, what.name)
			return left == nil || left.SinceMs > p.SinceMs
		})
		if !catalog.Paused(p, c.now().UnixMilli()) {
			return nil, what.notStopped()
		}
		return resp(p), nil
	})
}

// notStopped refuses to resume what is not paused, or not drained.
func (s stoppable) notStopped() error {
	return fault.At(fault.NotFound, "/name", "the %s %q is not %s; `yard %s %s %s` %ss it", s.kind, s.name, s.done, s.kind, s.verb, s.name, s.verb)
}

// inForce is p if it holds now, else nil.
func inForce(c Call, p *yardv1.Pause) *yardv1.Pause {
	if catalog.Paused(p, c.now().UnixMilli()) {
		return p
	}
	return nil
}

// stoppedMax is how many names of paused types a description has, and how many of drained ones, and of groups.
const stoppedMax = 100

// describeStops puts into a description what is paused, and what is drained.
func (g *Gateway) describeStops(c Call, d *yardv1.DescribeTasklistResponse) {
	now := c.now().UnixMilli()
	paused, drained := g.Catalog.Pauses(c.Domain, now), g.Catalog.Drains(c.Domain, now)
	d.Pause, d.PausedTypes, d.PausedGroups = paused.Tasklists[d.Tasklist], firstNames(paused.Types), firstNames(paused.Groups)
	d.Drain, d.DrainedTypes, d.DrainedGroups = drained.Tasklists[d.Tasklist], firstNames(drained.Types), firstNames(drained.Groups)
}

func firstNames(all map[string]*yardv1.Pause) []string {
	names := slices.Sorted(maps.Keys(all))
	return names[:min(len(names), stoppedMax)]
}
