package telemetry_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log, err := telemetry.NewLogger(telemetry.LogConfig{Level: "WARN", Format: "json"}, &out)
	testkit.NoError(t, err)
	log.Info("not written")
	log.Warn("written", "partition", 3)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("not one line of JSON: %v\n%s", err, out.String())
	}
	if line["msg"] != "written" || line["partition"] != 3.0 {
		t.Fatalf("got %v", line)
	}
}

func TestLoggerDefaults(t *testing.T) {
	var out bytes.Buffer
	log, err := telemetry.NewLogger(telemetry.LogConfig{}, &out)
	testkit.NoError(t, err)
	log.Debug("not written")
	log.Info("written")
	if got := out.String(); !strings.Contains(got, "level=INFO msg=written") || strings.Count(got, "\n") != 1 {
		t.Fatalf("got %q", got)
	}
}

func TestLoggerRefuses(t *testing.T) {
	for want, cfg := range map[string]telemetry.LogConfig{
		`log level "loud": want debug, info, warn or error`: {Level: "loud"},
		`log format "xml": want text or json`:               {Format: "xml"},
	} {
		if _, err := telemetry.NewLogger(cfg, nil); err == nil || err.Error() != want {
			t.Errorf("%+v: got %v, want %s", cfg, err, want)
		}
	}
}
