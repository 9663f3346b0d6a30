package fuzz_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	domain = "fuzzed"
	// mutations is how many each endpoint gets in each encoding; YARD_FUZZ in the environment says otherwise.
	mutations = 75
	// atOnce is how many requests are under way at once.
	atOnce = 4
	// within is how long a request may take: longer than any wait that it may ask for.
	within = 100 * time.Second
)

// endpoint is one of the AsyncAPI document.
type endpoint struct {
	subject           string
	request, response protoreflect.MessageType
	// good are requests that are not refused for their form, as JSON.
	good   [][]byte
	fields []string
}

type document struct {
	Channels map[string]struct {
		Address  string
		Messages map[string]ref
	}
	Operations map[string]struct {
		Action  string
		Channel ref
		Reply   struct{ Messages []ref }
	}
	Components struct {
		Messages map[string]struct {
			Name     string
			Examples []struct{ Payload json.RawMessage }
		}
	}
}

type ref struct {
	Ref string `json:"$ref"`
}

// endpoints reads all of them.
func endpoints(t *testing.T) (all []endpoint) {
	t.Helper()
	data, err := os.ReadFile("../../contracts/asyncapi.json")
	testkit.NoError(t, err)
	var doc document
	testkit.NoError(t, json.Unmarshal(data, &doc))
	for name, op := range doc.Operations {
		if op.Action == "send" { // the engine publishes there
			continue
		}
		channel := doc.Channels[path.Base(op.Channel.Ref)]
		e := endpoint{subject: strings.NewReplacer("{domain}", domain, "{tasklist}", "mail").Replace(channel.Address)}
		e.response = messageType(t, path.Base(op.Reply.Messages[0].Ref))
		for request := range channel.Messages { // one
			e.request = messageType(t, request)
		}
		for _, example := range doc.Components.Messages[string(e.request.Descriptor().Name())].Examples {
			e.good = append(e.good, patient.ReplaceAll(example.Payload))
		}
		if len(e.good) == 0 {
			t.Fatalf("%s has no example", name)
		}
		e.fields = fieldsOf(e.request.Descriptor(), map[string]bool{})
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b endpoint) int { return cmp.Compare(a.subject, b.subject) })
	// Before there is a batch no one waits for it, for 30 s where that is not said.
	slices.SortStableFunc(all, func(a, b endpoint) int {
		if waits := strings.HasSuffix(a.subject, ".batches.wait"); waits != strings.HasSuffix(b.subject, ".batches.wait") {
			return map[bool]int{true: -1, false: 1}[waits]
		}
		return 0
	})
	return all
}

// patient makes requests ask for no long wait.
var patient = replacer{`"wait_ms":30000`, `"wait_ms":1`}

type replacer struct{ from, to string }

func (r replacer) ReplaceAll(b []byte) []byte {
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		panic(err)
	}
	return bytes.ReplaceAll(out.Bytes(), []byte(r.from), []byte(r.to))
}

func messageType(t *testing.T, name string) protoreflect.MessageType {
	t.Helper()
	m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("yard.v1." + name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// fieldsOf are the names of all fields of a message, those of its parts too.
func fieldsOf(d protoreflect.MessageDescriptor, seen map[string]bool) (names []string) {
	if seen[string(d.FullName())] {
		return nil
	}
	seen[string(d.FullName())] = true
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		names = append(names, string(f.Name()))
		if f.Message() != nil {
			names = append(names, fieldsOf(f.Message(), seen)...)
		}
	}
	return names
}

func message(m protoreflect.MessageType) codec.Message {
	return m.New().Interface().(codec.Message)
}

// fuzzer sends requests and checks their answers.
type fuzzer struct {
	t  *testing.T
	nc *nats.Conn

	mu       sync.Mutex
	accepted map[string]bool // ids of tasks
	codes    map[fault.Code]int
	failed   int
}

// offence tells of an answer that must not be, the first ones of them.
func (f *fuzzer) offence(e *endpoint, ct codec.ContentType, body []byte, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed++; f.failed <= 20 {
		f.t.Errorf("%s, %s, %.600q: %s", e.subject, ct, body, fmt.Sprintf(format, args...))
	}
}

func (f *fuzzer) try(e *endpoint, ct codec.ContentType, body []byte) {
	ctx, cancel := context.WithTimeout(f.t.Context(), within)
	defer cancel()
	answer, err := f.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: e.subject, Data: body, Header: nats.Header{codec.HeaderContentType: {string(ct)}}})
	if err != nil {
		f.offence(e, ct, body, "no answer: %v", err)
		return
	}
	if most := f.nc.MaxPayload(); int64(len(answer.Data)) > most {
		f.offence(e, ct, body, "an answer of %d bytes", len(answer.Data))
	}
	code := fault.Code(answer.Header.Get(fault.HeaderCode))
	f.mu.Lock()
	f.codes[code]++
	f.mu.Unlock()
	if code != "" {
		var said struct {
			Code    fault.Code
			Message string
		}
		if err := json.Unmarshal(answer.Data, &said); err != nil || said.Code != code || said.Message == "" || !code.Known() || code == fault.Internal {
			f.offence(e, ct, body, "answered %s: %s (%v)", code, answer.Data, err)
		}
		return
	}
	resp := message(e.response)
	if err := codec.Unmarshal(ct, answer.Data, resp); err != nil {
		f.offence(e, ct, body, "a response that cannot be read: %v: %.200q", err, answer.Data)
	}
	if s, ok := resp.(*yardv1.SubmitResponse); ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, r := range s.Results {
			f.accepted[r.TaskId] = true
		}
	}
}

