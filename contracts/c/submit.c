// Submits a task and waits for its result: submit DOMAIN TASKLIST TYPE PAYLOAD
#include <string.h>

#include "yardmaster.h"

int main(int argc, char **argv) {
	natsConnection *nc = NULL;
	char body[8192], id[37], code[32] = "UNAVAILABLE";
	yard_request_id(id);
	if (yard_connect(&nc) != NATS_OK) {
		nats_PrintLastErrorStack(stderr);
		return 1;
	}
	natsMsg *answer = NULL;
	// Nothing was stored, or this is unknown. Sent again with its id, the task is stored once. The tries are counted: the
	// first one shares its write to disk with other requests. A clock that is off takes a new id.
	for (int pause = 50, tries = 1; !answer && pause < 10000 && strstr("UNAVAILABLE RESOURCE_EXHAUSTED UNKNOWN CLOCK", code); pause *= 2, tries++) {
		if (pause > 50) nats_Sleep(pause);
		if (strcmp(code, "CLOCK") == 0) yard_request_id(id), tries = 1;
		snprintf(body, sizeof body, "{\"request_id\":\"%s\",\"tries\":%d,\"tasklist\":\"%s\",\"wait\":true,\"tasks\":[{\"type\":\"%s\",\"payload\":%s}]}", id,
			tries, argc > 2 ? argv[2] : "mail", argc > 3 ? argv[3] : "email.send", argc > 4 ? argv[4] : "{\"to\":\"ann@example.com\"}");
		answer = yard_ask(nc, argc > 1 ? argv[1] : "shop", "tasks.submit", body, 42000, code);
	}
	if (answer) {
		json task = json_member(yard_body(answer), "task"), result = json_member(task, "result"), state = json_string(json_member(task, "state"));
		printf("%.*s %.*s\n", (int)state.len, state.text ? state.text : "", (int)result.len, result.text ? result.text : "");
	} else {
		fprintf(stderr, "%s\n", code);
	}
	natsMsg_Destroy(answer);
	natsConnection_Destroy(nc);
	nats_Close();
	return !answer;
}
