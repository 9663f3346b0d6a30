//go:build !unix

package program

import (
	"os"
	"os/exec"
	"time"
)

// Without process groups a program is killed alone, and at once.

func ownGroup(*exec.Cmd) {}

func terminate(p *os.Process) error { return p.Kill() }

func killGroup(*os.Process) {}

func awaitGroup(*os.Process, time.Duration) {}

func buryGroup(*os.Process) {}
