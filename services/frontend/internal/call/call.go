// Package call carries a request of the public API from its decoding to its answer.
//
// Owns: what is known of a request besides its body, the bounds of what is under way at a time, and the goroutine of a request that needs one.
//
// Never does: decode a body, check one, or know what a verb does.
//
// On failure: a request that finds no place is answered RESOURCE_EXHAUSTED at once, and one whose work panics INTERNAL. When the process stops,
// requests get time to end, and then their context ends.
//
// Everything that tenants share here is bounded for each of them (I14): requests under way and their bytes, queries, and waits.
package call

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

const (
	// FullRetryAfter and AwayRetryAfter are how long a rejected client must wait: for a place, and for an owner.
	FullRetryAfter = 100 * time.Millisecond
	AwayRetryAfter = 500 * time.Millisecond
	// WaitGrace is what a request with a wait gets beyond it to come back.
	WaitGrace = 2 * time.Second
	// storageRetryAfter is how long a client must wait for room in the log.
	storageRetryAfter = time.Second
	// waitsFullRetryAfter is longer: waits last.
	waitsFullRetryAfter = time.Second
)

// Call is what is known of a request besides its body.
type Call struct {
	// Domain is the subject's, not checked yet; topology.ReservedDomain for administrative requests.
	Domain string
	// Tasklist is that of the subject, if it names one.
	Tasklist string
	// JSON tells how the request was written, and so how it is answered.
	JSON bool
	// Reply is the asker's inbox: a poll is answered there by matching itself.
	Reply string
	// Trace is the trace context of the request (telemetry.ParseTraceparent); nil = none.
	Trace []byte
	// Received is when the request came, by this node's clock: for durations.
	Received time.Time
	// Now is the same by the server's clock: what has to do with the log is checked and dated by it.
	Now time.Time
	// Deadline is when it must have been answered.
	Deadline time.Time
}

// Answer takes what a request is answered with: a response or an error. It is
// called once. Only a poll differs: nil and nil say that matching answers it, and an
// error may still follow where it turns out that there was no subscriber, or an empty response
// where the owner that has it was replaced.
type Answer func(resp codec.Message, err error)

// ServerNow is the server's clock now.
func (c *Call) ServerNow() time.Time { return c.Now.Add(time.Since(c.Received)) }

// Form is what is known of the request, for its checks.
func (c *Call) Form() validate.Form {
	f := validate.Form{JSON: c.JSON}
	binary.BigEndian.PutUint64(f.Fresh[:], rand.Uint64())
	binary.BigEndian.PutUint64(f.Fresh[8:], rand.Uint64())
	return f
}

// Size is how many bytes m takes in the answer to c.
func (c *Call) Size(m codec.Message) int {
	form := codec.Protobuf
	if c.JSON {
		form = codec.JSON
	}
	data, err := codec.Marshal(form, m)
	if err != nil { // the answer as a whole will say so
		return 0
	}
	return len(data)
}

// named is a message of a list that is sorted by name.
type named interface {
	codec.Message
	GetName() string
}

// PageOf cuts a page out of what is sorted by name, behind the name that is the cursor; next is
// the cursor of the page after it.
func PageOf[M named](c Call, sorted []M, cursor string, limit int32) (page []M, next string) {
	from := 0
	for from < len(sorted) && sorted[from].GetName() <= cursor {
		from++
	}
	return Cut(c, sorted[from:], limit, false, func(last M) string { return last.GetName() })
}

// Cut cuts a page off some entries, behind which more may follow; next is the cursor of the page after it.
func Cut[M codec.Message](c Call, all []M, limit int32, more bool, cursor func(last M) string) (page []M, next string) {
	page, left := Fit(c, all, int(limit))
	if n := len(page); n > 0 && (left || more) {
		next = cursor(page[n-1])
	}
	return page, next
}

// Fit is how many of some entries an answer has room for, at most limit; more: some are left.
func Fit[M codec.Message](c Call, all []M, limit int) (page []M, more bool) {
	return paging.Cut(all, limit, paging.BytesMax, func(m M) int { return c.Size(m) })
}

// Terms are those that the tasks of a domain are accepted under, but for their traces.
func Terms(c *catalog.Catalog, domain string, now time.Time) validate.Terms {
	return validate.Terms{
		Domain: domain, Now: now,
		Type:     func(name string) *yardv1.TaskType { return catalog.Types.Of(c, domain, name) },
		Tasklist: func(name string) *yardv1.Tasklist { return catalog.Tasklists.Of(c, domain, name) },
	}
}

// Later is the later of two instants.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// NoDomain refuses what is asked of a domain that does not exist, and says what to do about it.
func NoDomain(path, name string) error {
	return fault.At(fault.NotFound, path, "there is no domain %q: create it with %s, or `yard domain put %s`", name, topology.Admin("domains.put"), name)
}

// StorageFull refuses tasks that the log has no space for. They do not wait for it, which takes a person or the end of a retention.
func StorageFull() *fault.Error {
	return fault.New(fault.ResourceExhausted,
		"the log's storage is full: nothing was stored; give JetStream more room, or wait until finished tasks are forgotten, and repeat the request").After(storageRetryAfter)
}
