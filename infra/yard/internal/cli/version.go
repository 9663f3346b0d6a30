package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/shared/process"
)

// versionJSON is what `yard version` says to programs.
type versionJSON struct {
	process.BuildInfo
	LogVersion versionRange `json:"log_version"`
}

// versionRange is which formats of stored records this program reads, and the newest it writes.
type versionRange struct {
	ReadMin  uint32 `json:"read_min"`
	ReadMax  uint32 `json:"read_max"`
	WriteMax uint32 `json:"write_max"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this command, and the log versions it reads and writes",
		Long: `Show the version of this command, the commit it was built from, and the log versions it
reads and writes. It asks no server: yard upgrade status tells what a cluster runs.`,
		Example: "  yard version\n  yard version -o json",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	v := versionJSON{process.ReadBuildInfo(), versionRange{logversion.First, logversion.ReadMax(), logversion.WriteMax()}}
	if a.json {
		return a.printJSON(v)
	}
	commit := v.Commit
	if v.Changed {
		commit += ", with changes"
	}
	var t table
	t.row("version", v.Version)
	t.row("commit", commit)
	t.row("date", v.Date)
	t.row("go", v.Go+" "+v.Platform)
	t.row("log version", fmt.Sprintf("reads %d to %d, writes up to %d", v.LogVersion.ReadMin, v.LogVersion.ReadMax, v.LogVersion.WriteMax))
	return a.printTable(&t)
}
