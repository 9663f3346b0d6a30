// Package health asks the processes of a system how they are.
//
// Owns: the question, and when no further answer is waited for. Never does: decide what an answer means. On failure: what has answered so far is returned with
// the error.
package health

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// askQuiet is how long no further process must have answered until all are taken to have.
const askQuiet = 300 * time.Millisecond

// Services are those that a whole system has.
func Services() []string { return []string{"frontend", "matching", "history", "timer"} }

// Ask asks every process of the system for its health, and returns the answers by service and node.
func Ask(ctx context.Context, nc *nats.Conn) ([]process.Answer, error) {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // its connection may be closed by now
	for _, name := range Services() {
		if err := nc.PublishRequest(topology.Health(name), inbox, nil); err != nil {
			return nil, err
		}
	}
	var answers []process.Answer
	for {
		msg, err := nextMsg(ctx, sub)
		if err != nil {
			break // no one else answers
		}
		var h process.Answer
		if json.Unmarshal(msg.Data, &h) == nil && h.Service != "" { // else: "no responders"
			answers = append(answers, h)
		}
	}
	slices.SortFunc(answers, func(x, y process.Answer) int { return strings.Compare(x.Service+x.Node, y.Service+y.Node) })
	return answers, ctx.Err()
}

func nextMsg(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, askQuiet)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}
