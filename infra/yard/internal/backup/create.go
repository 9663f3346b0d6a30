package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

// pingTimeout is for how long a process that is subscribed may not answer: it lives all the same.
const pingTimeout = 2 * time.Second

// Create copies the cluster into dir, which is empty or does not exist, and calls copied for each stream. It fails if a
// service lives, or anything was stored or deleted meanwhile.
func Create(ctx context.Context, nc *nats.Conn, dir string, copied func(Stream)) (*Manifest, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if err := atRest(ctx, nc); err != nil {
		return nil, err
	}
	m, err := describe(ctx, nc, js)
	if err != nil {
		return nil, err
	}
	if err := makeEmpty(dir); err != nil {
		return nil, err
	}
	names := topology.Stored(m.Partitioning)
	before, err := states(ctx, js, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		s, err := save(ctx, nc, dir, name)
		if err != nil {
			return nil, fmt.Errorf("copy the stream %s: %w", name, err)
		}
		m.Streams = append(m.Streams, s)
		copied(s)
	}
	after, err := states(ctx, js, names)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if before[i] != after[i] {
			return nil, fault.New(fault.FailedPrecondition, "the stream %s changed during the copy, so this is no backup: stop all services first", name)
		}
	}
	if err := atRest(ctx, nc); err != nil {
		return nil, err
	}
	return m, m.write(dir)
}

// describe is the manifest of the cluster, without its streams.
func describe(ctx context.Context, nc *nats.Conn, js jetstream.JetStream) (*Manifest, error) {
	n, err := provision.Partitioning(ctx, js)
	if errors.Is(err, provision.ErrNotProvisioned) {
		return nil, fault.New(fault.FailedPrecondition, "there is no cluster on this server: %v", err)
	}
	if err != nil {
		return nil, err
	}
	config, err := js.KeyValue(ctx, topology.ConfigBucket)
	if err != nil {
		return nil, err
	}
	version, err := catalog.GetVersion(ctx, config)
	if err != nil {
		return nil, err
	}
	return &Manifest{
		Form: form, Time: time.Now().UTC(), NATSCluster: nc.ConnectedClusterName(), NATSVersion: nc.ConnectedServerVersion(),
		YardVersion: process.ReadBuildInfo().Version, LogVersion: version.Number, Partitioning: n,
	}, nil
}

// atRest refuses while a process of a service lives.
func atRest(ctx context.Context, nc *nats.Conn) error {
	var living []string
	for _, service := range []permissions.Role{permissions.Frontend, permissions.Matching, permissions.History, permissions.Timer} {
		node, lives, err := ping(ctx, nc, string(service))
		if err != nil {
			return fmt.Errorf("ask whether a %s lives: %w", service, err)
		}
		if lives {
			living = append(living, strings.TrimSpace(string(service)+" "+node))
		}
	}
	if len(living) > 0 {
		return fault.New(fault.FailedPrecondition, "the cluster is not at rest: stop all services first; these live: %s (`yard status` shows all)", strings.Join(living, ", "))
	}
	return nil
}

// ping reports whether any process of a service lives, and the node that answers first.
func ping(ctx context.Context, nc *nats.Conn, service string) (node string, lives bool, err error) {
	within, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	msg, err := nc.RequestWithContext(within, topology.Ping(service), nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return "", false, nil
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		return "", true, nil
	case err != nil:
		return "", false, err
	}
	var answer micro.Ping
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return "", true, nil // it lives, whatever it says
	}
	return answer.Metadata["node"], true, nil
}

// mark is what changes of a stream with each message that is stored or deleted.
type mark struct{ last, messages uint64 }

// states are the marks of streams. Messages that expire by themselves do not count.
func states(ctx context.Context, js jetstream.JetStream, names []string) ([]mark, error) {
	all := make([]mark, len(names))
	for i, name := range names {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read the state of the stream %s: %w", name, err)
		}
		info := stream.CachedInfo()
		all[i] = markOf(info, info.State.Msgs)
	}
	return all, nil
}

// markOf is the mark of a stream that has so many messages.
func markOf(info *jetstream.StreamInfo, messages uint64) mark {
	if info.Config.AllowMsgTTL {
		messages = 0
	}
	return mark{info.State.LastSeq, messages}
}

// makeEmpty makes a folder that only its owner reads: a backup has the tasks of all domains, and the secret of tokens.
func makeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fault.New(fault.FailedPrecondition, "%s is not empty: name another folder", dir)
	}
	return nil
}

// save copies one stream, and returns once its file is on disk.
func save(ctx context.Context, nc *nats.Conn, dir, name string) (Stream, error) {
	s := Stream{Name: name}
	f, err := os.OpenFile(s.file(dir), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return s, err
	}
	hash := sha256.New()
	counted := &counter{}
	config, at, err := snapshot(ctx, nc, name, io.MultiWriter(f, hash, counted))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return s, err
	}
	s.Config, s.FirstSeq, s.LastSeq, s.Messages, s.Bytes = config, at.FirstSeq, at.LastSeq, at.Messages, at.Bytes
	s.FileBytes, s.SHA256 = counted.bytes, hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

// counter counts what is written to it.
type counter struct{ bytes int64 }

// Write never fails.
func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}
