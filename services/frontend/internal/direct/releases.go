package direct

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
)

// Releases are the events that hand attempts of a domain back.
func Releases(domain string, attempts []poll.Attempt) []validate.Outcome {
	all := make([]validate.Outcome, len(attempts))
	for i, a := range attempts {
		all[i] = validate.Outcome{ID: a.ID, Event: &logv1.Event{
			Kind: logv1.EventKind_EVENT_KIND_RELEASED, TaskId: a.ID[:], Domain: domain,
			Position: uint64(a.Token.Position), Version: a.Token.Version, Nonce: a.Token.Nonce, Message: "the poller went away",
		}}
	}
	return all
}
