package cli_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain keeps the person's own contexts and environment from the tests.
func TestMain(m *testing.M) {
	os.Exit(alone(m))
}

func alone(m *testing.M) int {
	dir, err := os.MkdirTemp("", "yard-config-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	for name, value := range map[string]string{
		"XDG_CONFIG_HOME": dir, "HOME": dir, "YARD_CONTEXT": "", "YARD_DOMAIN": "", "YARD_INBOX_PREFIX": "", "YARD_BY": "tester",
		"NATS_URL": "", "NATS_CREDS": "", "NATS_NKEY": "", "NATS_CA": "", "NATS_CERT": "", "NATS_KEY": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}
