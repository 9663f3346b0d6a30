package gateway

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// memBatches has no batch and no task that has ended, but a number of batches.
type memBatches struct{ count int }

func (m memBatches) Ends(context.Context, int, string) (*logv1.BatchEnds, error) {
	return &logv1.BatchEnds{}, nil
}

func (m memBatches) Page(context.Context, int, string, uint64, int) ([]KeptBatch, bool, error) {
	return nil, false, nil
}

func (m memBatches) Count(context.Context, int, string) (int, error) { return m.count, nil }

func TestTooManyBatchesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for count, want := range map[int]fault.Code{topology.BatchesMax - 1: "", topology.BatchesMax: fault.ResourceExhausted} {
			r := newKnowingRig(t, func(d *Deps) {
				d.Batches, d.LogVersion = memBatches{count}, func() uint32 { return logversion.Batches }
			})
			_, err := asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})
			if fault.CodeOf(err) != want {
				t.Errorf("with %d batches: %v", count, err)
			}
		}
	})
}

func TestBatchesNeedTheirLogVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t, func(d *Deps) { d.LogVersion = func() uint32 { return logversion.Batches - 1 } })
		for path, err := range map[string]error{
			"/batch_id":         second(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"})),
			"/tasks/0/batch_id": second(asked(r, "shop", false, r.Submit, &yardv1.SubmitRequest{Tasklist: "mail", Tasks: []*yardv1.NewTask{{Type: "a", BatchId: "a"}}})),
		} {
			if e := fault.From(err); e == nil || e.Code != fault.FailedPrecondition || e.Path != path {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestR43_AFullLogTakesNoBatch, and no member of one; what is there is shown all the same.
func TestR43_AFullLogTakesNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t, func(d *Deps) {
			d.Batches, d.LogVersion = memBatches{}, func() uint32 { return logversion.Batches }
		})
		if _, err := asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"}); err != nil {
			t.Fatal(err)
		}
		for p := range rigPartitions {
			r.storageFull(t, p, true)
		}
		stored := r.log.messages()
		for name, err := range map[string]error{
			"another batch": second(asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "b"})),
			"a member":      second(asked(r, "shop", false, r.Submit, &yardv1.SubmitRequest{Tasklist: "mail", Tasks: []*yardv1.NewTask{{Type: "a", BatchId: "a"}}})),
		} {
			if e := wantCode(t, err, fault.ResourceExhausted); e.RetryAfter == 0 {
				t.Errorf("%s: no retry-after: %v", name, err)
			}
		}
		if _, err := asked(r, "shop", false, r.CreateBatch, &yardv1.CreateBatchRequest{BatchId: "a"}); err != nil || r.log.messages() != stored {
			t.Errorf("the same again: %v, %d messages more", err, r.log.messages()-stored)
		}
	})
}

// TestABatchOfBadTextIsRefused as any bad field is, though it cannot be encoded.
func TestABatchOfBadTextIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newKnowingRig(t, func(d *Deps) {
			d.Batches, d.LogVersion = memBatches{}, func() uint32 { return logversion.Batches }
		})
		for path, req := range map[string]*yardv1.CreateBatchRequest{
			"/batch_id": {BatchId: "a\xff"}, "/callback/type": {BatchId: "a", Callback: &yardv1.NewTask{Type: "a\xff", Tasklist: "mail"}},
		} {
			_, err := asked(r, "shop", false, r.CreateBatch, req)
			if e := fault.From(err); e == nil || e.Code != fault.InvalidArgument || e.Path != path {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}
