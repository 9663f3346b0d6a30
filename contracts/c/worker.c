// A worker: heartbeats, cancels within a moment, and a drain that ends what runs and takes no more.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "yardmaster.h"

enum {
	answer_in = 4000,       // ms; another try may reach another frontend
	beat_every = 10000,     // ms, or a third of the task's heartbeat timeout
	outcome_grace = 60000,  // ms past its deadline that an outcome is repeated: a log that stands still ends no attempt
	poll_wait = 10000,      // ms
	poll_grace = 5000,      // ms after its wait that a poll's answer may come
	look_every = 100,       // ms between two looks at `stop`
	pause_max = 2000,       // ms
	out_max = 400000,       // bytes of a result
	message_max = 4000,     // bytes of an error's message
};

typedef struct {
	natsConnection *nc;
	const char *domain, *tasklist;
	char lost[256];  // the inbox of a poll that was given up

	pthread_mutex_t mutex;
	pthread_cond_t changed;
	yard_attempt *running;  // NULL = none
	bool hinted;            // beat at once
} worker;

// beat sends one heartbeat and does what the answer says.
static void beat(worker *w, yard_attempt *a) {
	char body[256], code[32];
	snprintf(body, sizeof body, "{\"tasks\":[{\"task_id\":\"%s\",\"token\":\"%s\"}]}", a->task_id, a->token);
	natsMsg *answer = yard_ask(w->nc, w->domain, "tasks.heartbeat", body, answer_in, code);
	if (!answer) return;  // the next one does as well
	json verdict = json_next(json_member(yard_body(answer), "verdicts"), (json){0});
	if (json_is(json_member(verdict, "cancel_requested"), "true") || json_in(json_string(json_member(verdict, "code")), "STALE NOT_FOUND FAILED_PRECONDITION")) atomic_store(&a->stop, true);
	natsMsg_Destroy(answer);
}

// beats is the thread that beats while an attempt runs.
static void *beats(void *arg) {
	worker *w = arg;
	pthread_mutex_lock(&w->mutex);
	for (yard_attempt *a; (a = w->running) != NULL;) {
		int64_t every = a->heartbeat_timeout_ms > 0 && a->heartbeat_timeout_ms / 3 < beat_every ? a->heartbeat_timeout_ms / 3 : beat_every;
		int64_t at = nats_Now() + every;
		struct timespec due = {at / 1000, at % 1000 * 1000000};
		while (w->running && !w->hinted && pthread_cond_timedwait(&w->changed, &w->mutex, &due) == 0) continue;
		if (!w->running) break;
		w->hinted = false;
		pthread_mutex_unlock(&w->mutex);
		beat(w, a);
		pthread_mutex_lock(&w->mutex);
	}
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

// hear is called with a hint of cancels.
static void hear(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *arg) {
	worker *w = arg;
	json ids = json_member(yard_body(msg), "task_ids");
	(void)nc, (void)sub;
	pthread_mutex_lock(&w->mutex);
	for (json id = {0}; w->running && (id = json_next(ids, id)).text;) w->hinted |= json_is(json_string(id), w->running->task_id);
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->mutex);
	natsMsg_Destroy(msg);
}

// report sends an outcome and repeats it until it has a verdict. It returns false if the result was refused.
static bool report(worker *w, yard_attempt *a, const char *verb, const char *field, const char *value, int64_t until) {
	char *body = NULL, code[32] = "UNKNOWN";
	if (asprintf(&body, "{\"tasks\":[{\"task_id\":\"%s\",\"token\":\"%s\",%s%s}]}", a->task_id, a->token, field, value) < 0) return false;
	for (int pause = 50; nats_Now() < until; nats_Sleep(pause), pause = pause * 2 < pause_max ? pause * 2 : pause_max) {
		natsMsg *answer = yard_ask(w->nc, w->domain, verb, body, answer_in, code);
		if (answer) {
			json said = json_string(json_member(json_next(json_member(yard_body(answer), "verdicts"), (json){0}), "code"));
			snprintf(code, sizeof code, "%.*s", (int)said.len, said.text ? said.text : "");
			natsMsg_Destroy(answer);
		}
		// A repeat is harmless after anything else, a code of a later version too.
		if (json_in((json){code, strlen(code)}, "OK STALE NOT_FOUND FAILED_PRECONDITION INVALID_ARGUMENT PERMISSION_DENIED UNIMPLEMENTED")) break;
	}
	free(body);
	return strcmp(code, "INVALID_ARGUMENT") != 0;
}

static void copy(char *out, size_t size, json task, const char *name) {
	json value = json_string(json_member(task, name));
	snprintf(out, size, "%.*s", (int)value.len, value.text ? value.text : "");
}

