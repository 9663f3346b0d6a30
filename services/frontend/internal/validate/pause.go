package validate

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Kind is what is paused, drained and purged by its name. It is also what people and the command line call it.
type Kind string

// The kinds.
const (
	Tasklist Kind = "tasklist"
	Type     Kind = "type"
	Group    Kind = "group"
)

func (k Kind) name(s string) error {
	if k == Tasklist {
		return name("/name", s)
	}
	return typeName("/name", s)
}

// Pause checks a pause or a drain.
func (k Kind) Pause(req *yardv1.PauseRequest) error {
	return firstError(k.name(req.Name), optional("/for_ms", req.ForMs, ms(PauseMin), ms(AheadMax)), text("/reason", req.Reason, ReasonBytesMax), text("/by", req.By, PauserBytesMax))
}

// Resume checks the end of a pause or a drain.
func (k Kind) Resume(req *yardv1.ResumeRequest) error { return k.name(req.Name) }
