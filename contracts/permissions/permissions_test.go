package permissions_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

var parts = topology.Partitioning{History: 3, Matching: 2}

func of(t *testing.T, user string) permissions.Permissions {
	t.Helper()
	u, err := permissions.ParseUser(user)
	checktest.NoError(t, err)
	p, err := permissions.Of(u, parts)
	checktest.NoError(t, err)
	return p
}

var everybody = []string{
	"provisioner", "frontend", "history", "matching", "timer", "inspector", "operator:ann", "observer:ann", "submitter:shop:web", "worker:shop:mail", "worker:shop:letters:mail:push", "viewer:shop:eve", "admin:shop:boss",
}

// I14, R1: who may change or delete streams, and who may purge which.
func TestI14_OnlyTheProvisionerMakesStreams(t *testing.T) {
	purges := map[string][]string{
		"frontend": {"YARD_DEADLETTER"},
		"history":  {"YARD_DEADLETTER", "YARD_HISTORY_0", "YARD_HISTORY_1", "YARD_HISTORY_2", "YARD_SNAPSHOT_0", "YARD_SNAPSHOT_1", "YARD_SNAPSHOT_2"},
		"timer":    {"YARD_HISTORY_0", "YARD_HISTORY_1", "YARD_HISTORY_2", "YARD_TIMER_0", "YARD_TIMER_1", "YARD_TIMER_2"},
	}
	for _, who := range everybody {
		var purged []string
		for _, s := range of(t, who).Publish {
			for _, call := range []string{"CREATE", "UPDATE", "DELETE", "RESTORE"} {
				hints := strings.HasPrefix(s, "$JS.API.STREAM.DELETE.YARD_MATCHING_")
				if strings.HasPrefix(s, "$JS.API.STREAM."+call+".") && (who != "provisioner" || call == "DELETE" && !hints) {
					t.Errorf("%s may publish %s", who, s)
				}
			}
			if stream, ok := strings.CutPrefix(s, "$JS.API.STREAM.PURGE."); ok {
				purged = append(purged, stream)
			}
			// A wildcard that reaches over streams or subjects of several kinds.
			if slices.Contains([]string{">", "*.>", "$JS.>", "$JS.API.>", "$KV.>", "yard.>", "yard.v1.>", "_INBOX.>", "$SYS.>", "$SRV.>"}, s) {
				t.Errorf("%s may publish %s", who, s)
			}
		}
		if !slices.Equal(purged, purges[who]) {
			t.Errorf("%s may purge %v", who, purged)
		}
	}
}

// The inspector reads everything, and writes nothing but words on unique keys.
func TestI14_TheInspectorReads(t *testing.T) {
	p := of(t, "inspector")
	for _, s := range p.Publish {
		call, isCall := strings.CutPrefix(s, "$JS.API.")
		reads := isCall && !slices.ContainsFunc([]string{"STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.RESTORE", "STREAM.MSG.DELETE"}, func(c string) bool { return strings.HasPrefix(call, c+".") })
		asks := strings.HasPrefix(s, "$JS.FC.") || strings.HasPrefix(s, "$JS.SNAPSHOT.ACK.") || strings.HasPrefix(s, "$SRV.PING.yard-")
		if !reads && !asks && !strings.HasSuffix(s, ".key.>") && !strings.HasSuffix(s, ".bookings") {
			t.Errorf("it may publish %s", s)
		}
	}
	checktest.Equal(t, "it may subscribe to", p.Subscribe, []string{"_INBOX.s.inspector.>"})
	for _, s := range topology.Streams(parts) {
		if !slices.Contains(p.Publish, "$JS.API.CONSUMER.LIST."+s.Name) {
			t.Errorf("it cannot read %s", s.Name)
		}
	}
}

func TestI14_TenantsHaveTheirVerbsAndTheirInbox(t *testing.T) {
	for who, want := range map[string]permissions.Permissions{
		"submitter:shop:web": {
			Publish:   []string{"yard.v1.shop.hint.outbox", "yard.v1.shop.tasks.cancel", "yard.v1.shop.tasks.get", "yard.v1.shop.tasks.submit", "yard.v1.shop.tasks.update"},
			Subscribe: []string{"_INBOX.t.shop.submitter-web.>", "yard.v1.shop.events.>", "yard.v1.shop.hint.outbox"},
		},
		"worker:shop:mail": {
			Publish:   []string{"yard.v1.shop.hint.alive", "yard.v1.shop.tasks.complete", "yard.v1.shop.tasks.fail", "yard.v1.shop.tasks.heartbeat", "yard.v1.shop.tasks.poll", "yard.v1.shop.tasks.poll.*"},
			Subscribe: []string{"_INBOX.t.shop.worker-mail.>", "yard.v1.shop.hint.cancel"},
		},
		"worker:shop:mail:letters:push": {
			Publish:   []string{"yard.v1.shop.hint.alive", "yard.v1.shop.tasks.complete", "yard.v1.shop.tasks.fail", "yard.v1.shop.tasks.heartbeat", "yard.v1.shop.tasks.poll.letters", "yard.v1.shop.tasks.poll.push"},
			Subscribe: []string{"_INBOX.t.shop.worker-mail.>", "yard.v1.shop.hint.cancel"},
		},
		"admin:shop:boss": {
			Publish: []string{
				"yard.v1.shop.audit.>", "yard.v1.shop.batches.>", "yard.v1.shop.deadletters.>", "yard.v1.shop.groups.>", "yard.v1.shop.hint.alive", "yard.v1.shop.hint.outbox", "yard.v1.shop.keys.>", "yard.v1.shop.limits.>",
				"yard.v1.shop.schedules.>", "yard.v1.shop.tasklists.>", "yard.v1.shop.tasks.>", "yard.v1.shop.timers.>", "yard.v1.shop.types.>", "yard.v1.shop.workers.>",
			},
			Subscribe: []string{"_INBOX.t.shop.admin-boss.>", "yard.v1.shop.events.>", "yard.v1.shop.hint.cancel", "yard.v1.shop.hint.outbox"},
		},
	} {
		if got := of(t, who); !slices.Equal(got.Publish, want.Publish) || !slices.Equal(got.Subscribe, want.Subscribe) {
			t.Errorf("%s: %v", who, got)
		}
	}
}

