package validate

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// ListKeys checks a keys.list, and returns what the owners of partitions are asked.
func ListKeys(req *yardv1.ListKeysRequest, domain string) (*rpcv1.ListKeysRequest, error) {
	if err := optional("/limit", req.Limit, 1, ListMax); err != nil {
		return nil, err
	}
	ask := &rpcv1.ListKeysRequest{Domain: domain, Blocked: req.Blocked, Waiting: req.Waiting, Limit: cmp.Or(req.Limit, ListDefault)}
	if req.Cursor == "" {
		return ask, nil
	}
	since, key, _ := strings.Cut(req.Cursor, ".")
	at, err := strconv.ParseInt(since, 10, 64)
	if err != nil || key == "" || orderKey("", key) != nil {
		return nil, notNext()
	}
	ask.AfterSinceMs, ask.AfterKey = at, key
	return ask, nil
}

// KeysCursor is where a list goes on behind a key.
func KeysCursor(k *yardv1.OrderKey) string {
	return strconv.FormatInt(k.SinceMs, 10) + "." + k.OrderKey
}

// GetKey checks a keys.get.
func GetKey(req *yardv1.GetKeyRequest) error { return requiredOrderKey(req.OrderKey) }

func requiredOrderKey(key string) error {
	if key == "" {
		return invalid("/order_key", "is missing")
	}
	return orderKey("/order_key", key)
}

// KeyCommand is what an operator wants of the first task of an order key.
type KeyCommand struct {
	OrderKey string
	// Head is that task, if Named: else it is looked up, and set then.
	Head    ids.TaskID
	Named   bool
	event   *logv1.Event
	request ids.RequestID
}

// Outcome is the command as the log takes it.
func (k *KeyCommand) Outcome() Outcome {
	k.event.TaskId = k.Head[:]
	k.event.Update.Request = entry(append(k.request[:], k.Head[:]...))
	return Outcome{ID: k.Head, Event: k.event}
}

// UnblockKey checks a keys.unblock.
func UnblockKey(req *yardv1.UnblockKeyRequest, domain string, form Form) (*KeyCommand, error) {
	if err := retry("/retry", req.Retry); err != nil {
		return nil, err
	}
	event := &logv1.Event{Kind: logv1.EventKind_EVENT_KIND_UNBLOCKED, Domain: domain, Update: &logv1.Update{}}
	if req.Retry != nil {
		event.Update.Policy = partOf(req.Retry)
	}
	return keyCommand(req, event, "unblocked", form)
}

// SkipKey checks a keys.skip.
func SkipKey(req *yardv1.SkipKeyRequest, domain string, form Form) (*KeyCommand, error) {
	event := &logv1.Event{Kind: logv1.EventKind_EVENT_KIND_SKIPPED, Domain: domain, Update: &logv1.Update{}, CancelRunning: req.CancelRunning}
	return keyCommand(req, event, "skipped", form)
}

func keyCommand(req interface {
	GetOrderKey() string
	GetTaskId() string
	GetReason() string
	GetBy() string
	GetRequestId() string
	GetTries() int32
}, event *logv1.Event, what string, form Form,
) (*KeyCommand, error) {
	k := &KeyCommand{OrderKey: req.GetOrderKey(), event: event}
	if err := firstError(requiredOrderKey(k.OrderKey), text("/reason", req.GetReason(), PurgeReasonBytesMax), text("/by", req.GetBy(), PauserBytesMax)); err != nil {
		return nil, err
	}
	if id := req.GetTaskId(); id != "" {
		var err error
		if k.Head, err = ids.ParseTaskID(id); err != nil {
			return nil, invalid("/task_id", "%v", err)
		}
		k.Named = true
	}
	event.OrderKey, event.Message = k.OrderKey, ReasonOf(what, req.GetBy(), req.GetReason())
	var err error
	k.request, err = requestOf(req, form)
	return k, err
}
