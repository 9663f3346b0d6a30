package validate

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

const (
	// BatchIDBytesMax bounds the name of a batch.
	BatchIDBytesMax = 128
	// BatchTimeMin bounds how long a batch may take, and is kept; BatchKeepDefault is how long it is kept if nothing is said.
	BatchTimeMin     = time.Minute
	BatchKeepDefault = 24 * time.Hour
	// BatchListMax bounds the batches that one list looks at.
	BatchListMax = 100
	// BatchWaitDefault is how long a wait for a batch takes if nothing is said.
	BatchWaitDefault = 30 * time.Second
	// batchHeaders and batchHeaderBytes are what the headers of a callback take that tell of its batch.
	batchHeaders, batchHeaderBytes = 6, 400
	// batchAhead is how far ahead ids of the tasks may be that a cancel of a batch finds: it is closed a moment after that began.
	batchAhead = 2 * time.Second
	// callbackPath is where a request has its callback.
	callbackPath = "/callback"
)

// BatchID checks the name of a batch.
func BatchID(path, id string) error {
	if id == "" {
		return invalid(path, "is missing")
	}
	return key(path, id, BatchIDBytesMax)
}

// batchIDs checks the batch of the tasks of a request: all have the same one, or none has one.
func batchIDs(tasks []*yardv1.NewTask) error {
	batch := tasks[0].BatchId
	for i, t := range tasks {
		if t.BatchId != batch {
			return invalid(at("/tasks", i)+"/batch_id", "all tasks of a request have the same one, or none has one: send the others in a request of their own")
		}
	}
	if batch == "" {
		return nil
	}
	return BatchID("/tasks/0/batch_id", batch)
}

// CreateBatch checks a batches.create, and sets what it leaves out.
func CreateBatch(req *yardv1.CreateBatchRequest, now time.Time, form Form) error {
	req.ExpiresInMs = cmp.Or(req.ExpiresInMs, ms(topology.BatchExpiresMax))
	req.KeepMs = cmp.Or(req.KeepMs, ms(BatchKeepDefault))
	if err := firstError(
		BatchID("/batch_id", req.BatchId),
		between("/expires_in_ms", req.ExpiresInMs, ms(BatchTimeMin), ms(topology.BatchExpiresMax)),
		between("/keep_ms", req.KeepMs, ms(BatchTimeMin), ms(topology.BatchExpiresMax)),
	); err != nil || req.Callback == nil {
		return err
	}
	return callback(req.Callback, now, form)
}

// callback checks the callback of a batch: a task that is submitted by itself, at once.
func callback(t *yardv1.NewTask, now time.Time, form Form) error {
	if err := byItself(callbackPath, t, "the callback of a batch"); err != nil {
		return err
	}
	size := 0
	for name, value := range t.Headers {
		size += len(name) + len(value)
	}
	if len(t.Headers) > HeadersMax-batchHeaders || size > HeaderBytesMax-batchHeaderBytes {
		return invalid(callbackPath+"/headers", "take the place of those that tell of the batch: %d headers of %d bytes in all are allowed", HeadersMax-batchHeaders, HeaderBytesMax-batchHeaderBytes)
	}
	return OfCallback(Submit(Single(t), now, form))
}

// byItself refuses what a task may not have that the engine submits.
func byItself(path string, t *yardv1.NewTask, noun string) error {
	for _, never := range []struct {
		field string
		is    bool
	}{
		{"unique_key", t.UniqueKey != ""},
		{"order_key", t.OrderKey != ""},
		{"batch_id", t.BatchId != ""},
		{"delay_ms", t.DelayMs != 0},
		{"run_at_ms", t.RunAtMs != 0},
	} {
		if never.is {
			return invalid(path+"/"+never.field, "%s has none", noun)
		}
	}
	return nil
}

// Single is the submit of one task that the engine submits by itself.
func Single(t *yardv1.NewTask) *yardv1.SubmitRequest {
	return &yardv1.SubmitRequest{Tasks: []*yardv1.NewTask{t}}
}

// singlePath is where such a submit has its task.
const singlePath = "/tasks/0"

// OfCallback is what refuses the submit of a callback as what refuses the batch.
func OfCallback(err error) error { return renamed(singlePath, callbackPath, err) }

// BatchPage is where a list of batches begins: behind a message of the log of a partition.
type BatchPage struct {
	Partition int
	After     uint64
}

// Cursor is p as a list's cursor.
func (p BatchPage) Cursor() string {
	return strconv.Itoa(p.Partition) + "." + strconv.FormatUint(p.After, 10)
}

func batchPage(cursor string, partitions int) (p BatchPage, err error) {
	if cursor == "" {
		return p, nil
	}
	partition, after, _ := strings.Cut(cursor, ".")
	if p.Partition, err = strconv.Atoi(partition); err == nil {
		p.After, err = strconv.ParseUint(after, 10, 64)
	}
	if err != nil || p.After == math.MaxUint64 || p.Partition < 0 || p.Partition >= partitions {
		return p, notNext()
	}
	return p, nil
}

// ListBatches checks a batches.list, and sets what it leaves out.
func ListBatches(req *yardv1.ListBatchesRequest, partitions int) (BatchPage, error) {
	page, err := batchPage(req.Cursor, partitions)
	if err != nil {
		return page, err
	}
	req.Limit = cmp.Or(req.Limit, BatchListMax)
	return page, firstError(states(req.States, yardv1.BatchState_name, "not a state of a batch"), between("/limit", req.Limit, 1, BatchListMax))
}

// WaitBatch checks a batches.wait, and sets what it leaves out.
func WaitBatch(req *yardv1.WaitBatchRequest) error {
	req.WaitMs = cmp.Or(req.WaitMs, ms(BatchWaitDefault))
	return firstError(BatchID("/batch_id", req.BatchId), between("/wait_ms", req.WaitMs, 0, ms(WaitMax)))
}

// CancelBatch checks a batches.cancel: a purge of its tasks.
func CancelBatch(req *yardv1.CancelBatchRequest, now time.Time) (Purge, error) {
	if err := BatchID("/batch_id", req.BatchId); err != nil {
		return Purge{}, err
	}
	p, err := purgeOf(&yardv1.ListRequest{BatchId: req.BatchId}, &yardv1.PurgeRequest{
		Running: req.Running, Limit: req.Limit, Cursor: req.Cursor, Reason: req.Reason, By: req.By,
	}, now.Add(batchAhead))
	p.Reason = "the rest of the batch is cancelled" + strings.TrimPrefix(p.Reason, "purged")
	return p, err
}
