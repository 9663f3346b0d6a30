CREATE TABLE IF NOT EXISTS yard_outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  domain varchar(64) NOT NULL,
  lane smallint NOT NULL,
  state smallint NOT NULL DEFAULT 0,
  tasks integer NOT NULL,
  body bytea NOT NULL,
  created_ms bigint NOT NULL,
  reason text
);

CREATE INDEX IF NOT EXISTS yard_outbox_next ON yard_outbox (domain, state, lane, id);

CREATE TABLE IF NOT EXISTS yard_outbox_lane (
  domain varchar(64) NOT NULL,
  lane smallint NOT NULL,
  owner varchar(64) NOT NULL DEFAULT '',
  until_ms bigint NOT NULL DEFAULT 0,
  turns bigint NOT NULL DEFAULT 0,
  request_id varchar(36) NOT NULL DEFAULT '',
  row_ids text,
  PRIMARY KEY (domain, lane)
);
