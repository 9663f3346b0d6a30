package gateway

import (
	"slices"
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
)

// submitHeaders refuses headers that a node of the version before would lose (I13).
func (g *Gateway) submitHeaders(tasks []*yardv1.NewTask) error {
	i := slices.IndexFunc(tasks, func(t *yardv1.NewTask) bool { return len(t.Headers) > 0 })
	if i < 0 {
		return nil
	}
	return g.headersKnown("/tasks/" + strconv.Itoa(i) + "/headers")
}

// headersKnown tells whether each node of the cluster knows headers; one that does not would list without the filter.
func (g *Gateway) headersKnown(path string) error {
	if v := g.LogVersion(); v < logversion.Headers {
		return fault.At(fault.FailedPrecondition, path,
			"the cluster writes log version %d, headers need %d: update all nodes, then run yard upgrade finalize", v, logversion.Headers)
	}
	return nil
}
