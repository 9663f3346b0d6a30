package command

import (
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// Value is a pflag.Value: Kind is what the help calls it, Show writes it as Parse reads it.
type Value struct {
	Kind  string
	Show  func() string
	Parse func(text string) error
}

// String returns what the flag holds; pflag also asks the zero value.
func (v Value) String() string {
	if v.Show == nil {
		return ""
	}
	return v.Show()
}

// Type is what the help calls it.
func (v Value) Type() string { return v.Kind }

// Set parses text.
func (v Value) Set(text string) error { return v.Parse(text) }

// DurationVar adds a flag of a duration, which may have weeks and days: 2w, 1d12h.
func DurationVar(flags *pflag.FlagSet, to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	show := func() string {
		if *to == 0 {
			return "0" // as pflag knows it: the help does not show such a default
		}
		return to.String()
	}
	flags.Var(Value{"duration", show, func(text string) (err error) {
		*to, err = ParseDuration(text)
		return err
	}}, name, usage)
}

// weeksAndDays are numbers of weeks and of days in front of what time.ParseDuration reads.
var weeksAndDays = regexp.MustCompile(`^(?:(\d{1,6})w)?(?:(\d{1,6})d)?`)

const daysMax = 100_000

// ParseDuration parses a duration with weeks and days.
func ParseDuration(text string) (time.Duration, error) {
	m := weeksAndDays.FindStringSubmatch(text)
	weeks, _ := strconv.Atoi(m[1]) // "" is none
	days, _ := strconv.Atoi(m[2])
	if days += 7 * weeks; days > daysMax {
		return 0, fmt.Errorf("%q: more than %d days", text, daysMax)
	}
	rest, whole := text[len(m[0]):], time.Duration(days)*24*time.Hour
	if rest == "" && m[0] != "" {
		return whole, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration: want one such as 500ms, 30s, 2h or 7d", text)
	}
	return whole + d, nil
}

// ByFlag adds the flag that names who does what it says; default the user of this system.
func ByFlag(flags *pflag.FlagSet, by *string, what string) {
	flags.StringVar(by, "by", "", "who "+what+", for people; default the user of this system (environment: "+envBy+")")
	*by = UserName()
}

// pauserBytesMax is how long the engine takes the name of who pauses or drains to be.
const pauserBytesMax = 128

// envBy names the person, if it is not the user of this system.
const envBy = "YARD_BY"

// UserName is the person who runs the command, or "" if that is not known.
func UserName() string {
	if name := os.Getenv(envBy); name != "" && len(name) <= pauserBytesMax {
		return name
	}
	u, err := user.Current()
	if err != nil || len(u.Username) > pauserBytesMax {
		return ""
	}
	return u.Username
}
