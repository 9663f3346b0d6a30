package record

import (
	"fmt"
	"time"
)

// Due counts the tasks of a submit batch that was stored at, those that were due then. It calls visit with tasks of one
// tasklist that follow one another; the names lie in the message.
func (d *Decoder) Due(data []byte, at time.Time, visit func(domain, tasklist string, tasks int)) error {
	defer d.batch.ResetVT()
	if err := d.batch.UnmarshalVTUnsafe(data); err != nil {
		return fmt.Errorf("submit batch: %w", err)
	}
	now, n := at.UnixMilli(), 0
	for i, r := range d.batch.Tasks {
		if r.DueAtMs <= now && !Late(r, at) {
			n++
		}
		if next := i + 1; n > 0 && (next == len(d.batch.Tasks) || d.batch.Tasks[next].Domain != r.Domain || d.batch.Tasks[next].Tasklist != r.Tasklist) {
			visit(r.Domain, r.Tasklist, n)
			n = 0
		}
		r.Id, r.Payload, r.Trace, r.Result, r.Attempt, r.Headers, r.Expiry = nil, nil, nil, nil, nil, nil, nil
	}
	return nil
}
