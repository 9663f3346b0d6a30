package gateway

import (
	"time"
)

// The numbers of the rooms that their effects show.
const (
	openKnownFor      = 10 * time.Second       // a batch is taken for open
	cancelsInFlight   = 4                      // batches of cancels of a domain
	handBackWithin    = 30 * time.Second       // handing back is tried
	handBackAgain     = time.Second            // until it is tried again
	partTasksMax      = 400                    // tasks with unique keys in an atomic batch
	clockSkewMax      = 24 * time.Hour         // the date of a task's id is ahead
	refusedPause      = 200 * time.Millisecond // until refused events are sent again
	storageRetryAfter = time.Second
	topWait           = time.Second // for shards
	topTasksMax       = 100         // users of slots that are searched for
	adminMax          = 64          // administrative requests under way
	anyTime           = 1           // an update may have copies since then, Unix ms
	noSuchTask        = "there is no such task, or it finished long ago"
)
