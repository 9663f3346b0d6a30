package validate

import (
	"cmp"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/busiest"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
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

// Queues checks a queues.list of a cluster with so many partitions, and fills in its defaults.
func Queues(req *yardv1.ListQueuesRequest, partitions int) error {
	req.Partitions = cmp.Or(req.Partitions, int32(partitions))
	req.Limit = cmp.Or(req.Limit, TopDefault)
	if req.Domain != "" {
		if err := domainName("/domain", req.Domain); err != nil {
			return err
		}
	}
	return firstError(
		between("/partition", req.Partition, 0, int32(partitions)-1),
		between("/partitions", req.Partitions, 1, topology.PartitionsMax),
		between("/limit", req.Limit, 1, TopMax),
		between("/domains", req.Domains, 0, ListMax),
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

// TopDomains checks a domains.top and fills in its defaults.
func TopDomains(req *yardv1.TopDomainsRequest) error {
	req.Limit = cmp.Or(req.Limit, TopDomainsDefault)
	req.By = cmp.Or(req.By, busiest.Default)
	if !busiest.Known(req.By) {
		return fault.At(fault.InvalidArgument, "/by", "want one of %s", strings.Join(busiest.Names(), ", "))
	}
	if req.Domain != "" {
		if err := domainName("/domain", req.Domain); err != nil {
			return err
		}
	}
	return between("/limit", req.Limit, 1, TopMax)
}
