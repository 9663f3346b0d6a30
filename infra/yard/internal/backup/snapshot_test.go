package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// A copy whose connection was interrupted may lack chunks, and one that the server ends has not all of them.
func TestACopyWithoutAllChunksIsNone(t *testing.T) {
	srv := natskit.Run(t, natskit.WithOptions(func(o *server.Options) { o.JetStream = false }))
	for what, c := range map[string]struct {
		between func(t *testing.T, client *nats.Conn)
		last    nats.Header
		want    string
	}{
		"whole":       {func(*testing.T, *nats.Conn) {}, nats.Header{"Status": {"204"}}, ""},
		"interrupted": {interrupt, nats.Header{"Status": {"204"}}, errInterrupted.Error()},
		"ended":       {func(*testing.T, *nats.Conn) {}, nats.Header{"Status": {"408"}, "Description": {"No Flow Response"}}, "408 No Flow Response"},
	} {
		t.Run(what, func(t *testing.T) {
			client, fake := srv.Connect(t), srv.Connect(t)
			sub, err := fake.SubscribeSync(snapshotCall + "S")
			testkit.NoError(t, err)
			testkit.NoError(t, fake.Flush())
			var copied bytes.Buffer
			ended := make(chan error, 1)
			go func() {
				_, _, err := snapshot(t.Context(), client, "S", &copied)
				ended <- err
			}()
			asked, err := sub.NextMsg(time.Minute)
			testkit.NoError(t, err)
			var request struct {
				DeliverSubject string `json:"deliver_subject"`
			}
			testkit.NoError(t, json.Unmarshal(asked.Data, &request))
			testkit.NoError(t, asked.Respond([]byte(`{"config":{},"state":{}}`)))
			testkit.NoError(t, testkit.Err(fake.Request(request.DeliverSubject, []byte("chunk"), time.Minute)))
			c.between(t, client)
			// Interest may come back a moment after the connection.
			testkit.Eventually(t, time.Minute, func() error {
				testkit.NoError(t, fake.PublishMsg(&nats.Msg{Subject: request.DeliverSubject, Header: c.last}))
				select {
				case err = <-ended:
					return nil
				case <-time.After(10 * time.Millisecond):
					return errors.New("it goes on")
				}
			})
			if c.want == "" && (err != nil || copied.String() != "chunk") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, copied %q", err, copied.String())
			}
		})
	}
}

// interrupt has a client reconnect.
func interrupt(t *testing.T, client *nats.Conn) {
	t.Helper()
	testkit.NoError(t, client.ForceReconnect())
	testkit.Eventually(t, time.Minute, func() error {
		if client.Stats().Reconnects == 0 {
			return errors.New("it has not reconnected yet")
		}
		return nil
	})
}
