package operate

import (
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/backoff"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/drained"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/settings"
)

const (
	// namedTogether is how many workers one message names whose polls end.
	namedTogether = 1024
	// searchEvery is how often it is looked whether drained workers of a domain are gone, of one after the other.
	searchEvery = 10 * time.Second
	// askedTogether is how many workers owners are asked of at once: an answer has room for as many.
	askedTogether = 100
)

// DrainWorker has a worker get no new attempts (workers.drain).
func (o *Operator) DrainWorker(c call.Call, req *yardv1.DrainWorkerRequest, answer call.Answer) {
	d := &yardv1.WorkerDrain{Reason: req.Reason, By: req.By}
	o.drainWorker(c, req.WorkerId, d, answer, func(w *yardv1.LiveWorker) codec.Message { return &yardv1.DrainWorkerResponse{Worker: w} })
}

// StopWorker drains a worker and asks it to end (workers.stop).
func (o *Operator) StopWorker(c call.Call, req *yardv1.StopWorkerRequest, answer call.Answer) {
	d := &yardv1.WorkerDrain{Stop: true, Reason: req.Reason, By: req.By}
	o.drainWorker(c, req.WorkerId, d, answer, func(w *yardv1.LiveWorker) codec.Message { return &yardv1.StopWorkerResponse{Worker: w} })
}

// drainWorker stores the drain of a worker of the domain. One that is not heard is not drained: its id may be a typing error.
func (o *Operator) drainWorker(c call.Call, id string, d *yardv1.WorkerDrain, answer call.Answer, resp func(*yardv1.LiveWorker) codec.Message) {
	o.Run.Ask(c, validate.DrainWorker(id, d), answer, func(ctx context.Context) (codec.Message, error) {
		w, err := o.liveWorker(ctx, c.Domain, id)
		if err != nil {
			return nil, err
		}
		d.SinceMs = c.ServerNow().UnixMilli()
		err = catalog.ChangeDrainedWorkers(ctx, o.Bucket, c.Domain, func(all map[string]*yardv1.WorkerDrain) (bool, error) {
			was := all[id]
			switch {
			case was != nil && was.Stop == d.Stop && was.Reason == d.Reason && was.By == d.By:
				d.SinceMs = was.SinceMs
				return false, nil
			case was == nil && len(all) >= validate.DrainedWorkersMax:
				return false, fault.At(fault.FailedPrecondition, "/worker_id", "%d workers of the domain are drained, and no more are allowed: resume some; those that are gone are forgotten after %v",
					validate.DrainedWorkersMax, drained.SilentAfter)
			}
			all[id] = d
			return true, nil
		})
		if err != nil {
			return nil, notDrained(err)
		}
		settings.AwaitCatalog(ctx, func() bool { return o.Catalog.DrainedWorker(c.Domain, id).GetSinceMs() >= d.SinceMs })
		w.Drain = d
		return resp(w), nil
	})
}

// notDrained is why a worker was not drained, or that it may have been.
func notDrained(err error) error {
	if fault.CodeOf(err) == fault.FailedPrecondition {
		return err
	}
	return settings.NotWritten(err)
}

// liveWorker is a worker that is heard, and how many attempts it has.
func (o *Operator) liveWorker(ctx context.Context, domain, id string) (*yardv1.LiveWorker, error) {
	all, err := o.Reads.Workers(ctx, &rpcv1.ListWorkersRequest{Domain: domain, WorkerIds: []string{id}, Limit: 1})
	switch {
	case err != nil:
		return nil, err
	case len(all.Workers) > 0:
		return all.Workers[0], nil
	case all.KnownForMs < drained.KnownAfter.Milliseconds():
		return nil, fault.At(fault.Unavailable, "/worker_id", "no worker %q is heard, and the engine has listened for less than %v", id, drained.KnownAfter).After(call.AwayRetryAfter)
	}
	return nil, fault.At(fault.NotFound, "/worker_id", "no worker %q is heard: `yard worker list -o wide` shows all", id)
}

