package gather

import (
	"cmp"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// Stuck joins the attempts that run for too long, those that run for longest first, and adds up how many there are. The list ends where the first part ends that has
// more of them.
func Stuck(parts []*yardv1.StuckTasksResponse) *yardv1.StuckTasksResponse {
	out := &yardv1.StuckTasksResponse{}
	var pages []paging.Page[*yardv1.StuckTask]
	for _, p := range parts {
		out.Found += p.Found
		pages = append(pages, paging.Page[*yardv1.StuckTask]{All: p.Tasks, More: int64(len(p.Tasks)) < p.Found})
	}
	out.Tasks, _ = paging.Merge(pages, func(a, b *yardv1.StuckTask) int {
		return cmp.Or(cmp.Compare(a.StartedAtMs, b.StartedAtMs), strings.Compare(a.TaskId, b.TaskId))
	}, nil)
	return out
}
