package validate

import "github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

// Pollers checks a tasklists.pollers and fills in its default limit.
func Pollers(req *yardv1.TasklistPollersRequest) error {
	if req.Limit == 0 {
		req.Limit = ListMax
	}
	return firstError(
		name("/tasklist", req.Tasklist),
		between("/limit", req.Limit, 1, ListMax),
		text("/cursor", req.Cursor, WorkerBytesMax),
	)
}

// TopLimits checks a limits.top and fills in its defaults.
func TopLimits(req *yardv1.TopLimitsRequest) error {
	if req.Limit == 0 {
		req.Limit = TopDefault
	}
	if req.Each == 0 {
		req.Each = TopEachDefault
	}
	return firstError(
		between("/limit", req.Limit, 1, TopMax),
		between("/each", req.Each, 1, TopEachMax),
	)
}