// TestI14_OnlyHistoryPublishesEvents: a client that hears an event of its domain has it from history. An admin of the domain may call every endpoint all the same.
func TestI14_OnlyHistoryPublishesEvents(t *testing.T) {
	for _, who := range everybody {
		for _, s := range of(t, who).Publish {
			if within(s, topology.TaskEvents("shop", topology.EventDead, "mail")) != (who == "history" && s == topology.TaskEventsAny) {
				t.Errorf("%s may publish %s", who, s)
			}
		}
	}
	text, err := os.ReadFile("../asyncapi.json")
	checktest.NoError(t, err)
	endpoints := regexp.MustCompile(`"address": *"yard\.v1\.\{domain\}\.([a-z.]+)"`).FindAllStringSubmatch(string(text), -1)
	for _, e := range endpoints {
		may := slices.ContainsFunc(of(t, "admin:shop:boss").Publish, func(s string) bool { return within(s, topology.API("shop", e[1])) })
		if !may {
			t.Errorf("an admin may not call %s", e[1])
		}
	}
	if len(endpoints) == 0 {
		t.Error("no endpoint was found")
	}
}

// TestI14_ViewersOnlyRead: each subject of theirs is an endpoint, and none of it changes something.
func TestI14_ViewersOnlyRead(t *testing.T) {
	text, err := os.ReadFile("../asyncapi.json")
	checktest.NoError(t, err)
	for _, s := range slices.Concat(of(t, "viewer:shop:eve").Publish, of(t, "observer:ann").Publish) {
		endpoint := strings.Replace(s, ".shop.", ".{domain}.", 1)
		if !strings.HasPrefix(s, "yard.health.") && !strings.Contains(string(text), `"`+endpoint+`"`) {
			t.Errorf("%s is no endpoint", s)
		}
		if regexp.MustCompile(`put|delete|cancel|pause|resume|drain|purge|redrive|submit|poll$|complete|fail|heartbeat|update|create|close|trigger|backfill|unblock|skip|stop`).MatchString(s) {
			t.Errorf("%s changes something", s)
		}
	}
	checktest.Equal(t, "an observer's inbox", of(t, "observer:ann").Subscribe, []string{"_INBOX.o.observer-ann.>"})
	if _, err := permissions.ParseUser("operator:observer-ann"); err == nil {
		t.Error("an operator may have the inbox of an observer")
	}
}

// within reports whether a filter covers a subject.
func within(filter, subject string) bool {
	f, s := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, token := range f {
		if token == ">" && i < len(s) {
			return true
		}
		if i >= len(s) || token != "*" && token != s[i] {
			return false
		}
	}
	return len(f) == len(s)
}

// No two users subscribe to each other's inboxes.
func TestI14_InboxesAreApart(t *testing.T) {
	for _, a := range everybody {
		for _, b := range everybody {
			u, err := permissions.ParseUser(b)
			checktest.NoError(t, err)
			for _, s := range of(t, a).Subscribe {
				if a != b && strings.HasPrefix(u.Inbox()+".", strings.TrimSuffix(s, ">")) {
					t.Errorf("%s may read %s of %s", a, s, b)
				}
			}
		}
	}
}

func TestUsers(t *testing.T) {
	for _, who := range everybody {
		if u, err := permissions.ParseUser(who); err != nil || u.String() != who {
			t.Errorf("%s: %v %v", who, u, err)
		}
	}
	for who, want := range map[string]string{
		"": "no role", "root": "no role", "frontend:a": "want role", "operator": "operator:name", "operator:a:b": "operator:name", "worker:shop": "worker:domain:name",
		"worker:sh.op:a": "domain", "worker:shop:*": "name", "admin:admin:a": "reserved", "operator:>": "name", "submitter:shop:a:b": "submitter:domain:name",
		"worker:shop:a:": "tasklist", "worker:shop:a:b:*": "tasklist",
	} {
		if u, err := permissions.ParseUser(who); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %v, want %q", who, u, err, want)
		}
	}
	for _, n := range []topology.Partitioning{{}, {History: 1}, {History: 2000, Matching: 1}, {History: 1, Matching: 2000}} {
		if _, err := permissions.Of(permissions.User{Role: permissions.Timer}, n); err == nil {
			t.Errorf("%v", n)
		}
	}
}

// A user that was not read from text is checked all the same: a wildcard in its domain would reach others.
func TestI14_WildcardsAreNoNames(t *testing.T) {
	for _, u := range []permissions.User{
		{Role: permissions.Admin, Domain: "*", Name: "a"},
		{Role: permissions.Worker, Domain: "shop", Name: ">"},
		{Role: permissions.Admin, Domain: topology.ReservedDomain, Name: "a"},
		{Role: permissions.Operator},
		{Role: "root"},
	} {
		if p, err := permissions.Of(u, parts); err == nil {
			t.Errorf("%v may %v", u, p)
		}
	}
}
