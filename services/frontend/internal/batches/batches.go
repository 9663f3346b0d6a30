package batches

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/home"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
)

// A batch is one message of the log of its home partition, which is changed by compare-and-set: by frontends until it is closed, and by its keeper in history
// when it is over (decision 0047).

// CreateBatch makes a batch (batches.create).
func (b *Batches) CreateBatch(c call.Call, req *yardv1.CreateBatchRequest, answer call.Answer) {
	digest, err := batchRequest(req)                  // before what is left out is set
	bad := validate.CreateBatch(req, c.Now, c.Form()) // it says which text is no text
	b.Run.Ask(c, cmp.Or(bad, err), answer, func(ctx context.Context) (codec.Message, error) {
		p := topology.BatchPartition(c.Domain, req.BatchId, b.Partitioning)
		home := &logv1.BatchHome{
			BatchId: req.BatchId, LogVersion: b.LogVersion(), Request: digest, CreatedAtMs: c.ServerNow().UnixMilli(), KeepMs: req.KeepMs,
		}
		home.ExpiresAtMs = home.CreatedAtMs + req.ExpiresInMs
		var charge *quotas.Charge
		if req.Callback != nil {
			home.Callback = b.batchCallback(c, req.Callback)
			charge = b.Charge(c.Domain, 1, home.Callback.SizeVT())
		}
		fresh := false
		made, err := b.changeBatch(ctx, c.Domain, req.BatchId, func(was *logv1.BatchHome) (*logv1.BatchHome, error) {
			switch {
			case was != nil && bytes.Equal(was.Request, digest):
				return nil, nil
			case was != nil:
				return nil, fault.At(fault.AlreadyExists, "/batch_id", "there is a batch %q with other contents", req.BatchId)
			case !b.HasRoom(p): // as for tasks: what is left is for the events of those that are there
				return nil, call.StorageFull()
			}
			n, err := b.List.Count(ctx, p, c.Domain)
			if err == nil && n >= topology.BatchesMax {
				err = fault.New(fault.ResourceExhausted, "the domain has %d batches with the home of this one, with those that are over and still kept: %d are allowed", n, topology.BatchesMax).After(call.FullRetryAfter)
			}
			if err == nil && req.Callback != nil { // it is submitted now, though it starts later
				err = cmp.Or(validate.OfCallback(b.Drained(c, validate.Single(req.Callback))), charge.Take())
			}
			fresh = true
			return home, err
		})
		charge.Failed(1, err)
		if err != nil {
			return nil, err
		}
		if fresh { // no owner has tasks of it
			return &yardv1.CreateBatchResponse{Batch: gather.Batch(made)}, nil
		}
		counted, err := b.countedBatch(ctx, c.Domain, made)
		return &yardv1.CreateBatchResponse{Batch: counted}, err
	})
}

// batchRequest is a digest of what a batch is created with.
func batchRequest(req *yardv1.CreateBatchRequest) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return nil, fault.New(fault.Internal, "encode a request: %v", err)
	}
	sum := sha256.Sum256(data)
	return sum[:16], nil
}

// batchCallback is the callback of a batch as it goes into the log, but for its id.
func (b *Batches) batchCallback(c call.Call, t *yardv1.NewTask) *logv1.Record {
	terms := call.Terms(b.Catalog, c.Domain, c.Now)
	terms.RequestTrace = c.Trace
	return validate.Accept(validate.Single(t), terms).Records[0]
}

// GetBatch tells of a batch (batches.get).
func (b *Batches) GetBatch(c call.Call, req *yardv1.GetBatchRequest, answer call.Answer) {
	b.Run.Ask(c, validate.BatchID("/batch_id", req.BatchId), answer, func(ctx context.Context) (codec.Message, error) {
		home, _, err := b.Homes.Home(ctx, c.Domain, req.BatchId)
		if err == nil && home == nil {
			err = noBatch(req.BatchId)
		}
		if err != nil {
			return nil, err
		}
		counted, err := b.countedBatch(ctx, c.Domain, home)
		return &yardv1.GetBatchResponse{Batch: counted}, err
	})
}

// CloseBatch says that a batch has all its tasks (batches.close). Once it is answered OK, no partition takes another one.
func (b *Batches) CloseBatch(c call.Call, req *yardv1.CloseBatchRequest, answer call.Answer) {
	b.Run.Ask(c, validate.BatchID("/batch_id", req.BatchId), answer, func(ctx context.Context) (codec.Message, error) {
		closed, err := b.closeBatch(ctx, c, req.BatchId, false)
		if err == nil {
			err = b.Homes.CloseMembers(ctx, c.Domain, closed)
		}
		if err != nil {
			return nil, err
		}
		counted, err := b.countedBatch(ctx, c.Domain, closed)
		return &yardv1.CloseBatchResponse{Batch: counted}, err
	})
}

