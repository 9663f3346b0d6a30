package child_test

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/child"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestAProcessThatEndsAndOneThatIsKilled(t *testing.T) {
	p, err := child.Start(exec.Command("sh", "-c", "exit 3"))
	testkit.NoError(t, err)
	<-p.Ended()
	testkit.Equal(t, "exit code", p.State().ExitCode(), 3)
	if err := p.Signal(syscall.SIGTERM); err == nil || !p.Over() {
		t.Error("it is not over")
	}
	p.Kill() // once more does no harm

	p, err = child.Start(exec.Command("sleep", "600"))
	testkit.NoError(t, err)
	if p.Over() || p.PID() == 0 {
		t.Errorf("process %d is over", p.PID())
	}
	p.Kill()
	if status, ok := p.State().Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL || !p.Over() {
		t.Errorf("it ended as %v", p.State())
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	if p, err := child.Start(exec.Command("/nowhere/program")); err == nil {
		p.Kill()
		t.Error("it started")
	}
}
