package coded_test

import (
	"bytes"
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
)

func key(fill byte) []byte { return bytes.Repeat([]byte{fill}, 32) }

func encryption(t *testing.T, current string, keys map[string][]byte) coded.Codec {
	t.Helper()
	c, err := coded.AESGCM(current, keys)
	checktest.NoError(t, err)
	return c
}

// codecs are all, each over each encryption.
func codecs(t *testing.T) map[string]coded.Codec {
	t.Helper()
	aes := encryption(t, "k1", map[string][]byte{"k1": key(1)})
	server := httptest.NewServer(coded.Handler(coded.Gzip(0, aes)))
	t.Cleanup(server.Close)
	return map[string]coded.Codec{
		"aes": aes, "gzip": coded.Gzip(100, nil), "gzip+aes": coded.Gzip(100, aes), "remote": coded.Remote(server.URL+"/", server.Client()),
	}
}

func TestContentComesBackAsItWas(t *testing.T) {
	for name, c := range codecs(t) {
		for _, data := range []string{`{"to":"ann"}`, "\x00\x01", strings.Repeat("secret ", 10_000)} {
			encoded, err := c.Encode([]byte(data))
			checktest.NoError(t, err)
			plain, err := c.Decode(encoded)
			checktest.NoError(t, err)
			checktest.Equal(t, name, string(plain), data)
			if name != "gzip" && bytes.Contains(encoded, []byte("secret")) {
				t.Errorf("%s: the content can be read", name)
			}
		}
	}
}

func TestWhatIsNotItsOwnDoesNotDecode(t *testing.T) {
	for name, c := range codecs(t) {
		encoded, err := c.Encode([]byte(strings.Repeat("x", 200)))
		checktest.NoError(t, err)
		for _, bad := range [][]byte{nil, {7}, []byte("other"), encoded[:len(encoded)-1]} {
			if plain, err := c.Decode(bad); err == nil {
				t.Errorf("%s: %q became %q", name, bad, plain)
			}
		}
	}
}

func TestKeysAreRotated(t *testing.T) {
	before := encryption(t, "k1", map[string][]byte{"k1": key(1)})
	after := encryption(t, "k2", map[string][]byte{"k1": key(1), "k2": key(2)})
	old, err := before.Encode([]byte("a"))
	checktest.NoError(t, err)
	plain, err := after.Decode(old)
	checktest.NoError(t, err)
	checktest.Equal(t, "old content", string(plain), "a")
	fresh, err := after.Encode([]byte("a"))
	checktest.NoError(t, err)
	if _, err := before.Decode(fresh); err == nil || !strings.Contains(err.Error(), `"k2"`) {
		t.Errorf("without the new key: %v", err)
	}
	other := encryption(t, "k1", map[string][]byte{"k1": key(9)})
	if _, err := other.Decode(old); err == nil {
		t.Error("another key of the same name opened the content")
	}
	for _, bad := range []map[string][]byte{{}, {"k1": key(1)[:31]}, {"k1": key(1), "": key(2)}, {"k1": key(1), strings.Repeat("k", 65): key(1)}} {
		if _, err := coded.AESGCM("k1", bad); err == nil {
			t.Errorf("keys %q were taken", bad)
		}
	}
}

func TestMuchFromLittleIsRefused(t *testing.T) {
	c := coded.Gzip(0, nil)
	if _, err := c.Encode(make([]byte, 16<<20+1)); err == nil {
		t.Error("more than 16 MiB was encoded")
	}
	most, err := c.Encode(make([]byte, 16<<20))
	checktest.NoError(t, err)
	plain, err := c.Decode(most)
	checktest.NoError(t, err)
	checktest.Equal(t, "bytes", len(plain), 16<<20)
	more, err := c.Encode(make([]byte, 1<<20))
	checktest.NoError(t, err)
	bomb := most
	for range 2 { // parts of gzip, one behind the other, are one
		bomb = append(bomb, more[1:]...)
	}
	if _, err := c.Decode(bomb); err == nil {
		t.Error("more than 16 MiB was decoded")
	}
}

