// The worker of the tests: handlers DOMAIN TASKLIST
//
// It says on standard output when it begins the task `gate`, and when it has heard SIGTERM.
// A line on standard input opens the gate.
#define _DEFAULT_SOURCE
#include <string.h>
#include <unistd.h>

#include "yardmaster.h"

static volatile sig_atomic_t stop;

static void on_term(int signal) {
	(void)signal;
	stop = 1;
	if (write(STDOUT_FILENO, "stopping\n", 9) < 0) _exit(1);
}

static bool handle(yard_attempt *a, char *out, size_t size) {
	int64_t began = nats_Now();
	if (!strcmp(a->type, "echo")) {
		snprintf(out, size, "%.*s", (int)a->payload.len, a->payload.text);
	} else if (!strcmp(a->type, "flaky") && a->attempt < 3) {
		snprintf(out, size, "attempt \"%d\"", (int)a->attempt);
		return false;
	} else if (!strcmp(a->type, "broken")) {
		snprintf(out, size, "{");
	} else if (!strcmp(a->type, "obedient")) {
		while (!atomic_load(&a->stop)) nats_Sleep(5);
		snprintf(out, size, "cancelled after %d ms", (int)(nats_Now() - began));
		return false;
	} else if (!strcmp(a->type, "long")) {
		nats_Sleep(json_int(json_member(a->payload, "ms"), 0));
		snprintf(out, size, "%d", (int)a->attempt);
	} else if (!strcmp(a->type, "gate")) {
		puts("gate");
		if (getchar() == EOF) return false;
		snprintf(out, size, "\"finished\"");
	} else {
		snprintf(out, size, "%d", (int)a->attempt);
	}
	return true;
}

int main(int argc, char **argv) {
	natsConnection *nc = NULL;
	struct sigaction on = {.sa_handler = on_term, .sa_flags = SA_RESTART};
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTERM, &on, NULL);
	if (argc < 3 || yard_connect(&nc) != NATS_OK) return 1;
	natsStatus s = yard_work(nc, argv[1], argv[2], handle, &stop);
	natsConnection_Destroy(nc);
	nats_Close();
	return s != NATS_OK;
}
