CREATE TABLE IF NOT EXISTS yard_outbox (
  id integer PRIMARY KEY AUTOINCREMENT,
  domain text NOT NULL,
  lane integer NOT NULL,
  state integer NOT NULL DEFAULT 0,
  tasks integer NOT NULL,
  body blob NOT NULL,
  created_ms integer NOT NULL,
  reason text
);

CREATE INDEX IF NOT EXISTS yard_outbox_next ON yard_outbox (domain, state, lane, id);

CREATE TABLE IF NOT EXISTS yard_outbox_lane (
  domain text NOT NULL,
  lane integer NOT NULL,
  owner text NOT NULL DEFAULT '',
  until_ms integer NOT NULL DEFAULT 0,
  turns integer NOT NULL DEFAULT 0,
  request_id text NOT NULL DEFAULT '',
  row_ids text,
  PRIMARY KEY (domain, lane)
);
