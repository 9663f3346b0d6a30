package gather

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Stuck joins the attempts that run for too long, those that run for longest first, and adds up how many there are.
func Stuck(parts []*yardv1.StuckTasksResponse) *yardv1.StuckTasksResponse {
	out := &yardv1.StuckTasksResponse{}
	for _, p := range parts {
		out.Tasks, out.Found = append(out.Tasks, p.Tasks...), out.Found+p.Found
	}
	slices.SortFunc(out.Tasks, func(a, b *yardv1.StuckTask) int {
		return cmp.Or(cmp.Compare(a.StartedAtMs, b.StartedAtMs), strings.Compare(a.TaskId, b.TaskId))
	})
	return out
}
