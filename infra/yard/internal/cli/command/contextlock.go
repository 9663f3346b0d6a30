package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/filelock"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	// contextLockWithin is how long a change waits for others to end theirs, which take moments.
	contextLockWithin = 10 * time.Second
	// contextLockEvery is how often it looks.
	contextLockEvery = 5 * time.Millisecond
)

// ChangeContexts changes the book and stores it, unless change returns an error. Changes of several processes follow one
// another: each begins with what the one before has stored.
func ChangeContexts(ctx context.Context, change func(*ContextBook) error) (ContextBook, error) {
	unlock, err := lockContexts(ctx)
	if err != nil {
		return ContextBook{}, err
	}
	defer unlock()
	book, err := ReadContexts()
	if err != nil {
		return book, err
	}
	if err := change(&book); err != nil {
		return book, err
	}
	return book, book.write()
}

// lockContexts waits for the lock of the book. It is on a file of its own, since each change replaces that of the book, and
// goes with the handle, and so with the process, however that ends.
func lockContexts(ctx context.Context) (unlock func(), err error) {
	file, err := contextFile()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	name := filepath.Join(filepath.Dir(file), ".contexts.lock")
	ctx, cancel := context.WithTimeout(ctx, contextLockWithin)
	defer cancel()
	for {
		f, err := filelock.Take(name)
		if err == nil {
			return func() { _ = f.Close() }, nil // nothing was written to it
		}
		if !errors.Is(err, filelock.ErrLocked) || !backoff.Sleep(ctx, contextLockEvery) {
			return nil, fmt.Errorf("contexts: lock %s: %w", name, err)
		}
	}
}
