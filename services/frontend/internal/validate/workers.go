package validate

import (
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

// Workers checks a workers.list and fills in its default limit.
func Workers(req *yardv1.ListWorkersRequest) error {
	if req.Limit == 0 {
		req.Limit = ListDefault
	}
	return firstError(
		between("/limit", req.Limit, 1, ListMax),
		text("/cursor", req.Cursor, workerIDBytesMax),
	)
}
