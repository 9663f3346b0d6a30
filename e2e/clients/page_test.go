package clients_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// otherLanguages is the page with the bytes of requests and answers.
const otherLanguages = "../../contracts/docs/other-languages.md"

// pagesRequestID is the request id of the page, which is too old by now.
const pagesRequestID = "019aa60d-5480-7000-8a3c-6f1d2b4e5a60"

// block is a fenced block of the page: a message, and what kind of it.
type block struct {
	kind    string // request, answer, hint or wire
	line    int
	subject string // of a request or a hint
	headers nats.Header
	body    string
}

// replay sends the page's requests. What the page calls an id or a token stands for what the engine has answered in
// its place.
type replay struct {
	nc    *nats.Conn
	url   string
	names map[string]string // of the page → of the engine
}

// TestOtherLanguages sends exactly what the page says, in its order, and compares the answers' shape.
func TestOtherLanguages(t *testing.T) {
	blocks := readPage(t)
	s := running(t, stack.Config{})
	nc, err := nats.Connect(s.URL, nats.Timeout(within))
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	hints, err := nc.SubscribeSync("yard.v1.*.hint.cancel")
	testkit.NoError(t, err)
	r := &replay{nc: nc, url: s.URL, names: map[string]string{pagesRequestID: ids.NewRequestID(time.Now()).String()}}
	kinds := map[string]int{}
	for i, b := range blocks {
		kinds[b.kind]++
		where := fmt.Sprintf("%s:%d", otherLanguages, b.line)
		switch b.kind {
		case "request":
			if i+1 == len(blocks) || blocks[i+1].kind != "answer" {
				t.Fatalf("%s: the request has no answer", where)
			}
			r.request(t, where, b, blocks[i+1])
		case "hint":
			hint, err := hints.NextMsg(within)
			if err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			testkit.Equal(t, fmt.Sprintf("%s: the hint came on", where), hint.Subject, b.subject)
			r.compare(t, where, b.body, string(hint.Data))
		case "wire":
			r.wire(t, where, b.body)
		}
	}
	if kinds["request"] < 15 || kinds["answer"] != kinds["request"] || kinds["hint"] != 1 || kinds["wire"] != 1 {
		t.Errorf("the page has %v", kinds)
	}
}

// readPage reads the blocks of the page whose kind the test knows.
func readPage(t *testing.T) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile(otherLanguages)
	testkit.NoError(t, err)
	fence := regexp.MustCompile("(?ms)^```(request|answer|hint|wire)\n(.*?)^```\n")
	for _, at := range fence.FindAllSubmatchIndex(text, -1) {
		b := block{
			kind: string(text[at[2]:at[3]]), line: 1 + strings.Count(string(text[:at[0]]), "\n"),
			body: string(text[at[4]:at[5]]), headers: nats.Header{},
		}
		if b.kind != "wire" {
			head, body, ok := strings.Cut(b.body, "\n\n")
			if !ok {
				t.Fatalf("%s:%d: no empty line before the body", otherLanguages, b.line)
			}
			b.body = strings.TrimSuffix(body, "\n")
			lines := strings.Split(head, "\n")
			if b.kind != "answer" {
				b.subject, lines = lines[0], lines[1:]
			}
			for _, line := range lines {
				name, value, _ := strings.Cut(line, ": ")
				b.headers[name] = []string{value}
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// real is a text of the page with the engine's names.
func (r *replay) real(text string) string {
	for name, actual := range r.names {
		text = strings.ReplaceAll(text, name, actual)
	}
	return text
}

func (r *replay) request(t *testing.T, where string, request, answer block) {
	t.Helper()
	got, err := r.nc.RequestMsg(&nats.Msg{Subject: request.subject, Header: request.headers, Data: []byte(r.real(request.body))}, within)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if have, want := slices.Sorted(maps.Keys(got.Header)), slices.Sorted(maps.Keys(answer.headers)); !slices.Equal(have, want) {
		t.Fatalf("%s: the answer has the headers %v, the page says %v\n%s", where, have, want, got.Data)
	}
	for _, name := range []string{"Content-Type", "Nats-Service-Error-Code"} {
		if have, want := got.Header.Get(name), answer.headers.Get(name); have != want {
			t.Errorf("%s: %s is %q, the page says %q", where, name, have, want)
		}
	}
	r.compare(t, where, answer.body, string(got.Data))
}

// compare compares an answer's shape with the page's, and learns the engine's names.
func (r *replay) compare(t *testing.T, where, page, got string) {
	t.Helper()
	var want, have any
	if err := json.Unmarshal([]byte(page), &want); err != nil {
		t.Fatalf("%s: the page's body: %v", where, err)
	}
	if err := json.Unmarshal([]byte(got), &have); err != nil {
		t.Fatalf("%s: the answer %s: %v", where, got, err)
	}
	if err := r.alike("", want, have); err != nil {
		t.Fatalf("%s: %v\nthe answer is\n%s\nthe page says\n%s", where, err, got, page)
	}
}

// opaque is an id or a token.
var opaque = regexp.MustCompile(`^([0-9a-z]{26}|[0-9a-z]{45})$`)

// alike tells where two values differ in more than what changes from run to run: ids, tokens, times, revisions and
// texts for people.
func (r *replay) alike(path string, want, have any) error {
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok || !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have))) {
			return fmt.Errorf("%s has other members", path)
		}
		for key, value := range want {
			if err := r.alike(path+"/"+key, value, have[key]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		have, ok := have.([]any)
		if !ok || len(want) != len(have) {
			return fmt.Errorf("%s has another length", path)
		}
		for i, value := range want {
			if err := r.alike(fmt.Sprintf("%s/%d", path, i), value, have[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		have, ok := have.(string)
		switch {
		case ok && name == "message" && have != "":
			return nil
		case ok && opaque.MatchString(want) && opaque.MatchString(have) && len(have) == len(want):
			if known := r.names[want]; known != "" && known != have {
				return fmt.Errorf("%s is %s, and %s was %s before", path, have, want, known)
			}
			r.names[want] = have
			return nil
		}
	case float64:
		if have, ok := have.(float64); ok && have > 0 && (strings.HasSuffix(name, "_ms") || name == "revision") {
			return nil
		}
	}
	if want != have {
		return fmt.Errorf("%s is %v, want %v", path, have, want)
	}
	return nil
}

// wire speaks the client's lines of a block over a connection of its own, and compares the server's.
func (r *replay) wire(t *testing.T, where, talk string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(r.url, "nats://"), within)
	testkit.NoError(t, err)
	defer func() { _ = conn.Close() }()
	testkit.NoError(t, conn.SetDeadline(time.Now().Add(within)))
	server := bufio.NewReader(conn)
	for line := range strings.Lines(talk) {
		who, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch who {
		case "C":
			if _, err := fmt.Fprintf(conn, "%s\r\n", text); err != nil {
				t.Fatalf("%s: %v", where, err)
			}
		case "S", "S:": // the latter: an empty line
			said, err := server.ReadString('\n')
			said = strings.TrimSuffix(said, "\r\n")
			start, _, open := strings.Cut(text, "…")
			switch {
			case err != nil:
				t.Fatalf("%s: the server said %q, %v; want %q", where, said, err, text)
			case open && strings.HasPrefix(said, start):
			case strings.HasPrefix(text, "{"):
				r.compare(t, where, text, said)
			case said != text:
				t.Fatalf("%s: the server said %q, want %q", where, said, text)
			}
		default:
			t.Fatalf("%s: %q is neither the client's nor the server's", where, line)
		}
	}
}