// closeBatch marks the home of a batch.
func (b *Batches) closeBatch(ctx context.Context, c call.Call, id string, cancel bool) (*logv1.BatchHome, error) {
	return b.changeBatch(ctx, c.Domain, id, func(was *logv1.BatchHome) (*logv1.BatchHome, error) {
		switch {
		case was == nil:
			return nil, noBatch(id)
		case was.EndedAtMs != 0, was.ClosedAtMs != 0 && (was.CancelRequested || !cancel):
			return nil, nil
		}
		closed := was.CloneVT()
		if closed.ClosedAtMs == 0 {
			closed.ClosedAtMs = c.ServerNow().UnixMilli()
		}
		closed.CancelRequested = closed.CancelRequested || cancel
		return closed, nil
	})
}

// WaitBatch waits until a batch is over (batches.wait).
func (b *Batches) WaitBatch(c call.Call, req *yardv1.WaitBatchRequest, answer call.Answer) {
	if b.Run.Rejects(&c, validate.WaitBatch(req), answer) {
		return
	}
	until := c.Received.Add(time.Duration(req.WaitMs) * time.Millisecond)
	b.Run.Wait(c.Domain, call.Later(c.Deadline, until.Add(call.WaitGrace)), answer, func(ctx context.Context) (codec.Message, error) {
		seen, err := b.awaitBatch(ctx, batchRef{c.Domain, req.BatchId}, until)
		if err == nil && seen == nil {
			err = noBatch(req.BatchId)
		}
		if err != nil {
			return nil, err
		}
		counted, err := b.countedBatch(ctx, c.Domain, seen)
		return &yardv1.WaitBatchResponse{Batch: counted}, err
	})
}

// CancelBatch closes a batch and cancels a page of its tasks (batches.cancel).
func (b *Batches) CancelBatch(c call.Call, req *yardv1.CancelBatchRequest, answer call.Answer) {
	p, bad := validate.CancelBatch(req, c.Now)
	b.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		home, err := b.closeBatch(ctx, c, req.BatchId, true)
		if err == nil && req.Cursor == "" { // later steps find it closed
			err = b.Homes.CloseMembers(ctx, c.Domain, home)
		}
		if err != nil {
			return nil, err
		}
		if home.EndedAtMs != 0 {
			return &yardv1.CancelBatchResponse{Purged: &yardv1.Purged{}}, nil
		}
		done, err := b.PurgeStep(ctx, c, p)
		if err != nil {
			return nil, err
		}
		if n := done.Cancelled + done.CancelRequested; n > 0 {
			b.Env.Log.Info("tasks of a batch were cancelled", "domain", c.Domain, "reason", p.Reason, "tasks", n)
		}
		return &yardv1.CancelBatchResponse{Purged: done}, nil
	})
}

// ListBatches tells of batches (batches.list): those of one partition after the other.
func (b *Batches) ListBatches(c call.Call, req *yardv1.ListBatchesRequest, answer call.Answer) {
	from, bad := validate.ListBatches(req, b.Partitioning.History)
	b.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		resp := &yardv1.ListBatchesResponse{}
		for left := int(req.Limit); ; {
			page, more, err := b.List.Page(ctx, from.Partition, c.Domain, from.After, left)
			if err != nil {
				return nil, err
			}
			left -= len(page)
			for _, kept := range page {
				if counted := gather.Batch(kept.Home); len(req.States) == 0 || slices.Contains(req.States, counted.State) {
					resp.Batches = append(resp.Batches, counted)
				}
				from.After = kept.Seq
			}
			if !more {
				from = validate.BatchPage{Partition: from.Partition + 1}
			}
			if from.Partition == b.Partitioning.History {
				break
			}
			if left <= 0 || more { // a page ends with its bytes, too
				resp.NextCursor = from.Cursor()
				break
			}
		}
		return resp, nil // BatchListMax of them always fit into an answer
	})
}

func noBatch(id string) error {
	return fault.At(fault.NotFound, "/batch_id", "there is no batch %q", id)
}

// changeBatch changes a batch as home.Change does.
func (b *Batches) changeBatch(ctx context.Context, domain, id string, change func(was *logv1.BatchHome) (*logv1.BatchHome, error)) (*logv1.BatchHome, error) {
	return home.Change(ctx, b.Log, b.place(domain, id), b.AppendTimeout, func(h *logv1.BatchHome, m natslog.Msg) natslog.Msg {
		return m.InPlace(time.Duration(h.ExpiresAtMs-h.CreatedAtMs)*time.Millisecond + topology.BatchLifeMax - topology.BatchExpiresMax)
	}, change)
}

// countedBatch is a batch as the API shows it, with how many tasks it has now.
func (b *Batches) countedBatch(ctx context.Context, domain string, home *logv1.BatchHome) (*yardv1.Batch, error) {
	counted := gather.Batch(home)
	if home.EndedAtMs != 0 {
		return counted, nil
	}
	ask := &rpcv1.CountBatchRequest{Domain: domain, BatchId: home.BatchId, MadeMs: home.CreatedAtMs}
	answers, err := owners.Same(ctx, b.Partitioning.History, b.Tasks.HistoryBatch, ask)
	if err != nil {
		return nil, err
	}
	gather.CountBatch(counted, answers)
	now, _, err := b.Homes.Home(ctx, domain, home.BatchId)
	switch {
	case err != nil:
		return nil, err
	case now.GetEndedAtMs() != 0: // owners may have forgotten its tasks
		return gather.Batch(now), nil
	}
	return counted, nil
}
