package linear

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

func TestMain(m *testing.M) { natskit.VerifyTestMain(m) }
