package validate

import (
	"cmp"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// workerIDBytesMin and workerIDBytesMax bound the id of a worker's signs of life: it is not to be guessed.
const workerIDBytesMin, workerIDBytesMax = 16, 64

// workerID checks the id of a worker's signs of life, which may be left out.
func workerID(path, id string) error {
	if id != "" && (len(id) < workerIDBytesMin || len(id) > workerIDBytesMax || strings.Trim(id, workerIDChars) != "") {
		return invalid(path, "must be %d to %d of the characters A-Z, a-z, 0-9, - and _", workerIDBytesMin, workerIDBytesMax)
	}
	return nil
}

const workerIDChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// DrainWorker checks a workers.drain.
func DrainWorker(req *yardv1.DrainWorkerRequest) error {
	return firstError(requiredWorkerID(req.WorkerId), workerReason(req.Reason, req.By))
}

// StopWorker checks a workers.stop.
func StopWorker(req *yardv1.StopWorkerRequest) error {
	return firstError(requiredWorkerID(req.WorkerId), workerReason(req.Reason, req.By))
}

// ResumeWorker checks a workers.resume.
func ResumeWorker(req *yardv1.ResumeWorkerRequest) error { return requiredWorkerID(req.WorkerId) }

func requiredWorkerID(id string) error {
	if id == "" {
		return invalid("/worker_id", "is required")
	}
	return workerID("/worker_id", id)
}

func workerReason(reason, by string) error {
	return firstError(text("/reason", reason, WorkerReasonBytesMax), text("/by", by, PauserBytesMax))
}

// Workers checks a workers.list and fills in its default limit.
func Workers(req *yardv1.ListWorkersRequest) error {
	req.Limit = cmp.Or(req.Limit, ListDefault)
	return firstError(
		between("/limit", req.Limit, 1, ListMax),
		text("/cursor", req.Cursor, workerIDBytesMax),
	)
}
