package api_test

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// cut dials connections, which it closes at once while it is cut.
type cut struct {
	mu   sync.Mutex
	away bool
	last net.Conn
}

// Dial implements nats.CustomDialer.
func (c *cut) Dial(network, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errors.New("the server is away")
	}
	conn, err := net.Dial(network, address)
	c.last = conn
	return conn, err
}

// set cuts the connection, or lets it come back.
func (c *cut) set(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away = away; away {
		_ = c.last.Close() // the client closes it, too
	}
}

// TestPollsThatAreGivenUpWithoutAConnectionAreSentWithTheNextOne: their workers would wait for nothing.
func TestPollsThatAreGivenUpWithoutAConnectionAreSentWithTheNextOne(t *testing.T) {
	t.Parallel()
	l, c := newLine(t), &cut{}
	nc := l.server.Connect(t, nats.SetCustomDialer(c), nats.ReconnectBufSize(-1))
	port := l.portOn(nc, 1)
	n := l.serveOn(port)
	l.served(t)
	frontend := l.nc.NewInbox()
	hears := l.listen(frontend)
	l.publish(pollSubject(1), &rpcv1.Poll{
		Domain: domain, Tasklist: tasklist, MaxTasks: 1, ReplyTo: l.nc.NewInbox(), AnsweredTo: frontend, Id: 100, WaitMs: 60_000,
	})
	var poll uint64
	n.saw(t, func(in *match.Inputs) error {
		if len(in.Polls) == 0 {
			return errors.New("the poll has not come")
		}
		poll = in.Polls[0].ID
		return nil
	})
	c.set(true)
	testkit.Eventually(t, patience, func() error {
		if s := nc.Status(); s != nats.RECONNECTING {
			return fmt.Errorf("the connection is %v", s)
		}
		return nil
	})
	port.Moves([]tree.Move{{Poll: poll, Partition: 5}})
	c.set(false)
	m, err := hears.NextMsg(patience)
	testkit.NoError(t, err)
	if news := readNews(t, m); len(news.Moved) != 1 || news.Moved[0].Id != 100 {
		t.Errorf("the frontend heard %v", news)
	}
}
