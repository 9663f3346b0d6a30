package catalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// ErrVersionChanged: somebody else has raised the version meanwhile.
var ErrVersionChanged = errors.New("the cluster's log version was changed meanwhile")

// Version is the log version that a cluster writes, as the config bucket has it.
type Version struct {
	Number   uint32
	revision uint64
}

// GetVersion reads the cluster's log version from the bucket itself.
func GetVersion(ctx context.Context, kv Bucket) (Version, error) {
	e, err := kv.Get(ctx, topology.VersionKey)
	if err != nil {
		return Version{}, fmt.Errorf("read the cluster's log version: %w", err)
	}
	n, err := parseVersion(e.Value())
	if err != nil {
		return Version{}, fmt.Errorf("read the cluster's log version: %w", err)
	}
	return Version{Number: n, revision: e.Revision()}, nil
}

// CreateVersion writes the log version of a cluster that is being created. One that
// is there stays.
func CreateVersion(ctx context.Context, kv Bucket, v uint32) error {
	_, err := kv.Create(ctx, topology.VersionKey, formatVersion(v))
	if err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return fmt.Errorf("write the cluster's log version: %w", err)
	}
	return nil
}

// RaiseVersion writes a higher log version where the cluster's is still the one that
// was read, or returns ErrVersionChanged.
func RaiseVersion(ctx context.Context, kv Bucket, read Version, to uint32) error {
	if to <= read.Number {
		return fmt.Errorf("raise the cluster's log version from %d to %d: it never goes down", read.Number, to)
	}
	_, err := kv.Update(ctx, topology.VersionKey, formatVersion(to), read.revision)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return ErrVersionChanged
	}
	if err != nil {
		return fmt.Errorf("raise the cluster's log version: %w", err)
	}
	return nil
}

func formatVersion(v uint32) []byte { return strconv.AppendUint(nil, uint64(v), 10) }

func parseVersion(b []byte) (uint32, error) {
	v, err := strconv.ParseUint(string(b), 10, 32)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("%q is no log version", b)
	}
	return uint32(v), nil
}
