package command

import (
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownFlag is what pflag says of a flag that a command does not have.
var unknownFlag = regexp.MustCompile(`^unknown flag: --([a-z0-9-]+)$`)

// FlagError is an error of a flag of cmd. It suggests the flag that may be meant.
func FlagError(cmd *cobra.Command, err error) error {
	m := unknownFlag.FindStringSubmatch(err.Error())
	if m == nil {
		return Usagef("%w", err)
	}
	nearest, least := "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(m[1], f.Name); d < least && !f.Hidden {
			nearest, least = f.Name, d
		}
	})
	if nearest == "" {
		return Usagef("%w", err)
	}
	return Usagef("%w: did you mean --%s?", err, nearest)
}

// distance is how many letters are to be added, left out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
