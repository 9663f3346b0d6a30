package caps

import (
	"fmt"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// Refusal is why a queue, which has so many tasks, does not take these, the first of which has this place in its request. A request that may fit later is to
// be repeated after a time.
func (t Tasks) Refusal(queued int64, first int, after time.Duration) *fault.Error {
	path, of, setting := "/tasks/"+strconv.Itoa(first)+"/tasklist", fmt.Sprintf("the tasklist %q", t.Of.Tasklist), "max_queued"
	if t.Of.Group != "" {
		path, of, setting = "/tasks/"+strconv.Itoa(first)+"/group", fmt.Sprintf("the group %q in the tasklist %q", t.Of.Group, t.Of.Tasklist), "max_queued_per_group"
	}
	if t.N > t.Most {
		return fault.At(fault.InvalidArgument, path, "the request has %d tasks for %s, whose %s is %d: it can never fit, and nothing was stored; send fewer at once",
			t.N, of, setting, t.Most)
	}
	return fault.At(fault.ResourceExhausted, path, "%s has %d tasks queued, and its %s is %d: nothing was stored; repeat the request later", of, queued, setting, t.Most).After(after)
}

// KeyRefusal says that an order key has as many unfinished tasks as it may. It names the first task of the request with the key.
func KeyRefusal(key string, tasks int64, first int, after time.Duration) *fault.Error {
	refusal := fault.At(fault.ResourceExhausted, "/tasks/"+strconv.Itoa(first)+"/order_key",
		"the order key %q has %d unfinished tasks: nothing was stored; repeat the request later", key, tasks).After(after)
	refusal.Detail = map[string]string{fault.DetailReason: "order_key_full"}
	return refusal
}
