package provision

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Difference is how one stream, or the one behind a bucket, is not as Apply would make it.
type Difference struct {
	Stream string
	// Missing: it does not exist.
	Missing bool
	// Settings are the names of those that differ. Fixed says that one differs that Apply cannot change.
	Settings []string
	Fixed    string
}

// Compare tells what Apply would change, and changes nothing. A stream that does not answer is in unknown, with the error. The cluster has as many
// replicas as its config bucket.
func Compare(ctx context.Context, js jetstream.JetStream, n topology.Partitioning) (all []Difference, unknown []error, err error) {
	replicas, err := replicasOf(ctx, js)
	if err != nil {
		return nil, nil, err
	}
	for _, want := range configs(n, replicas) {
		stream, err := js.Stream(ctx, want.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			all = append(all, Difference{Stream: want.Name, Missing: true})
			continue
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case err != nil:
			unknown = append(unknown, fmt.Errorf("the settings of %s: %w", want.Name, err))
			continue
		}
		_, changes, err := correct(stream.CachedInfo().Config, want)
		switch {
		case err != nil:
			all = append(all, Difference{Stream: want.Name, Fixed: err.Error()})
		case len(changes) > 0:
			all = append(all, Difference{Stream: want.Name, Settings: changes})
		}
	}
	return all, unknown, nil
}
