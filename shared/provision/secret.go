package provision

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// TokenSecret reads the secret of the cluster's attempt tokens from the config
// bucket. It is the same in every process for as long as the cluster lives: who has
// another one refuses every outcome. The caller neither logs nor serves it.
func TokenSecret(ctx context.Context, config jetstream.KeyValue) (secret [ids.TokenSecretBytes]byte, err error) {
	entry, err := config.Get(ctx, topology.TokenSecretKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		err = ErrNotProvisioned
	}
	if err != nil {
		return secret, fmt.Errorf("read the token secret: %w", err)
	}
	if n := len(entry.Value()); n != len(secret) {
		return secret, fmt.Errorf("read the token secret: it has %d bytes, want %d", n, len(secret))
	}
	copy(secret[:], entry.Value())
	return secret, nil
}

// secret makes the token secret where there is none. Of several services that do so
// at once, one creates it.
func (a *applier) secret(ctx context.Context) error {
	var secret [ids.TokenSecretBytes]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return err
	}
	_, err := a.config.Create(ctx, topology.TokenSecretKey, secret[:])
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	return err
}
