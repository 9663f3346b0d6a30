//go:build !unix

package program

import (
	"context"
	"os"
	"os/exec"
	"time"
)

// Without process groups a program is killed alone, and at once.

func command(ctx context.Context, text string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", "-c", text)
}

func start(cmd *exec.Cmd) (release func(), err error) { return func() {}, cmd.Start() }

func terminate(p *os.Process) error { return p.Kill() }

func killGroup(*os.Process) {}

func awaitGroup(*os.Process, time.Duration) {}

func reapGroup(*os.Process) {}
