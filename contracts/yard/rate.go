package yard

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Rate is how many attempts start in a time, on any number of nodes. The zero Rate is any number.
type Rate struct {
	// Tasks is how many start in Per, 1..1000000, and at most 1000 in each millisecond.
	Tasks int
	// Per is 1 ms to 1 day. Default 1 s.
	Per time.Duration
	// Burst is how many start at once after a rest, 1..1000000. Default: what the rate gives in a second, but at least 1.
	Burst int
}

func (r Rate) wire() *yardv1.Rate {
	if r == (Rate{}) {
		return nil
	}
	return &yardv1.Rate{Tasks: int32Of(r.Tasks), PerMs: milliseconds(r.Per), Burst: int32Of(r.Burst)}
}

func rateOf(w *yardv1.Rate) Rate {
	return Rate{Tasks: int(w.GetTasks()), Per: time.Duration(w.GetPerMs()) * time.Millisecond, Burst: int(w.GetBurst())}
}
