package telemetry

import (
	"errors"
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
	if err := errors.Join(err, cfg.format()); err != nil {
		return nil, err
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}

// Validate refuses an unknown level or format; shared/settings calls it.
func (c LogConfig) Validate() error {
	_, err := c.level()
	return errors.Join(err, c.format())
}

func (c LogConfig) format() error {
	switch c.Format {
	case "", "text", "json":
		return nil
	default:
		return fmt.Errorf("log format %q: want text or json", c.Format)
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
