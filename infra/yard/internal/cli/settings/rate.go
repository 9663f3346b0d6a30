package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// rateFlag is a rate on the command line: "100/s", "5/10m", "100/s burst 20", or "0" for none. It is a pflag.Value.
type rateFlag yard.Rate

// rateFlags adds the flag of a rate.
func rateFlags(flags *pflag.FlagSet, r *yard.Rate) {
	flags.Var((*rateFlag)(r), "rate", `attempts that start in a time, such as 100/s, 5/10m or "100/s burst 20"; 0 = any number`)
}

// String writes it as it is read.
func (r *rateFlag) String() string {
	if r.Tasks == 0 {
		return "0"
	}
	return rateText(yard.Rate(*r))
}

// Type is what the help calls it.
func (r *rateFlag) Type() string { return "rate" }

// Set reads it.
func (r *rateFlag) Set(text string) error {
	wrong := fmt.Errorf(`want a rate such as 100/s, 5/10m or "100/s burst 20", or 0`)
	if text == "0" {
		*r = rateFlag{}
		return nil
	}
	rate, burst, bursts := strings.Cut(text, " burst ")
	tasks, per, ok := strings.Cut(rate, "/")
	n, err := strconv.Atoi(tasks)
	if !ok || err != nil || n < 1 {
		return wrong
	}
	if per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	d, err := command.ParseDuration(per)
	if err != nil || d < time.Millisecond {
		return wrong
	}
	got := yard.Rate{Tasks: n, Per: d}
	if bursts {
		if got.Burst, err = strconv.Atoi(burst); err != nil || got.Burst < 1 {
			return wrong
		}
	}
	*r = rateFlag(got)
	return nil
}

// rateText is a rate as the flag takes it; "-" = none.
func rateText(r yard.Rate) string {
	if r.Tasks == 0 {
		return "-"
	}
	per := r.Per.String()
	if whole, ok := strings.CutSuffix(per, "m0s"); ok {
		per = whole + "m"
	}
	if whole, ok := strings.CutSuffix(per, "h0m"); ok {
		per = whole + "h"
	}
	if r.Per == 0 || r.Per == time.Second {
		per = "s"
	} else if rest, one := strings.CutPrefix(per, "1"); one && (rest == "m" || rest == "h" || rest == "ms") {
		per = rest
	}
	text := strconv.Itoa(r.Tasks) + "/" + per
	if r.Burst > 0 {
		text += " burst " + strconv.Itoa(r.Burst)
	}
	return text
}
