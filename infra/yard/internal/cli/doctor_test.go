package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestDoctorSession: what it prints, of a cluster without services, and how it ends.
func TestDoctorSession(t *testing.T) {
	s, js := emptyCluster(t)
	stream, err := js.Stream(t.Context(), topology.TimerStream(0))
	if err == nil {
		_, err = stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "report"})
	}
	testkit.NoError(t, err)
	s.do("doctor", "--wait", "1ms")
	s.do("--json", "doctor", "--wait", "1ms", "--most", "1")
	s.do("doctor", "--wait", "1ms", "--repair")
	s.do("doctor", "--wait", "1ms")
	s.do("doctor", "--looks", "1")
	s.do("doctor", "--redis", "nonsense")
	s.do("doctor", "--codes")
	s.golden("doctor.txt")
}

// TestDoctorThatCannotLook ends with a code of its own.
func TestDoctorThatCannotLook(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	for what, url := range map[string]string{"nothing there": "nats://127.0.0.1:1", "no JetStream": withoutJetStream(t)} {
		if _, errs, code := run(t, "", "doctor", "--url", url, "--timeout", "1s"); code != cli.ExitBlind {
			t.Errorf("%s: exit %d: %s", what, code, errs)
		}
	}
	system := startStack(t)
	if _, errs, code := run(t, "", "doctor", "--url", system.URL, "--redis", "redis://127.0.0.1:1", "--timeout", "1s"); code != cli.ExitBlind || !strings.Contains(errs, "Redis") {
		t.Errorf("no Redis: exit %d: %s", code, errs)
	}
	out, errs, code := run(t, "", "doctor", "--url", system.URL, "--json")
	var report doctor.Report
	if err := json.Unmarshal([]byte(out), &report); code != cli.ExitOK || err != nil || report.Scanned.Partitions == 0 || len(report.Unchecked) != 1 {
		t.Errorf("a healthy one: exit %d %v: %s%s", code, err, out, errs)
	}
}
