package access_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/access"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// testWithin bounds a wait.
const testWithin = 10 * time.Second

// TestALoginThatIsSlowKeepsNoOtherWaiting: it is made once for all who need it, and one that failed is made again.
func TestALoginThatIsSlowKeepsNoOtherWaiting(t *testing.T) {
	slow, tries := make(chan struct{}), atomic.Int32{}
	a := access.New(access.Logins{
		Of: func(_, domain string) (string, error) { return domain, nil },
		Connect: func(name string) (*nats.Conn, error) {
			if tries.Add(1); name == "slow" {
				<-slow
			}
			return nil, errors.New("no server")
		},
	})
	defer a.Close()
	ended := make(chan error, 8)
	for range cap(ended) {
		go func() {
			_, err := a.Client(login.Viewer, "slow")
			ended <- err
		}()
	}
	testkit.Eventually(t, testWithin, func() error {
		if tries.Load() == 0 {
			return errors.New("the slow login is not asked for")
		}
		return nil
	})
	_, err := a.Client(login.Viewer, "quick")
	testkit.Equal(t, "the other login", fault.CodeOf(err), fault.Unavailable)
	close(slow)
	for range cap(ended) {
		testkit.Equal(t, "the slow login", fault.CodeOf(<-ended), fault.Unavailable)
	}
	before := tries.Load()
	_, err = a.Client(login.Viewer, "quick")
	testkit.Equal(t, "the other login again", fault.CodeOf(err), fault.Unavailable)
	testkit.Equal(t, "tries", tries.Load(), before+1)
}
