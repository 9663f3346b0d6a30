package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// LogConfig says what is logged and how.
type LogConfig struct {
	// Level is the lowest level that is written: debug, info, warn or error, in
	// any case. Empty means info. Debug writes lines per batch and slows a busy
	// service down.
	Level string `koanf:"level" usage:"lowest level written: debug, info, warn or error"`
	// Format is text for people or json for log collectors. Empty means text.
	Format string `koanf:"format" usage:"text for people, json for collectors"`
}

// NewLogger returns a logger that writes to w. It refuses an unknown level or
// format.
func NewLogger(cfg LogConfig, w io.Writer) (*slog.Logger, error) {
	level, err := cfg.level()
	if err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: level}
	switch cfg.Format {
	case "", "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	default:
		return nil, errFormat(cfg.Format)
	}
}

func (c LogConfig) level() (slog.Level, error) {
	if c.Level == "" {
		return slog.LevelInfo, nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return 0, fmt.Errorf("log level %q: want debug, info, warn or error", c.Level)
	}
	return level, nil
}

func errFormat(format string) error {
	return fmt.Errorf("log format %q: want text or json", format)
}
