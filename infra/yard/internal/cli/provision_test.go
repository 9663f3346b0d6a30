package cli_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// A server that is not there, says nothing, or has no JetStream is waited for no longer than --timeout says.
func TestProvisionEndsInTime(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() }) // it is of no use any more
	testkit.NoError(t, closed.Close())
	for what, url := range map[string]string{"silent": "nats://" + silent.Addr().String(), "closed": "nats://" + closed.Addr().String(), "without JetStream": withoutJetStream(t)} {
		for _, keep := range []string{"", "--keep"} {
			t.Run(what+keep, func(t *testing.T) {
				t.Parallel()
				args := []string{"provision", "--url", url, "--timeout", "300ms"}
				if keep != "" {
					args = append(args, keep)
				}
				var out, errs bytes.Buffer
				ended := make(chan int, 1)
				go func() {
					ended <- cli.Run(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
				}()
				select {
				case code := <-ended:
					if code != cli.ExitFailed || !strings.Contains(errs.String(), "deadline") {
						t.Errorf("exit %d: %s", code, errs.String())
					}
				case <-time.After(within):
					t.Error("it goes on")
				}
			})
		}
	}
}

// withoutJetStream is the URL of such a server.
func withoutJetStream(t *testing.T) string {
	t.Helper()
	return natskit.Run(t, natskit.WithOptions(func(o *server.Options) { o.JetStream = false })).URL
}
