// A worker for tasks of type email.send: mailer DOMAIN TASKLIST. SIGTERM or Ctrl-C drains it.
#include "yardmaster.h"

static volatile sig_atomic_t stop;

static void on_signal(int signal) {
	(void)signal;
	stop = 1;
}

static bool send_mail(yard_attempt *a, char *out, size_t size) {
	json to = json_string(json_member(a->payload, "to"));
	printf("mail for %.*s\n", (int)to.len, to.text ? to.text : "");
	snprintf(out, size, "{\"message_id\":\"<%.*s>\"}", (int)to.len, to.text ? to.text : "");
	return true;
}

int main(int argc, char **argv) {
	natsConnection *nc = NULL;
	const char *domain = argc > 1 ? argv[1] : "shop", *tasklist = argc > 2 ? argv[2] : "mail";
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	natsStatus s = yard_connect(&nc);
	if (s == NATS_OK) printf("waiting for tasks of %s in %s\n", tasklist, domain);
	if (s == NATS_OK) s = yard_work(nc, domain, tasklist, send_mail, &stop);
	if (s != NATS_OK) {
		fprintf(stderr, "%s\n", natsStatus_GetText(s));
		nats_PrintLastErrorStack(stderr);
	}
	natsConnection_Destroy(nc);
	nats_Close();
	return s != NATS_OK;
}
