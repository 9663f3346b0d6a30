//go:build !unix

package program

import (
	"os"
	"os/exec"
)

// Without process groups a program is killed alone, and at once.

func ownGroup(*exec.Cmd) {}

func terminate(p *os.Process) error { return p.Kill() }

func killGroup(*os.Process) {}
