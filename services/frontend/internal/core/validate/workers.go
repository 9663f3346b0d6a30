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

// DrainWorker checks a workers.drain, or a workers.stop.
func DrainWorker(id string, d *yardv1.WorkerDrain) error {
	return firstError(requiredWorkerID(id), text("/reason", d.Reason, WorkerReasonBytesMax), text("/by", d.By, PauserBytesMax))
}

// ResumeWorker checks a workers.resume.
func ResumeWorker(req *yardv1.ResumeWorkerRequest) error { return requiredWorkerID(req.WorkerId) }

func requiredWorkerID(id string) error {
	if id == "" {
		return invalid("/worker_id", "is required")
	}
	return workerID("/worker_id", id)
}

// Workers checks a workers.list and fills in its default limit.
func Workers(req *yardv1.ListWorkersRequest) error {
	req.Limit = cmp.Or(req.Limit, ListDefault)
	return firstError(
		between("/limit", req.Limit, 1, ListMax),
		text("/cursor", req.Cursor, workerIDBytesMax),
	)
}
