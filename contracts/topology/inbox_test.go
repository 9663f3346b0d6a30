package topology

import (
	"strings"
	"testing"
)

// R1: answers leave with the engine's rights, so none may go where requests lead.
func TestInboxPrefixesLeadToInboxesOnly(t *testing.T) {
	for prefix, ok := range map[string]bool{
		InboxPrefix: true, "_INBOX.t.shop.": true, "_R_.": true, "yardmen.": true,
		"": false, ".": false, "_INBOX": false, "..": false, "a..b.": false, ".a.": false,
		"*.": false, "_INBOX.*.": false, ">": false, "a.>.": false, "a b.": false, "a\n.": false,
		"yard.": false, "yard.history.": false, "$JS.": false, "$JS.API.": false, "$KV.": false,
	} {
		if err := CheckInboxPrefix(prefix); (err == nil) != ok {
			t.Errorf("CheckInboxPrefix(%q) = %v", prefix, err)
		}
	}
}

// R1, I14: in a sealed cluster an answer goes to an inbox of the domain that asked, of an
// operator, or of a service, and nowhere else.
func TestI14_AnswersGoToTheAskersOwnInboxes(t *testing.T) {
	strict, err := NewInboxes([]string{TenantInboxes})
	if err != nil || !strict.Strict() {
		t.Fatal(strict, err)
	}
	lenient, err := NewInboxes([]string{InboxPrefix, "_R_."})
	if err != nil || lenient.Strict() {
		t.Fatal(lenient, err)
	}
	for _, c := range []struct {
		domain, reply   string
		strict, lenient bool
	}{
		{"shop", UserInbox("shop", "ann") + ".x", true, true},
		{"shop", "_INBOX.t.shop.x", true, true},
		{"shop", "_INBOX.t.shop.", false, false},
		{"shop", "_INBOX.t.shop..x", false, false},
		{"shop", "_INBOX.t.shop.x.", false, false},
		{"shop", "_INBOX.t.shop2.x", false, true},
		{"shop", UserInbox("bank", "ann") + ".x", false, true},
		{"shop", OperatorInbox("ann") + ".x", false, true},
		{"shop", ServiceInbox("history") + ".x", false, true},
		{"shop", "_INBOX.x", false, true},
		{"shop", "_R_.x", false, true},
		{"", "_INBOX.t..x", false, false},
		{ReservedDomain, OperatorInbox("ann") + ".x", true, true},
		{ReservedDomain, "_INBOX.t.admin.x", false, true},
		{"shop", "", false, false},
		{"shop", "_INBOX.", false, false},
		{"shop", "$JS.API.STREAM.DELETE.YARD_HISTORY_0", false, false},
		{"shop", Event(0), false, false},
		{"shop", "_INBOX.t.shop.x\r\nPUB yard.history.0.event 0", false, false},
		{"shop", "_INBOX.t.shop.>", false, false},
		{"shop", "_INBOX.t.shop.*", false, false},
		{"shop", "_INBOX.t.shop." + strings.Repeat("x", ReplyBytesMax), false, false},
	} {
		if got := strict.Asker(c.domain, c.reply); got != c.strict {
			t.Errorf("strict: %q for %q: %v", c.domain, c.reply, got)
		}
		if got := lenient.Asker(c.domain, c.reply); got != c.lenient {
			t.Errorf("lenient: %q for %q: %v", c.domain, c.reply, got)
		}
	}
	for reply, want := range map[string]bool{ServiceInbox("matching") + ".v.1": true, "_INBOX.t.shop.x": false, Event(1): false, "_INBOX.x": false} {
		if strict.Service(reply) != want {
			t.Errorf("a service is answered at %q: %v", reply, !want)
		}
	}
	if !lenient.Service("_INBOX.x") || lenient.Service(Event(1)) || (Inboxes{}).Asker("shop", "_INBOX.x") {
		t.Error("services are answered below _INBOX. by default, and the zero value answers no one")
	}
	for _, wrong := range [][]string{nil, {"{domain}."}, {"_INBOX.{domain}.{domain}."}, {"_INBOX.{user}."}, {"yard."}} {
		if in, err := NewInboxes(wrong); err == nil {
			t.Errorf("%v: %v", wrong, in)
		}
	}
}

func TestAnInboxPrefixTellsItsDomain(t *testing.T) {
	for prefix, want := range map[string]struct {
		domain string
		sealed bool
	}{
		UserInbox("shop", "admin-ann"): {"shop", true},
		OperatorInbox("ann"):           {"", true},
		ServiceInbox("history"):        {"", true},
		"_INBOX":                       {"", false},
		"":                             {"", false},
		"_INBOX.other.shop":            {"", false},
	} {
		if domain, sealed := InboxDomain(prefix); domain != want.domain || sealed != want.sealed {
			t.Errorf("%q: domain %q, sealed %v", prefix, domain, sealed)
		}
	}
}

func TestAReplyNamesItsUser(t *testing.T) {
	for reply, want := range map[string]string{
		UserInbox("shop", "admin-ann") + ".x.1": "admin-ann", OperatorInbox("operator-bob") + ".x": "operator-bob",
		"_INBOX.x.1": "", "_INBOX.t.shop": "", "_INBOX.t.shop.ann": "", "_INBOX.o.": "", "_INBOX.s.history.n1.x": "", "": "",
	} {
		if got := UserOf(reply); got != want {
			t.Errorf("%q is of %q, want %q", reply, got, want)
		}
	}
}
