package validate

import (
	"cmp"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Kind is what requests name. It is also what people and the command line call it.
type Kind string

// The kinds.
const (
	Domain   Kind = "domain"
	Tasklist Kind = "tasklist"
	Type     Kind = "type"
	Group    Kind = "group"
	Limit    Kind = "limit"
)

func (k Kind) name(path, s string) error {
	switch k {
	case Domain:
		return domainName(path, s)
	case Type, Group:
		return typeName(path, s)
	}
	return name(path, s)
}

// Get checks a request for the settings of one.
func (k Kind) Get(req interface{ GetName() string }) error { return k.name("/name", req.GetName()) }

// Delete checks the deletion of the settings of one.
func (k Kind) Delete(req interface {
	GetName() string
	GetRevision() int64
},
) error {
	return firstError(k.Get(req), revision("/revision", req.GetRevision()))
}

// List checks what a list takes, whose cursor is a name, and fills in its default limit.
func (k Kind) List(limit *int32, cursor string) error {
	*limit = cmp.Or(*limit, ListMax)
	if cursor != "" && k.name("/cursor", cursor) != nil {
		return notNext()
	}
	return between("/limit", *limit, 1, ListMax)
}

// Pause checks a pause or a drain.
func (k Kind) Pause(req *yardv1.PauseRequest) error {
	return firstError(k.Get(req), optional("/for_ms", req.ForMs, ms(PauseMin), ms(AheadMax)), text("/reason", req.Reason, ReasonBytesMax), text("/by", req.By, PauserBytesMax))
}
