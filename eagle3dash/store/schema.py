"""The tables of the catalogue, as numbered steps that are never edited once released.

Text columns named `document`, `settings`, `changes` and `args` hold JSON. There are no foreign keys: DuckDB then fixes an
order of deletion, and every deletion here is one transaction anyway. The row-heavy tables have no keys, which would cost
memory for nothing: they are only ever read and deleted by the hash or result they belong to.
"""

FIRST = """
CREATE TABLE run (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL, created TIMESTAMP NOT NULL, settings VARCHAR NOT NULL,
    tags VARCHAR[] NOT NULL, notes VARCHAR NOT NULL, deleted TIMESTAMP);
CREATE TABLE content (sha256 VARCHAR PRIMARY KEY CHECK (regexp_full_match(sha256, '[0-9a-f]{64}')),
    kind VARCHAR NOT NULL CHECK (kind IN ('drafter', 'capture', 'log', 'target')), document VARCHAR NOT NULL,
    read TIMESTAMP NOT NULL);
CREATE TABLE attachment (run BIGINT, sha256 VARCHAR, position BIGINT NOT NULL, changes VARCHAR NOT NULL,
    PRIMARY KEY (run, sha256));
CREATE TABLE tensor (sha256 VARCHAR PRIMARY KEY CHECK (regexp_full_match(sha256, '[0-9a-f]{64}')),
    bytes BIGINT NOT NULL CHECK (bytes > 0));
CREATE TABLE content_tensor (content VARCHAR NOT NULL, tensor VARCHAR NOT NULL);
CREATE TABLE log_window (log VARCHAR NOT NULL, ordinal BIGINT NOT NULL, line BIGINT NOT NULL, time VARCHAR, rank VARCHAR,
    accept_length DOUBLE, acceptance_rate DOUBLE, accepted BIGINT, drafted BIGINT, rounds BIGINT, survival DOUBLE[],
    running BIGINT, throughput DOUBLE, cumulative BOOLEAN NOT NULL, warmup BOOLEAN NOT NULL);
CREATE TABLE log_round (log VARCHAR NOT NULL, request BIGINT NOT NULL, round BIGINT NOT NULL, accepted INTEGER NOT NULL,
    drafted INTEGER);
CREATE TABLE result (key VARCHAR PRIMARY KEY, kind VARCHAR NOT NULL, document VARCHAR NOT NULL,
    created TIMESTAMP NOT NULL);
CREATE TABLE result_content (key VARCHAR NOT NULL, content VARCHAR NOT NULL);
CREATE TABLE feature_position (result_key VARCHAR NOT NULL, training_slot INTEGER NOT NULL, serving_slot INTEGER NOT NULL,
    sequence INTEGER NOT NULL, position INTEGER NOT NULL, cosine FLOAT, relative_error FLOAT, norm_ratio FLOAT);
CREATE TABLE replay_row (result_key VARCHAR NOT NULL, sequence INTEGER NOT NULL, row INTEGER NOT NULL,
    num_accepted INTEGER NOT NULL, visited BOOLEAN NOT NULL);
CREATE TABLE job (id BIGINT PRIMARY KEY, kind VARCHAR NOT NULL, run VARCHAR, args VARCHAR NOT NULL, key VARCHAR NOT NULL,
    state VARCHAR NOT NULL, done DOUBLE NOT NULL, total DOUBLE NOT NULL, message VARCHAR NOT NULL, device VARCHAR,
    created TIMESTAMP NOT NULL, started TIMESTAMP, ended TIMESTAMP);
"""

MIGRATIONS = (FIRST,)
