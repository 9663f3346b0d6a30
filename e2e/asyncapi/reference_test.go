package asyncapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// within bounds everything that is waited for.
const within = 30 * time.Second

// document is the part of asyncapi.json that is compared.
type document struct {
	Channels map[string]struct {
		Address  string                     `json:"address"`
		Messages map[string]json.RawMessage `json:"messages"`
	} `json:"channels"`
	Components struct {
		Messages map[string]struct {
			Examples []struct {
				Payload json.RawMessage `json:"payload"`
			} `json:"examples"`
		} `json:"messages"`
	} `json:"components"`
}

func TestReferenceTellsOfTheRunningAPI(t *testing.T) {
	doc := readDocument(t)
	nc := startStack(t)

	want := map[string]string{} // subject → request message
	for _, channel := range doc.Channels {
		for message := range channel.Messages {
			want[strings.NewReplacer("{domain}", "*", "{tasklist}", "*").Replace(channel.Address)] = "yard.v1." + message
		}
	}
	if got := served(t, nc); !maps.Equal(got, want) {
		t.Errorf("the API serves\n%v\nthe reference tells of\n%v", got, want)
	}
}

// TestExamplesAreUnderstood sends the example of every endpoint. Most name a task
// that does not exist; what must not come back is that the request is malformed.
func TestExamplesAreUnderstood(t *testing.T) {
	testkit.Slow(t, "sends a poll that waits for half a minute")
	doc := readDocument(t)
	nc := startStack(t)
	if code := ask(t, nc, "yard.v1.admin.domains.put", []byte(`{"domain":{"name":"shop"}}`)); code != "" {
		t.Fatal(code)
	}
	// Each endpoint after a submit, so that no poll need wait for a task.
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(doc.Channels)) {
		ids = append(ids, "tasks_submit", id)
	}
	for _, id := range ids {
		channel := doc.Channels[id]
		subject := strings.NewReplacer("{domain}", "shop", "{tasklist}", "mail").Replace(channel.Address)
		for message := range channel.Messages {
			for _, example := range doc.Components.Messages[message].Examples {
				code := ask(t, nc, subject, example.Payload)
				switch code {
				case "", fault.NotFound:
				case fault.FailedPrecondition: // the domain to be deleted has a task
					if channel.Address != "yard.v1.admin.domains.delete" {
						t.Errorf("%s refuses its own example: %s", subject, code)
					}
				case fault.Unavailable: // who has just begun to listen does not know that a worker is not there
					if !strings.HasPrefix(subject, "yard.v1.shop.workers.") {
						t.Errorf("%s refuses its own example: %s", subject, code)
					}
				default:
					t.Errorf("%s refuses its own example: %s", subject, code)
				}
				if drained, ok := strings.CutSuffix(subject, ".drain"); ok && code == "" && !strings.HasSuffix(drained, ".workers") { // or the submits that follow are refused
					endDrain(t, nc, drained+".resume", example.Payload)
				}
			}
		}
	}
}

// endDrain ends what a request has drained.
func endDrain(t *testing.T, nc *nats.Conn, subject string, drain []byte) {
	t.Helper()
	var req struct {
		Name string `json:"name"`
	}
	testkit.NoError(t, json.Unmarshal(drain, &req))
	testkit.Equal(t, subject, ask(t, nc, subject, fmt.Appendf(nil, `{"name":%q,"drain":true}`, req.Name)), "")
}

// readDocument reads the channels that frontends serve.
func readDocument(t *testing.T) document {
	t.Helper()
	raw, err := os.ReadFile("../../contracts/asyncapi.json")
	testkit.NoError(t, err)
	var doc document
	testkit.NoError(t, json.Unmarshal(raw, &doc))
	for id, channel := range doc.Channels {
		if reply := channel.Address == ""; reply || strings.Contains(channel.Address, ".events.") { // no frontend listens there
			delete(doc.Channels, id)
		}
	}
	return doc
}

// startStack starts a system for one test and connects as a client would.
func startStack(t *testing.T) *nats.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{Tables: stack.TablesMemory})
	testkit.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
		defer cancel()
		testkit.Check(t, s.Close(ctx))
	})
	nc, err := nats.Connect(s.URL, nats.Timeout(within))
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// served is the request message of every public subject, as frontends tell on
// micro's INFO. The process has a second service of that name, for its health.
func served(t *testing.T, nc *nats.Conn) map[string]string {
	t.Helper()
	subject, err := micro.ControlSubject(micro.InfoVerb, "yard-frontend", "")
	testkit.NoError(t, err)
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	testkit.NoError(t, err)
	testkit.NoError(t, nc.PublishRequest(subject, inbox, nil))
	for {
		answer, err := answers.NextMsg(within)
		testkit.NoError(t, err)
		var info micro.Info
		testkit.NoError(t, json.Unmarshal(answer.Data, &info))
		subjects := map[string]string{}
		for _, e := range info.Endpoints {
			if e.Metadata["request"] != "" {
				subjects[e.Subject] = e.Metadata["request"]
			}
		}
		if len(subjects) > 0 {
			return subjects
		}
	}
}

// ask sends a request and returns the code of its answer, "" for none.
func ask(t *testing.T, nc *nats.Conn, subject string, body []byte) fault.Code {
	t.Helper()
	answer, err := nc.Request(subject, body, 2*within)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	return fault.Code(answer.Header.Get(fault.HeaderCode))
}
