package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/batchclose"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// A batch is one message of the log of its home partition, which is changed by compare-and-set: by frontends until it is closed, and by its keeper in history
// when it is over (decision 0047).

// CreateBatch makes a batch (batches.create).
func (g *Gateway) CreateBatch(c Call, req *yardv1.CreateBatchRequest, answer Answer) {
	digest, err := batchRequest(req)                  // before what is left out is set
	bad := validate.CreateBatch(req, c.Now, c.form()) // it says which text is no text
	g.asks(c, cmp.Or(bad, err), answer, func(ctx context.Context) (codec.Message, error) {
		p := topology.BatchPartition(c.Domain, req.BatchId, g.Partitioning)
		home := &logv1.BatchHome{
			BatchId: req.BatchId, LogVersion: g.LogVersion(), Request: digest, CreatedAtMs: c.now().UnixMilli(), KeepMs: req.KeepMs,
		}
		home.ExpiresAtMs = home.CreatedAtMs + req.ExpiresInMs
		var charge *quotas.Charge
		if req.Callback != nil {
			home.Callback = g.batchCallback(c, req.Callback)
			charge = g.Quotas.Charge(c.Domain, 1, home.Callback.SizeVT())
		}
		fresh := false
		made, err := g.changeBatch(ctx, c.Domain, req.BatchId, func(was *logv1.BatchHome) (*logv1.BatchHome, error) {
			switch {
			case was != nil && bytes.Equal(was.Request, digest):
				return nil, nil
			case was != nil:
				return nil, fault.At(fault.AlreadyExists, "/batch_id", "there is a batch %q with other contents", req.BatchId)
			case !g.appender.hasRoom(p): // as for tasks: what is left is for the events of those that are there
				return nil, errStorageFull()
			}
			n, err := g.Batches.Count(ctx, p, c.Domain)
			if err == nil && n >= topology.BatchesMax {
				err = fault.New(fault.ResourceExhausted, "the domain has %d batches with the home of this one, with those that are over and still kept: %d are allowed", n, topology.BatchesMax).After(fullRetryAfter)
			}
			if err == nil && req.Callback != nil { // it is submitted now, though it starts later
				err = cmp.Or(validate.OfCallback(g.drained(c, validate.CallbackSubmit(req.Callback))), charge.Take())
			}
			fresh = true
			return home, err
		})
		charge.Failed(1, err)
		if err != nil {
			return nil, err
		}
		if fresh { // no owner has tasks of it
			return &yardv1.CreateBatchResponse{Batch: publicBatch(made)}, nil
		}
		told, err := g.countedBatch(ctx, c.Domain, made)
		return &yardv1.CreateBatchResponse{Batch: told}, err
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
func (g *Gateway) batchCallback(c Call, t *yardv1.NewTask) *logv1.Record {
	return validate.Accept(validate.CallbackSubmit(t), validate.Terms{
		Domain: c.Domain, Now: c.Now, Trace: func(string) []byte { return nil }, RequestTrace: c.Trace,
		Type:     func(name string) *yardv1.TaskType { return catalog.Types.Of(g.Catalog, c.Domain, name) },
		Tasklist: func(name string) *yardv1.Tasklist { return catalog.Tasklists.Of(g.Catalog, c.Domain, name) },
	}).Records[0]
}

// GetBatch tells of a batch (batches.get).
func (g *Gateway) GetBatch(c Call, req *yardv1.GetBatchRequest, answer Answer) {
	g.asks(c, validate.BatchID("/batch_id", req.BatchId), answer, func(ctx context.Context) (codec.Message, error) {
		home, _, err := g.batchHome(ctx, c.Domain, req.BatchId)
		if err == nil && home == nil {
			err = noBatch(req.BatchId)
		}
		if err != nil {
			return nil, err
		}
		told, err := g.countedBatch(ctx, c.Domain, home)
		return &yardv1.GetBatchResponse{Batch: told}, err
	})
}

// CloseBatch says that a batch has all its tasks (batches.close). Once it is answered OK, no partition takes another one.
func (g *Gateway) CloseBatch(c Call, req *yardv1.CloseBatchRequest, answer Answer) {
	g.asks(c, validate.BatchID("/batch_id", req.BatchId), answer, func(ctx context.Context) (codec.Message, error) {
		closed, err := g.closeBatch(ctx, c, req.BatchId, false)
		if err == nil {
			err = g.closeMembers(ctx, c.Domain, closed)
		}
		if err != nil {
			return nil, err
		}
		told, err := g.countedBatch(ctx, c.Domain, closed)
		return &yardv1.CloseBatchResponse{Batch: told}, err
	})
}

// closeBatch marks the home of a batch.
func (g *Gateway) closeBatch(ctx context.Context, c Call, id string, cancel bool) (*logv1.BatchHome, error) {
	return g.changeBatch(ctx, c.Domain, id, func(was *logv1.BatchHome) (*logv1.BatchHome, error) {
		switch {
		case was == nil:
			return nil, noBatch(id)
		case was.EndedAtMs != 0, was.ClosedAtMs != 0 && (was.CancelRequested || !cancel):
			return nil, nil
		}
		closed := was.CloneVT()
		if closed.ClosedAtMs == 0 {
			closed.ClosedAtMs = c.now().UnixMilli()
		}
		closed.CancelRequested = closed.CancelRequested || cancel
		return closed, nil
	})
}

// closeMembers closes a batch, whose home is marked, in all partitions. After an error its keeper closes the others, or a repeat.
func (g *Gateway) closeMembers(ctx context.Context, domain string, home *logv1.BatchHome) error {
	if home.EndedAtMs != 0 { // it ended behind its close
		return nil
	}
	err := parallel.Each(ctx, g.Partitioning.History, askedAtOnce, func(ctx context.Context, p int) error {
		ctx, cancel := context.WithTimeout(ctx, g.Config.AppendTimeout)
		defer cancel()
		return batchclose.Close(ctx, g.History, batchclose.Key{Partition: p, Domain: domain, ID: home.BatchId, Made: home.CreatedAtMs}, g.LogVersion())
	})
	switch {
	case errors.Is(err, natslog.ErrFull):
		return errStorageFull()
	case err != nil:
		return fault.New(fault.Unavailable, "the batch is not closed in all partitions yet: repeat the request: %v", err).After(awayRetryAfter)
	}
	return nil
}

// WaitBatch waits until a batch is over (batches.wait).
func (g *Gateway) WaitBatch(c Call, req *yardv1.WaitBatchRequest, answer Answer) {
	if g.rejects(&c, validate.WaitBatch(req), answer) {
		return
	}
	until := c.Received.Add(time.Duration(req.WaitMs) * time.Millisecond)
	g.wait(c.Domain, later(c.Deadline, until.Add(waitGrace)), answer, func(ctx context.Context) (codec.Message, error) {
		seen, err := g.awaitBatch(ctx, batchRef{c.Domain, req.BatchId}, until)
		if err == nil && seen == nil {
			err = noBatch(req.BatchId)
		}
		if err != nil {
			return nil, err
		}
		told, err := g.countedBatch(ctx, c.Domain, seen)
		return &yardv1.WaitBatchResponse{Batch: told}, err
	})
}

// CancelBatch closes a batch and cancels a page of its tasks (batches.cancel).
func (g *Gateway) CancelBatch(c Call, req *yardv1.CancelBatchRequest, answer Answer) {
	p, bad := validate.CancelBatch(req, c.Now)
	g.asks(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		home, err := g.closeBatch(ctx, c, req.BatchId, true)
		if err == nil && req.Cursor == "" { // later steps find it closed
			err = g.closeMembers(ctx, c.Domain, home)
		}
		if err != nil {
			return nil, err
		}
		if home.EndedAtMs != 0 {
			return &yardv1.CancelBatchResponse{Purged: &yardv1.Purged{}}, nil
		}
		done, err := g.purgeStep(ctx, c, p)
		if err != nil {
			return nil, err
		}
		if n := done.Cancelled + done.CancelRequested; n > 0 {
			g.Log.Info("tasks of a batch were cancelled", "domain", c.Domain, "reason", p.Reason, "tasks", n)
		}
		return &yardv1.CancelBatchResponse{Purged: done}, nil
	})
}

// ListBatches tells of batches (batches.list): those of one partition after the other.
func (g *Gateway) ListBatches(c Call, req *yardv1.ListBatchesRequest, answer Answer) {
	from, bad := validate.ListBatches(req, g.Partitioning.History)
	g.asks(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		resp := &yardv1.ListBatchesResponse{}
		for left := int(req.Limit); ; {
			page, more, err := g.Batches.Page(ctx, from.Partition, c.Domain, from.After, left)
			if err != nil {
				return nil, err
			}
			left -= len(page)
			for _, kept := range page {
				if told := publicBatch(kept.Home); len(req.States) == 0 || slices.Contains(req.States, told.State) {
					resp.Batches = append(resp.Batches, told)
				}
				from.After = kept.Seq
			}
			if !more {
				from = validate.BatchPage{Partition: from.Partition + 1}
			}
			if from.Partition == g.Partitioning.History {
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

// changeBatch stores what change makes of a batch, nil = as it is, over what it was made of. It returns the batch as it is then. Where it is not
// known whether it was stored, it is read what is.
func (g *Gateway) changeBatch(ctx context.Context, domain, id string, change func(was *logv1.BatchHome) (*logv1.BatchHome, error)) (*logv1.BatchHome, error) {
	p := topology.BatchPartition(domain, id, g.Partitioning)
	for delay := backoff.New(resolveFirst, resolveLast); ; {
		was, seq, err := g.batchHome(ctx, domain, id)
		if err != nil {
			return nil, err
		}
		home, err := change(was)
		if err != nil || home == nil {
			return was, err
		}
		data, err := home.MarshalVT()
		if err != nil {
			return nil, fault.New(fault.Internal, "encode a batch: %v", err)
		}
		kept := time.Duration(home.ExpiresAtMs-home.CreatedAtMs)*time.Millisecond + topology.BatchLifeMax - topology.BatchExpiresMax
		once, cancel := context.WithTimeout(ctx, g.Config.AppendTimeout)
		_, _, err = g.History.Append(once, natslog.Msg{Subject: topology.BatchHome(p, domain, id), Data: data}.InPlace(kept).Over(seq))
		cancel()
		switch {
		case err == nil:
			return home, nil
		case errors.Is(err, natslog.ErrFull):
			return nil, errStorageFull()
		}
		delay.Sleep(ctx)
		if ctx.Err() != nil {
			code := fault.Unavailable
			if !errors.Is(err, natslog.ErrNotStored) {
				code = fault.Unknown
			}
			return nil, fault.New(code, "the log did not say in time that the batch is stored: repeat the request").After(awayRetryAfter)
		}
	}
}

// countedBatch is a batch as the API shows it, with how many tasks it has now.
func (g *Gateway) countedBatch(ctx context.Context, domain string, home *logv1.BatchHome) (*yardv1.Batch, error) {
	told := publicBatch(home)
	if home.EndedAtMs != 0 {
		return told, nil
	}
	counted := make([]*rpcv1.CountBatchResponse, g.Partitioning.History)
	err := parallel.Each(ctx, len(counted), askedAtOnce, func(ctx context.Context, p int) (err error) {
		counted[p], err = retryCall(ctx, time.Time{}, func(ctx context.Context) (*rpcv1.CountBatchResponse, error) {
			return g.Owners.HistoryBatch(ctx, p, &rpcv1.CountBatchRequest{Domain: domain, BatchId: home.BatchId, MadeMs: home.CreatedAtMs})
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, c := range counted {
		ends := c.GetEnds()
		told.Tasks += c.Tasks
		told.Completed += ends.GetCompleted()
		told.Dead += ends.GetDead()
		told.Cancelled += ends.GetCancelled()
		told.Expired += ends.GetExpired()
	}
	told.Active = told.Tasks - told.Completed - told.Dead - told.Cancelled - told.Expired
	now, _, err := g.batchHome(ctx, domain, home.BatchId)
	switch {
	case err != nil:
		return nil, err
	case now.GetEndedAtMs() != 0: // owners may have forgotten its tasks
		return publicBatch(now), nil
	}
	return told, nil
}

// publicBatch is a batch as the API shows it, without counts unless it is over.
func publicBatch(h *logv1.BatchHome) *yardv1.Batch {
	b := &yardv1.Batch{
		BatchId: h.BatchId, State: yardv1.BatchState_BATCH_STATE_OPEN, Tasks: h.Tasks, CreatedAtMs: h.CreatedAtMs, ClosedAtMs: h.ClosedAtMs, EndedAtMs: h.EndedAtMs,
		ExpiresAtMs: h.ExpiresAtMs, KeepMs: h.KeepMs, CancelRequested: h.CancelRequested,
		CallbackType: h.Callback.GetType(), CallbackTasklist: h.Callback.GetTasklist(),
		Completed: h.Ends.GetCompleted(), Dead: h.Ends.GetDead(), Cancelled: h.Ends.GetCancelled(), Expired: h.Ends.GetExpired(),
	}
	switch {
	case h.Expired:
		b.State = yardv1.BatchState_BATCH_STATE_EXPIRED
	case h.EndedAtMs != 0:
		b.State = yardv1.BatchState_BATCH_STATE_COMPLETED
	case h.ClosedAtMs != 0:
		b.State = yardv1.BatchState_BATCH_STATE_CLOSED
	}
	if h.EndedAtMs != 0 {
		b.Active = h.Tasks - b.Completed - b.Dead - b.Cancelled - b.Expired
	}
	if id, err := ids.TaskIDFromBytes(h.CallbackTaskId); err == nil {
		b.CallbackTaskId = id.String()
	}
	return b
}
