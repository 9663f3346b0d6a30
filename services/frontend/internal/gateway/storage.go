package gateway

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// refuseStorageFull answers s: no partition has room, one that is set aside included. It does not wait for
// room, which takes a person or the end of a retention.
func (g *Gateway) refuseStorageFull(s *submission) {
	g.metrics.submitsRefused.storage.Add(1)
	s.refuse(errStorageFull())
}

func errStorageFull() *fault.Error {
	return fault.New(fault.ResourceExhausted,
		"the log's storage is full: nothing was stored; give JetStream more room, or wait until finished tasks are forgotten, and repeat the request").After(storageRetryAfter)
}

// StorageFull is a warning where partitions accept no tasks for lack of space.
func (g *Gateway) StorageFull() error {
	g.appender.mu.Lock()
	defer g.appender.mu.Unlock()
	if n := g.appender.balancer.Full(time.Now()); n > 0 {
		return fmt.Errorf("the log's storage is full in %d of %d partitions: submits are refused there", n, g.Partitioning.History)
	}
	return nil
}