// run runs a polled task to its verdict, or hands it back.
static void run(worker *w, json task, yard_handler handle, bool stopping) {
	yard_attempt a = {.payload = json_member(task, "payload"), .attempt = json_int(json_member(task, "attempt"), 0),
		.timeout_ms = json_int(json_member(task, "timeout_ms"), 0), .heartbeat_timeout_ms = json_int(json_member(task, "heartbeat_timeout_ms"), 0)};
	int64_t until = nats_Now() + a.timeout_ms + outcome_grace;
	copy(a.task_id, sizeof a.task_id, task, "task_id");
	copy(a.token, sizeof a.token, task, "token");
	copy(a.type, sizeof a.type, task, "type");
	if (stopping) {
		report(w, &a, "tasks.fail", "\"not_started\":true", "", until);
		return;
	}
	char *out = calloc(1, out_max), message[message_max];
	pthread_t beating;
	pthread_mutex_lock(&w->mutex);
	w->running = &a, w->hinted = false;
	pthread_mutex_unlock(&w->mutex);
	if (!out || pthread_create(&beating, NULL, beats, w) != 0) abort();
	bool done = handle(&a, out, out_max) && report(w, &a, "tasks.complete", "\"result\":", out, until);
	if (!done) {
		json_quote(message, sizeof message, *out ? out : "the result was refused");
		report(w, &a, "tasks.fail", "\"error_type\":\"c\",\"message\":", message, until);
	}
	pthread_mutex_lock(&w->mutex);
	w->running = NULL;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->mutex);
	pthread_join(beating, NULL);
	free(out);
}

// poll asks for one task. An answer that is an error is returned too; none is NULL.
static natsMsg *poll(worker *w, volatile sig_atomic_t *stop) {
	char subject[192], body[512], inbox[sizeof w->lost];
	natsSubscription *sub = NULL;
	natsMsg *msg = NULL;
	if (yard_inbox(inbox, sizeof inbox) != NATS_OK) return NULL;
	snprintf(subject, sizeof subject, "yard.v1.%s.tasks.poll.%s", w->domain, w->tasklist);
	snprintf(body, sizeof body, *w->lost ? "{\"max_tasks\":1,\"wait_ms\":%d,\"unanswered\":[\"%s\"]}" : "{\"max_tasks\":1,\"wait_ms\":%d}", poll_wait, w->lost);
	int64_t until = nats_Now() + poll_wait + poll_grace;
	natsStatus s = natsConnection_SubscribeSync(&sub, w->nc, inbox);
	if (s == NATS_OK) s = natsConnection_PublishRequestString(w->nc, subject, inbox, body);
	if (s == NATS_OK) s = NATS_TIMEOUT;
	while (s == NATS_TIMEOUT && !*stop && nats_Now() < until && natsConnection_Status(w->nc) == NATS_CONN_STATUS_CONNECTED) s = natsSubscription_NextMsg(&msg, sub, look_every);
	// Taken back: what has come by the end of the drain is here, what comes later goes to others at once.
	if (s == NATS_TIMEOUT && natsSubscription_Drain(sub) == NATS_OK) s = natsSubscription_NextMsg(&msg, sub, answer_in);
	snprintf(w->lost, sizeof w->lost, "%s", msg ? "" : inbox);
	natsSubscription_Destroy(sub);
	return msg;
}

natsStatus yard_work(natsConnection *nc, const char *domain, const char *tasklist, yard_handler handle, volatile sig_atomic_t *stop) {
	worker w = {.nc = nc, .domain = domain, .tasklist = tasklist, .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	natsSubscription *hints = NULL;
	char subject[192];
	snprintf(subject, sizeof subject, "yard.v1.%s.hint.cancel", domain);
	natsStatus s = natsConnection_Subscribe(&hints, nc, subject, hear, &w);
	for (int pause = 50; s == NATS_OK && !*stop;) {
		int64_t asked = nats_Now();
		natsMsg *answer = poll(&w, stop);
		json task = answer ? json_next(json_member(yard_body(answer), "tasks"), (json){0}) : (json){0};
		if (task.text) run(&w, task, handle, *stop);
		pause = task.text || nats_Now() - asked > poll_wait / 2 ? 50 : pause * 2 < pause_max ? pause * 2 : pause_max;
		if (pause > 50) nats_Sleep(pause);
		natsMsg_Destroy(answer);
	}
	if (natsSubscription_Drain(hints) == NATS_OK) natsSubscription_WaitForDrainCompletion(hints, answer_in);
	natsSubscription_Destroy(hints);
	return s;
}
