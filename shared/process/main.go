package process

import (
	"context"
	"io"
	"os"

	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/settings"
)

// Settings is a struct that embeds Config.
type Settings interface{ common() Config }

// Build makes a service of its settings. It connects to nothing else and waits for
// nothing: that is the service's Run.
type Build[S Settings] func(Env, S) (Service, error)

// Main runs the service called name until SIGTERM or SIGINT and returns the
// process's exit code: 0 after a clean stop, 1 after an error, which is printed.
// Its settings are def with the file, the environment (YARD_<NAME>_…) and the flags
// on top; --help and --print-config print and start nothing.
func Main[S Settings](name string, def S, build Build[S]) int {
	return lifecycle.Main(func(ctx context.Context) error {
		return start(ctx, name, def, build, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	})
}

func start[S Settings](ctx context.Context, name string, def S, build Build[S], args, env []string, out, logs io.Writer) error {
	cfg, opts, err := settings.Load(name, def, args, env)
	switch {
	case opts.Help:
		return settings.Usage(out, name, def)
	case err != nil:
		return err
	case opts.PrintConfig:
		return settings.Print(out, cfg)
	}
	return Run(ctx, name, cfg.common(), func(e Env) (Service, error) { return build(e, cfg) }, logs)
}
