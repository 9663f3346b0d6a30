package topology

import "testing"

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
