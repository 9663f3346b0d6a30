package shard

import (
	"fmt"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
)

// reasonMin is how long something must have held up a task to be shown.
const reasonMin = time.Millisecond

// reasons returns why a task waited since it was ready until it was matched, in the order in which the reasons began: limits, rates and
// pauses, each with the time in which it held up tasks like this one, and for how long no worker had a poll to spare. A reason is left out if it is
// shorter than a millisecond; the result may be empty. Two limits may have held it up at the same time.
func reasons(t *grab.Traced, ready time.Duration) string {
	var all []string
	add := func(why string, lasted time.Duration) {
		if lasted >= reasonMin {
			all = append(all, fmt.Sprintf("%s %v", why, lasted.Round(time.Millisecond)))
		}
	}
	began := ready // of the time that no delay explains
	for _, d := range t.Delays {
		since, until := max(d.Since, ready), min(d.Until, t.Matched)
		add("no worker", min(since, t.Polled)-began)
		add(d.Kind+" "+string(d.Ref), until-since)
		began = max(began, until)
	}
	add("no worker", min(t.Polled, t.Matched)-began)
	return strings.Join(all, ", ")
}
