package intake

import (
	"strconv"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// Drained refuses a submit to what is drained, or returns nil. The whole request is refused: it is stored whole or not.
func (in *Intake) Drained(c call.Call, req *yardv1.SubmitRequest) error {
	now := c.Now.UnixMilli()
	if p := catalog.Drains.Domains.Of(in.Catalog, "", c.Domain); catalog.Paused(p, now) {
		return drainRefusal("", "domain", c.Domain, p)
	}
	var last *yardv1.NewTask
	for i, t := range req.Tasks {
		if last != nil && t.Type == last.Type && t.Tasklist == last.Tasklist && t.Group == last.Group {
			continue
		}
		last = t
		path, list := "/tasks/"+strconv.Itoa(i), t.Tasklist
		listPath := path + "/tasklist"
		if list == "" {
			list, listPath = req.Tasklist, "/tasklist"
		}
		if p := catalog.Drains.Tasklists.Of(in.Catalog, c.Domain, list); catalog.Paused(p, now) {
			return drainRefusal(listPath, "tasklist", list, p)
		}
		if p := catalog.Drains.Types.Of(in.Catalog, c.Domain, t.Type); catalog.Paused(p, now) {
			return drainRefusal(path+"/type", "type", t.Type, p)
		}
		if t.Group == "" {
			continue
		}
		if p := catalog.Drains.Groups.Of(in.Catalog, c.Domain, t.Group); catalog.Paused(p, now) {
			return drainRefusal(path+"/group", "group", t.Group, p)
		}
	}
	return nil
}

func drainRefusal(path, kind, name string, p *yardv1.Pause) error {
	return fault.At(fault.FailedPrecondition, path, "nothing was stored, the %s %q takes no new tasks: it is %s", kind, name, validate.ReasonOf("drained", p.By, p.Reason))
}
