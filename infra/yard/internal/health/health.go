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

// askQuiet is how long no further process must have answered until all are taken to have, wholeQuiet if those that answered are a whole system.
const askQuiet, wholeQuiet = 300 * time.Millisecond, 100 * time.Millisecond

// Services are those that a whole system has.
func Services() []string { return []string{"frontend", "matching", "history", "timer"} }

// Ask asks every process of the system for its health, and returns the answers by service and node.
func Ask(ctx context.Context, nc *nats.Conn) ([]process.Answer, error) {
	return ask(ctx, nc, func([]process.Answer) time.Duration { return askQuiet })
}

// AskBriefly is Ask for a page that somebody waits for. Once each partition is served, it waits for a shorter time: a process that serves nothing may be
// missing.
func AskBriefly(ctx context.Context, nc *nats.Conn) ([]process.Answer, error) {
	return ask(ctx, nc, func(so []process.Answer) time.Duration {
		if Whole(so) {
			return wholeQuiet
		}
		return askQuiet
	})
}

// Whole reports whether answers are of a whole system: a frontend that is ready, and owners of all partitions and shards.
func Whole(answers []process.Answer) bool {
	served := map[string]map[int]bool{}
	partitions, frontend := map[string]int{}, false
	for _, a := range answers {
		if frontend = frontend || a.Service == "frontend" && a.Ready; served[a.Service] == nil {
			served[a.Service] = map[int]bool{}
		}
		partitions[a.Service] = max(partitions[a.Service], a.Partitions)
		for _, p := range a.Serves {
			served[a.Service][p.Partition] = true
		}
	}
	for _, name := range Services() {
		if n := partitions[name]; name != "frontend" && (n == 0 || len(served[name]) < n) {
			return false
		}
	}
	return frontend
}

// ask waits for each further answer as long as quiet says of those that have come.
func ask(ctx context.Context, nc *nats.Conn, quiet func(so []process.Answer) time.Duration) ([]process.Answer, error) {
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
		msg, err := nextMsg(ctx, sub, quiet(answers))
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

func nextMsg(ctx context.Context, sub *nats.Subscription, within time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}
