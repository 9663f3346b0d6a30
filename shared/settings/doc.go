// Package settings fills a service's config struct from a file, the environment
// and flags, and refuses to start on anything it does not understand.
//
// Owns: the names of settings in the three sources, their precedence (flags win
// over environment, environment over file, file over defaults), the reading of
// values, and the texts of --help and --print-config.
//
// Never does: guess. An unknown key, an unknown variable with the service's
// prefix, or a value of the wrong form is a problem, and one start reports all
// problems at once.
//
// On failure: Load returns Problems; nothing has been started yet.
//
// A config struct looks like this. Every exported field has a koanf tag, whose
// words are joined by underscores; koanf:"-" leaves a field out.
//
//	type Config struct {
//		NATS   NATS   `koanf:"nats"`
//		Window Window `koanf:"window"`
//	}
//
//	type Window struct {
//		TasksMax int           `koanf:"tasks_max" usage:"active tasks held in memory"`
//		BytesMax int64         `koanf:"bytes_max" unit:"bytes" usage:"memory for payloads"`
//		LeaseMin time.Duration `koanf:"lease_min" usage:"shortest lease a worker may ask for"`
//	}
//
// For the service history, the field Window.TasksMax is then window: {tasks_max: 5}
// in the YAML file, YARD_HISTORY_WINDOW__TASKS_MAX=5 in the environment and
// --window.tasks-max=5 as a flag. An empty variable counts as unset.
//
// Fields are booleans, whole numbers (int and int64), strings, durations ("5s") and []string (a list in the file,
// commas elsewhere). The tag unit:"bytes" lets a number be written as "400KiB", secret:"true" keeps a value out of
// every text this package makes, and secret:"url" what URLs hold before the host: a user and password, or a token.
//
// A struct at any depth may check itself, either with Validate() []Problem, whose
// paths are relative to it, or, where it must not import this package, with
// Validate() error. Errors joined by errors.Join count one by one.
package settings
