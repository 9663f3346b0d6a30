package cli_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/quarantine"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// emptyCluster is a cluster without services.
func emptyCluster(t *testing.T) (*session, jetstream.JetStream) {
	t.Helper()
	srv := natskit.Run(t)
	js, err := jetstream.New(srv.Connect(t))
	testkit.NoError(t, err)
	testkit.NoError(t, provision.Apply(t.Context(), js, topology.Partitioning{History: 1, Matching: 1}, provision.Options{}))
	return &session{t: t, url: srv.URL}, js
}

func (s *session) golden(name string) {
	s.t.Helper()
	testkit.Golden(s.t, filepath.Join("testdata", name), []byte(steady(s.text.String())))
}

// TestUpgradeSession goes through an upgrade with members that are played. R21.
func TestUpgradeSession(t *testing.T) {
	s, js := emptyCluster(t)
	kv, err := js.KeyValue(t.Context(), topology.MembersBucket)
	testkit.NoError(t, err)
	older, newer := logversion.Newest(), logversion.Newest()+1
	member := func(service, node string, version uint32, more string) {
		t.Helper()
		testkit.NoError(t, testkit.Err(kv.PutString(t.Context(), topology.MemberKey(service, node), fmt.Sprintf(`{"log_version":%d%s}`, version, more))))
	}
	s.do("upgrade", "finalize") // there is no member
	member("history", "old-1", older, "")
	member("timer", "old-2", older, "")
	s.do("upgrade", "finalize") // there is nothing newer
	member("history", "new-1", newer, `,"stopped":[0]`)
	s.do("upgrade", "status")
	s.do("upgrade", "finalize")
	s.do("--json", "upgrade", "status")
	for _, key := range []string{topology.MemberKey("history", "old-1"), topology.MemberKey("timer", "old-2")} {
		testkit.NoError(t, kv.Delete(t.Context(), key))
	}
	s.do("upgrade", "status")
	s.do("upgrade", "finalize")
	s.do("upgrade", "finalize", "--yes")
	s.do("upgrade", "finalize", "--yes")
	member("history", "old-1", older, "") // it comes back
	s.do("upgrade", "status")
	s.golden("upgrade.txt")
}

// TestQuarantineSession. R19.
func TestQuarantineSession(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	s, js := emptyCluster(t)
	id, err := ids.ParseTaskID("06gzvkw0fc003ewx4bxvk83r20")
	testkit.NoError(t, err)
	batch, err := (&logv1.Batch{Tasks: []*logv1.Record{{Id: id[:], Domain: "shop", Tasklist: "mail", Type: "greet", DueAtMs: 5}, {}}}).MarshalVT()
	testkit.NoError(t, err)
	origin := func(seq uint64, data []byte) *logv1.Quarantined {
		return &logv1.Quarantined{
			Kind: logv1.QuarantineKind_QUARANTINE_KIND_UNREADABLE, Service: "timer", Reason: "record 1:\nid: empty", AtMs: 1_700_000_000_000,
			OriginStream: topology.TimerStream(0), OriginSubject: topology.Timer(0, 7), OriginSeq: seq, Data: data,
		}
	}
	large := &logv1.Quarantined{
		Kind: logv1.QuarantineKind_QUARANTINE_KIND_UNWRITABLE, Service: "history", AtMs: 1_700_000_000_000,
		Reason: strings.Repeat("much too large ", 10), TargetSubject: topology.Timer(0, 9), Data: make([]byte, 2<<20),
	}
	for _, q := range []*logv1.Quarantined{origin(3, batch), origin(4, []byte{0xff, 1, 2}), large} {
		testkit.NoError(t, quarantine.Put(t.Context(), js.Conn(), q))
	}
	s.do("quarantine", "list")
	s.do("quarantine", "list", "--service", "timer", "--partition", "1")
	s.do("quarantine", "list", "--kind", "unwritable")
	s.do("quarantine", "get", "1")
	s.do("quarantine", "get", "2")
	s.do("--json", "quarantine", "get", "2")
	s.do("quarantine", "get", "4") // a part of the third one
	s.do("quarantine", "redrive", "1", "2")
	s.do("quarantine", "redrive", "3")
	s.do("quarantine", "delete", "3")
	s.do("quarantine", "delete", "3", "--yes")
	s.do("quarantine", "get", "3")
	s.do("--json", "quarantine", "list")
	s.golden("quarantine.txt")
	stream, err := js.Stream(t.Context(), topology.TimerStream(0))
	if err != nil || stream.CachedInfo().State.Msgs != 2 {
		t.Errorf("redriven: %+v %v", stream.CachedInfo().State, err)
	}
}

// TestUpgradeOfARunningSystem: all four services are among its members. R21.
func TestUpgradeOfARunningSystem(t *testing.T) {
	system := startStack(t)
	testkit.Eventually(t, time.Minute, func() error { // each joins in its own time
		out, errs, code := run(t, "", "upgrade", "status", "--url", system.URL)
		if code != cli.ExitOK || !strings.Contains(out, "nothing to do") {
			return fmt.Errorf("exit code %d, %s%s", code, out, errs)
		}
		for _, service := range []string{"frontend", "matching", "history", "timer"} {
			if !strings.Contains(out, " "+service+" ") {
				return fmt.Errorf("%s is not among the members:\n%s", service, out)
			}
		}
		return nil
	})
	bare := natskit.Run(t)
	if _, errs, code := run(t, "", "upgrade", "status", "--url", bare.URL); code != cli.ExitFailed || !strings.Contains(errs, "no cluster") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestStatusNamesTheOwners: each service says which of its partitions it serves, and since when.
func TestStatusNamesTheOwners(t *testing.T) {
	s := newShell(t)
	testkit.Eventually(t, within, func() error {
		out := s.yard("status", "--all")
		for _, service := range []string{"history", "matching", "timer"} {
			if !regexp.MustCompile(`(?m)^`+service+` +0 +\S+ +20\d\d-`).MatchString(out) || !regexp.MustCompile(`(?m)^`+service+` +1 of 1 +20\d\d-\d\d-\d\d \S+ +\S+ +-$`).MatchString(out) {
				return fmt.Errorf("%s is missing in\n%s", service, out)
			}
		}
		return nil
	})
}

// TestADomainHasATraceRatio, until it is left to the services again.
func TestADomainHasATraceRatio(t *testing.T) {
	s := newShell(t)
	for _, c := range [][2]string{{"0.25", "trace ratio   0.25\n"}, {"0", "trace ratio   0\n"}, {"default", ""}} {
		s.yard("domain", "put", "shop", "--trace-ratio", c[0])
		s.yard("domain", "put", "shop", "--description", "it has its ratio") // other settings leave it as it is
		if out := s.yard("domain", "get", "shop"); !strings.Contains(out, c[1]) || c[1] == "" && strings.Contains(out, "ratio  ") {
			t.Errorf("with %s the domain is shown as\n%s", c[0], out)
		}
	}
}
