package natsserver

import (
	"fmt"
	"log/slog"
	"strings"
)

// bridge takes the server's log lines into a slog.Logger. Its notices are of the
// server's own start and are debug lines to us.
type bridge struct {
	log   *slog.Logger
	fatal chan string // the first reason why the server cannot run
}

// temporaryStore is a warning about what its user asked for.
const temporaryStore = "Temporary storage directory"

func (b *bridge) Noticef(format string, v ...any) { b.write(b.log.Debug, format, v) }
func (b *bridge) Errorf(format string, v ...any)  { b.write(b.log.Error, format, v) }
func (b *bridge) Debugf(string, ...any)           {}
func (b *bridge) Tracef(string, ...any)           {}

func (b *bridge) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, temporaryStore) {
		b.write(b.log.Debug, format, v)
		return
	}
	b.write(b.log.Warn, format, v)
}

func (b *bridge) Fatalf(format string, v ...any) {
	select {
	case b.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

func (b *bridge) write(to func(string, ...any), format string, v []any) {
	to("nats-server: " + strings.TrimSpace(fmt.Sprintf(format, v...)))
}
