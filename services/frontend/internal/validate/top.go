package validate

import (
	"cmp"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Pollers checks a tasklists.pollers and fills in its default limit.
func Pollers(req *yardv1.TasklistPollersRequest) error {
	req.Limit = cmp.Or(req.Limit, ListMax)
	return firstError(
		name("/tasklist", req.Tasklist),
		between("/limit", req.Limit, 1, ListMax),
		text("/cursor", req.Cursor, WorkerBytesMax),
	)
}

// TopLimits checks a limits.top and fills in its defaults.
func TopLimits(req *yardv1.TopLimitsRequest) error {
	req.Limit = cmp.Or(req.Limit, TopDefault)
	req.Each = cmp.Or(req.Each, TopEachDefault)
	return firstError(
		between("/limit", req.Limit, 1, TopMax),
		between("/each", req.Each, 1, TopEachMax),
	)
}
