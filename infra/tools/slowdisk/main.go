// Slowdisk mounts a folder on another one, with a delay at each fsync, as a slow disk has it.
//
//	slowdisk FOLDER MOUNTPOINT
//
// Each line on its input is the delay from then on, such as 50ms. It unmounts when its input ends. It needs root and /dev/fuse.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// delay is that of each fsync, in nanoseconds.
var delay atomic.Int64

type node struct{ fs.LoopbackNode }

type file struct{ *fs.LoopbackFile }

func (f *file) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	select {
	case <-time.After(time.Duration(delay.Load())):
	case <-ctx.Done():
		return syscall.EINTR
	}
	return f.LoopbackFile.Fsync(ctx, flags)
}

func slow(h fs.FileHandle) fs.FileHandle {
	if f, ok := h.(*fs.LoopbackFile); ok {
		return &file{f}
	}
	return h
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	return slow(h), fuseFlags, errno
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, h, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return inode, slow(h), fuseFlags, errno
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "slowdisk:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want FOLDER MOUNTPOINT, got %q", args)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(args[0], &st); err != nil {
		return err
	}
	root := &fs.LoopbackRoot{Path: args[0], Dev: uint64(st.Dev)}
	root.NewNode = func(r *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &node{fs.LoopbackNode{RootData: r}}
	}
	first := root.NewNode(root, nil, "", &st)
	root.RootNode = first
	timeout := time.Second
	server, err := fs.Mount(args[1], first, &fs.Options{
		AttrTimeout: &timeout, EntryTimeout: &timeout,
		MountOptions: fuse.MountOptions{DirectMount: true, FsName: "slowdisk", Name: "slowdisk", MaxWrite: 1 << 20},
	})
	if err != nil {
		return err
	}
	fmt.Println("mounted")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		d, err := time.ParseDuration(lines.Text())
		if err != nil {
			_ = server.Unmount()
			return err
		}
		delay.Store(int64(d))
	}
	return server.Unmount()
}
