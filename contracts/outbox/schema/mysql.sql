CREATE TABLE IF NOT EXISTS yard_outbox (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  domain varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lane smallint NOT NULL,
  state smallint NOT NULL DEFAULT 0,
  tasks int NOT NULL,
  body longblob NOT NULL,
  created_ms bigint NOT NULL,
  reason text,
  KEY yard_outbox_next (domain, state, lane, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS yard_outbox_lane (
  domain varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  lane smallint NOT NULL,
  owner varchar(64) NOT NULL DEFAULT '',
  until_ms bigint NOT NULL DEFAULT 0,
  turns bigint NOT NULL DEFAULT 0,
  request_id varchar(36) NOT NULL DEFAULT '',
  row_ids mediumtext,
  PRIMARY KEY (domain, lane)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4;
