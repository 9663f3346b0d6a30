package usage

import (
	"testing"
	"time"
)

func TestWhatRedisTells(t *testing.T) {
	use, err := RedisOf(map[string]map[string]string{
		"CPU": {"used_cpu_sys": "1.250000", "used_cpu_user": "2.750000", "used_cpu_sys_children": "9.0"},
		"Commandstats": {
			"cmdstat_evalsha":    "calls=40,usec=900,usec_per_call=22.50,rejected_calls=0,failed_calls=0",
			"cmdstat_eval":       "calls=2,usec=100,usec_per_call=50,rejected_calls=0,failed_calls=0",
			"cmdstat_zadd":       "calls=300,usec=100,usec_per_call=0.3,rejected_calls=0,failed_calls=0",
			"cmdstat_config|get": "calls=1,usec=100,usec_per_call=100,rejected_calls=0,failed_calls=0",
		},
	})
	if err != nil || use != (Redis{cpu: 4 * time.Second, scripts: 42, commands: 301}) {
		t.Errorf("%+v, %v", use, err)
	}
	if got := use.Since(Redis{cpu: time.Second, scripts: 2, commands: 1}, 100); *got != (RedisUse{CPUPerTask: 30_000, ScriptsPerTask: 0.4, CommandsPerTask: 3}) {
		t.Errorf("%+v", *got)
	}
	for _, info := range []map[string]map[string]string{
		nil,
		{"CPU": {"used_cpu_user": "many", "used_cpu_sys": "1"}},
		{"CPU": {"used_cpu_user": "1", "used_cpu_sys": "1"}, "Commandstats": {"cmdstat_get": "calls=x,usec=1"}},
	} {
		if use, err := RedisOf(info); err == nil {
			t.Errorf("%q is read as %+v", info, use)
		}
	}
}