// TestEveryAnswerHasACodeAndABody sends the mutations, and then compares what is stored with what was accepted.
func TestEveryAnswerHasACodeAndABody(t *testing.T) {
	n := testkit.Rounds(t, mutations, 3)
	if s := os.Getenv("YARD_FUZZ"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		testkit.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{Tables: stack.TablesMemory})
	testkit.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		testkit.Check(t, s.Close(ctx))
	})
	nc, err := nats.Connect(s.URL)
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	client, err := yard.NewClient(nc, domain)
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(client.Admin().PutDomain(ctx, yard.Domain{Name: domain})))
	f := &fuzzer{t: t, nc: nc, accepted: map[string]bool{}, codes: map[fault.Code]int{}}
	f.all(n)
	t.Logf("answers by code: %v; %d tasks were accepted", f.codes, len(f.accepted))
	if f.codes[""] < n || f.codes[fault.InvalidArgument] < n || len(f.accepted) < n/4 {
		t.Error("too little was accepted, or refused, to prove anything")
	}
	f.compare(client)
}

// all sends n mutations to each endpoint, in each encoding.
func (f *fuzzer) all(n int) {
	seed := testkit.Seed(f.t)
	places := make(chan struct{}, atOnce)
	var flying sync.WaitGroup
	all := endpoints(f.t)
	for _, e := range all {
		if strings.HasSuffix(e.subject, ".tasks.submit") { // what was drained by chance accepts nothing
			flying.Wait()
			f.resume(all)
		}
		d := dice{rand.New(rand.NewPCG(seed.Uint64(), 0))}
		var encoded [][]byte
		for _, good := range e.good {
			m := message(e.request)
			if err := codec.UnmarshalRequest(codec.JSON, good, m); err != nil {
				f.t.Fatalf("%s: %s: %v", e.subject, good, err)
			}
			data, err := m.MarshalVT()
			testkit.NoError(f.t, err)
			encoded = append(encoded, data)
		}
		for i := range 2 * n {
			ct, body := codec.JSON, []byte(nil)
			if i%2 == 0 {
				body = d.json(pick(d, e.good...), e.fields)
			} else {
				ct, body = codec.Protobuf, d.protobuf(pick(d, encoded...))
			}
			body = body[:min(len(body), int(f.nc.MaxPayload())-1024)] // with its header
			places <- struct{}{}
			flying.Go(func() {
				defer func() { <-places }()
				f.try(&e, ct, body)
			})
		}
	}
	flying.Wait()
}

// resume ends the drains of what the examples name.
func (f *fuzzer) resume(all []endpoint) {
	for _, e := range all {
		for _, good := range e.good {
			if strings.HasSuffix(e.subject, ".resume") {
				f.try(&e, codec.JSON, bytes.Replace(good, []byte("{"), []byte(`{"drain":true,`), 1))
			}
		}
	}
}

// compare checks that the domain has what was accepted, and nothing else.
func (f *fuzzer) compare(client *yard.Client) {
	ctx, cancel := context.WithTimeout(f.t.Context(), within)
	defer cancel()
	testkit.Eventually(f.t, within, func() error {
		stored := map[string]bool{}
		for cursor := ""; ; {
			body, err := json.Marshal(map[string]any{"limit": 1000, "cursor": cursor})
			if err != nil {
				return err
			}
			answer, err := f.nc.RequestWithContext(ctx, topology.API(domain, "tasks.list"), body)
			if err != nil {
				return err
			}
			resp := &yardv1.ListResponse{}
			if err := codec.Unmarshal(codec.JSON, answer.Data, resp); err != nil {
				return err
			}
			for _, task := range resp.Tasks {
				// The callback of a batch that was created and closed, and the runs of schedules, are no one's submit.
				if task.Headers["yard-batch-id"] == "" && task.Headers["yard-schedule"] == "" {
					stored[task.TaskId] = true
				}
			}
			if cursor = resp.NextCursor; cursor == "" {
				break
			}
		}
		for id := range stored {
			if !f.accepted[id] {
				f.t.Errorf("task %s is stored, and was not accepted", id)
			}
		}
		for id := range f.accepted {
			if !stored[id] {
				return fmt.Errorf("task %s was accepted, and is not listed", id)
			}
		}
		return nil
	})
}