// ResumeWorker has a drained worker get attempts again (workers.resume).
func (o *Operator) ResumeWorker(c call.Call, req *yardv1.ResumeWorkerRequest, answer call.Answer) {
	o.Run.Ask(c, validate.ResumeWorker(req), answer, func(ctx context.Context) (codec.Message, error) {
		var was *yardv1.WorkerDrain
		err := catalog.ChangeDrainedWorkers(ctx, o.Bucket, c.Domain, func(all map[string]*yardv1.WorkerDrain) (bool, error) {
			if was = all[req.WorkerId]; was == nil {
				return false, fault.At(fault.NotFound, "/worker_id", "the worker %q is not drained; `yard worker drain` drains it", req.WorkerId)
			}
			delete(all, req.WorkerId)
			return true, nil
		})
		if err != nil {
			return nil, settings.NotWritten(err)
		}
		settings.AwaitCatalog(ctx, func() bool { return o.Catalog.DrainedWorker(c.Domain, req.WorkerId).GetSinceMs() != was.SinceMs })
		return &yardv1.ResumeWorkerResponse{Drain: was}, nil
	})
}

// drainVoice is what this frontend says of drained workers.
type drainVoice struct {
	voice drained.Voice
	// revision is that of the last change which it knows.
	revision uint64
}

// Tick has the polls end of workers that were drained, wherever they wait, and those go on that are held of workers that were resumed.
func (o *Operator) Tick(now time.Time) {
	if revision := catalog.Workers.Revision(o.Catalog); revision != o.voice.revision {
		o.voice.revision = revision
		o.voice.voice.Take(o.drainedSince(), now)
		o.Polls.ReleaseDrained()
	}
	for some := range slices.Chunk(o.voice.voice.Say(now), namedTogether) {
		m := &rpcv1.Silent{Workers: make([]*rpcv1.SilentWorker, len(some))}
		for i, k := range some {
			m.Workers[i] = &rpcv1.SilentWorker{Domain: k.Domain, WorkerId: k.ID}
		}
		data, err := m.MarshalVT()
		if err == nil {
			err = o.Bus.PublishSilent(data)
		}
		if err != nil {
			o.Log.Debug("it was not said that polls of drained workers end, which is tried again", signals.Error, err)
		}
	}
}

// drainedSince is since when which workers are drained.
func (o *Operator) drainedSince() map[drained.Key]int64 {
	since := map[drained.Key]int64{}
	for domain, workers := range catalog.Workers.Each(o.Catalog, "") {
		for _, w := range workers.Workers {
			since[drained.Key{Domain: domain, ID: w.WorkerId}] = w.Drain.GetSinceMs()
		}
	}
	return since
}

// ForgetDrains deletes what was said to workers that are gone, until ctx ends. All frontends do so.
func (o *Operator) ForgetDrains(ctx context.Context) error {
	watch := &drained.Watch{}
	for backoff.Sleep(ctx, pace.Of(searchEvery)) {
		o.forgetDrains(ctx, watch)
	}
	return nil
}

// forgetDrains looks at one domain.
func (o *Operator) forgetDrains(ctx context.Context, watch *drained.Watch) {
	since := o.drainedSince()
	domain, ids := watch.Next(since)
	if domain == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, searchEvery)
	defer cancel()
	var gone []string
	for some := range slices.Chunk(ids, askedTogether) {
		all, err := o.Reads.Workers(ctx, &rpcv1.ListWorkersRequest{Domain: domain, WorkerIds: some, Limit: askedTogether})
		if err != nil || all.More {
			return // while an owner is away no one knows who is gone
		}
		heard := map[string]bool{}
		for _, w := range all.Workers {
			heard[w.WorkerId] = true
		}
		gone = append(gone, watch.Looked(domain, some, heard, time.Duration(all.KnownForMs)*time.Millisecond, time.Now())...)
	}
	if len(gone) == 0 {
		return
	}
	err := catalog.ChangeDrainedWorkers(ctx, o.Bucket, domain, func(all map[string]*yardv1.WorkerDrain) (changed bool, err error) {
		for _, id := range gone {
			if d := all[id]; d != nil && d.SinceMs == since[drained.Key{Domain: domain, ID: id}] {
				delete(all, id)
				changed = true
			}
		}
		return changed, nil
	})
	if err != nil {
		o.Log.Warn("drains of workers that are gone are kept for now", signals.Domain, domain, signals.Error, err)
	}
}
