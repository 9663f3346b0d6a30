package cli_test

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// With a codec server the command submits encrypted payloads and shows them; without it all see encrypted bytes.
func TestASessionWithACodecServer(t *testing.T) {
	codec, err := coded.AESGCM("k1", map[string][]byte{"k1": bytes.Repeat([]byte{1}, 32)})
	testkit.NoError(t, err)
	server := httptest.NewServer(coded.Handler(codec))
	s := &session{t: t, url: startStack(t).URL}
	s.do("domain", "put", "shop")
	id := strings.TrimSpace(s.do("task", "submit", "email.send", `{"to":"ann"}`, "--tasklist", "mail", "--codec-url", server.URL))
	if out := s.do("--json", "task", "get", id); strings.Contains(out, "ann") || !strings.Contains(out, id) {
		t.Errorf("without the codec: %s", out)
	}
	if out := s.do("--json", "task", "get", id, "--codec-url", server.URL); !strings.Contains(out, `"ann"`) {
		t.Errorf("with the codec: %s", out)
	}
	server.Close()
	if out := s.do("--json", "task", "get", id, "--codec-url", server.URL); !strings.Contains(out, id) {
		t.Errorf("without its server: %s", out)
	}
	s.do("task", "submit", "email.send", `{"to":"ann"}`, "--tasklist", "mail", "--codec-url", server.URL)
	if text := s.text.String(); !strings.Contains(text, "the payload is not encoded") {
		t.Error(text)
	}
}