func TestRequestsAreEncodedWhereTheyHaveContent(t *testing.T) {
	c := encryption(t, "k1", map[string][]byte{"k1": key(1)})
	submit := &yardv1.SubmitRequest{Tasklist: "mail", Tasks: []*yardv1.NewTask{
		{Type: "send", Group: "shop", Payload: &yardv1.Payload{Data: []byte(`"secret"`)}},
		{Type: "none"},
	}}
	checktest.NoError(t, coded.Encode(c, submit))
	p := submit.Tasks[0].Payload
	if !coded.IsEncoded(p.Data) || p.Encoding != yardv1.Encoding_ENCODING_BINARY || submit.Tasks[0].Group != "shop" || submit.Tasks[1].Payload != nil {
		t.Fatalf("the request is %v", submit)
	}
	once := bytes.Clone(p.Data)
	checktest.NoError(t, coded.Encode(c, submit)) // as for a repeat
	checktest.Equal(t, "encoded again", p.Data, once)

	fail := &yardv1.FailRequest{Tasks: []*yardv1.Failure{{Message: "no such user: secret" + strings.Repeat("€", 4000), ErrorType: "smtp"}}}
	checktest.NoError(t, coded.Encode(c, fail))
	text := fail.Tasks[0].Message
	if strings.Contains(text, "secret") || len(text) > 4096 || fail.Tasks[0].ErrorType != "smtp" {
		t.Fatalf("the failure is %v", fail)
	}

	answer := &yardv1.GetResponse{Task: &yardv1.Task{
		Payload: p, ErrorMessage: text, Events: []*yardv1.TaskEvent{{Message: text}, {Message: "plain"}}, Result: &yardv1.Payload{Data: []byte("1")},
	}}
	coded.Decode(encryption(t, "k2", map[string][]byte{"k2": key(2)}), answer)
	if !coded.IsEncoded(answer.Task.Payload.Data) || answer.Task.ErrorMessage != text {
		t.Errorf("without the key the answer is %v", answer)
	}
	coded.Decode(c, answer)
	task := answer.Task
	checktest.Equal(t, "payload", string(task.Payload.Data), `"secret"`)
	checktest.Equal(t, "encoding", task.Payload.Encoding, yardv1.Encoding_ENCODING_JSON)
	checktest.Equal(t, "result", string(task.Result.Data), "1")
	checktest.Equal(t, "plain event", task.Events[1].Message, "plain")
	for _, got := range []string{task.ErrorMessage, task.Events[0].Message} {
		if !strings.HasPrefix(got, "no such user: secret€") || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("the text is %.40q", got)
		}
	}
}

// Each field of the API that has a payload is a part: a new message needs no line here.
func TestAllPayloadsOfAnAnswerAreDecoded(t *testing.T) {
	c := coded.Gzip(0, nil)
	poll := &yardv1.PollResponse{Tasks: []*yardv1.PolledTask{{Payload: &yardv1.Payload{Data: []byte("1")}}}}
	beat := &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{Progress: &yardv1.Payload{Data: []byte("1")}}}}
	done := &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{{Result: &yardv1.Payload{Data: []byte("1")}}}}
	checktest.NoError(t, coded.Encode(c, poll))
	checktest.NoError(t, coded.Encode(c, beat))
	checktest.NoError(t, coded.Encode(c, done))
	for _, p := range []*yardv1.Payload{poll.Tasks[0].Payload, beat.Tasks[0].Progress, done.Tasks[0].Result} {
		if !coded.IsEncoded(p.Data) {
			t.Errorf("%v is not encoded", p)
		}
	}
	coded.Decode(c, poll)
	checktest.Equal(t, "payload", string(poll.Tasks[0].Payload.Data), "1")
}

func TestLittleDoesNotBecomeALargeAnswer(t *testing.T) {
	codec := coded.Gzip(0, nil)
	server := httptest.NewServer(coded.Handler(codec))
	defer server.Close()
	large, err := codec.Encode(make([]byte, 13<<20))
	checktest.NoError(t, err)
	for n, want := range map[int]int{1: 200, 2: 400} {
		one := `{"data":"` + base64.StdEncoding.EncodeToString(large) + `"}`
		body := `{"payloads":[` + strings.TrimPrefix(strings.Repeat(","+one, n), ",") + `]}`
		resp, err := server.Client().Post(server.URL+"/decode", "application/json", strings.NewReader(body))
		checktest.NoError(t, err)
		checktest.NoError(t, resp.Body.Close())
		checktest.Equal(t, "status", resp.StatusCode, want)
	}
}

// A codec server that is away may come back: what needs it is tried again.
func TestACodecServerThatIsAway(t *testing.T) {
	server := httptest.NewServer(coded.Handler(coded.Gzip(0, nil)))
	server.Close()
	submit := &yardv1.SubmitRequest{Tasks: []*yardv1.NewTask{{Payload: &yardv1.Payload{Data: []byte("1")}}}}
	checktest.Code(t, "a submit", coded.Encode(coded.Remote(server.URL, nil), submit), fault.Unavailable)
}

func TestBadRequestsToACodecServer(t *testing.T) {
	server := httptest.NewServer(coded.Handler(coded.Gzip(0, nil)))
	defer server.Close()
	for _, body := range []string{"", "{", `{"payloads":[{"data":"!"}]}`, `{"payloads":[{"data":"AAAA"},{"data":"CQ=="}]}`, `{"payloads":[` + strings.Repeat(`{},`, 1000) + `{}]}`} {
		resp, err := server.Client().Post(server.URL+"/decode", "application/json", strings.NewReader(body))
		checktest.NoError(t, err)
		checktest.NoError(t, resp.Body.Close())
		checktest.Equal(t, body[:min(len(body), 40)], resp.StatusCode, 400)
	}
}
