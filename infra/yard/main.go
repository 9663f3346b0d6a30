// Command yard runs, demonstrates, operates and measures Yardmaster.
//
// Owns: nothing but the way from the command line to package cli.
package main

import (
	"context"
	"os"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

func main() {
	process.TuneGC(process.GCPercent)
	code := cli.ExitOK
	failed := lifecycle.Main(func(ctx context.Context) error {
		life, end := context.WithCancel(ctx)
		defer end()
		go func() { _ = process.ReturnMemory(life) }() // it returns nothing but nil
		code = cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
		return nil // cli has printed it
	})
	os.Exit(max(code, failed))
}
