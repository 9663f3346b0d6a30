package record

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
)

// Due counts the tasks of a submit batch that was stored at, those that were due then. It calls visit with tasks of one
// tasklist and group that follow one another, and their share of the bytes of the message; the names lie in the message.
func (d *Decoder) Due(data []byte, at time.Time, visit func(domain, tasklist, group string, tasks, bytes int)) error {
	defer d.batch.ResetVT()
	if err := d.batch.UnmarshalVTUnsafe(data); err != nil {
		return fmt.Errorf("submit batch: %w", err)
	}
	now, n := at.UnixMilli(), 0
	for i, r := range d.batch.Tasks {
		if r.DueAtMs <= now && !Late(r, at) {
			n++
		}
		if next := i + 1; n > 0 && (next == len(d.batch.Tasks) || !alike(d.batch.Tasks[next], r)) {
			visit(r.Domain, r.Tasklist, r.Group, n, len(data)*n/len(d.batch.Tasks))
			n = 0
		}
		r.Id, r.Payload, r.Trace, r.Result, r.Attempt, r.Headers, r.Expiry = nil, nil, nil, nil, nil, nil, nil
	}
	return nil
}

// alike tells whether two tasks are of one tasklist and group.
func alike(a, b *logv1.Record) bool {
	return a.Domain == b.Domain && a.Tasklist == b.Tasklist && a.Group == b.Group
}
