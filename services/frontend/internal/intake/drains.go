package intake

import (
	"cmp"
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// Drained refuses a submit to what is drained, or returns nil. The whole request is refused: it is stored whole or not.
func (in *Intake) Drained(c call.Call, req *yardv1.SubmitRequest) error {
	now := c.Now.UnixMilli()
	var last *yardv1.NewTask
	for i, t := range req.Tasks {
		if last != nil && t.Type == last.Type && t.Tasklist == last.Tasklist && t.Group == last.Group {
			continue
		}
		last = t
		kind, name, p := catalog.Drains.OfTask(in.Catalog, c.Domain, cmp.Or(t.Tasklist, req.Tasklist), t.Type, t.Group, now)
		if p == nil {
			continue
		}
		path := "/tasks/" + strconv.Itoa(i) + "/" + kind
		switch {
		case kind == "domain":
			path = ""
		case kind == "tasklist" && t.Tasklist == "":
			path = "/tasklist"
		}
		return fault.At(fault.FailedPrecondition, path, "nothing was stored, the %s %q takes no new tasks: it is %s", kind, name, validate.ReasonOf("drained", p.By, p.Reason))
	}
	return nil
}
