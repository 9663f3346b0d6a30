package provision_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// R6: all processes read one secret, no matter who of them made it.
func TestTheTokenSecretIsMadeOnce(t *testing.T) {
	t.Parallel()
	server := natskit.Run(t)
	var logs bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	secrets := make([][ids.TokenSecretBytes]byte, 4)
	var all sync.WaitGroup
	for i := range secrets {
		js, err := jetstream.New(server.Connect(t))
		testkit.NoError(t, err)
		all.Go(func() {
			err := provision.Apply(t.Context(), js, topology.Partitioning{History: 1, Matching: 1}, provision.Options{Log: log})
			if err == nil {
				secrets[i], err = readSecret(t.Context(), js)
			}
			testkit.Check(t, err)
		})
	}
	all.Wait()
	for _, s := range secrets {
		if s != secrets[0] || s == [ids.TokenSecretBytes]byte{} {
			t.Fatal("the secrets differ, or there is none")
		}
	}
	for _, form := range []string{"%s", "%x", "%v"} {
		if bytes.Contains(logs.Bytes(), fmt.Appendf(nil, form, secrets[0][:])) {
			t.Error("the secret was logged")
		}
	}
}

func TestAMissingOrBrokenTokenSecretIsAnError(t *testing.T) {
	t.Parallel()
	js := cluster(t)
	kv := configBucket(t, js)
	testkit.NoError(t, testkit.Err(kv.Put(t.Context(), topology.TokenSecretKey, []byte("short"))))
	if _, err := provision.TokenSecret(t.Context(), kv); err == nil {
		t.Error("a secret of 5 bytes was read")
	}
	testkit.NoError(t, kv.Delete(t.Context(), topology.TokenSecretKey))
	if _, err := provision.TokenSecret(t.Context(), kv); !errors.Is(err, provision.ErrNotProvisioned) {
		t.Errorf("without a secret: %v", err)
	}
}

func readSecret(ctx context.Context, js jetstream.JetStream) (secret [ids.TokenSecretBytes]byte, err error) {
	kv, err := js.KeyValue(ctx, topology.ConfigBucket)
	if err != nil {
		return secret, err
	}
	return provision.TokenSecret(ctx, kv)
}
