"""The named questions that pages put to the store: fixed SQL with parameters, answers of bounded size.

Every answer is aggregated in DuckDB to at most LIMIT rows before it travels. A number that is missing, infinite or not a
number is left out of means, and a mean over nothing is missing (NaN in the frame). Bucket b of n holds
position * n // length: buckets of equal width.
"""

from __future__ import annotations

from typing import Any

import pandas
from duckdb import DuckDBPyConnection as Cursor

LIMIT = 2000

FEATURE_POSITION_MEAN = """
WITH part AS (SELECT * FROM feature_position
              WHERE result_key = $result_key AND training_slot = $training_slot AND serving_slot = $serving_slot),
     size AS (SELECT max(position) + 1 AS length, least($buckets, max(position) + 1) AS n FROM part)
SELECT min(position) AS position, max(position) AS position_end, count(*) AS tokens,
       avg(cosine) FILTER (WHERE isfinite(cosine)) AS cosine,
       min(cosine) FILTER (WHERE isfinite(cosine)) AS cosine_low,
       avg(relative_error) FILTER (WHERE isfinite(relative_error)) AS relative_error,
       avg(norm_ratio) FILTER (WHERE isfinite(norm_ratio)) AS norm_ratio
FROM part, size GROUP BY position::BIGINT * n // length ORDER BY 1
"""

REPLAY_POSITION = """
WITH part AS (SELECT * FROM replay_row WHERE result_key = $result_key),
     size AS (SELECT max(row) + 1 AS length, least($buckets, max(row) + 1) AS n FROM part)
SELECT min(row) AS position, max(row) AS position_end, count(*) AS rows, count(*) FILTER (WHERE visited) AS rounds,
       1 + avg(num_accepted) AS row_accept_length,
       1 + avg(num_accepted) FILTER (WHERE visited) AS accept_length
FROM part, size GROUP BY row::BIGINT * n // length ORDER BY 1
"""

REPLAY_SEQUENCES = """
SELECT sequence, count(*) AS rows, count(*) FILTER (WHERE visited) AS rounds,
       1 + avg(num_accepted) AS row_accept_length,
       1 + avg(num_accepted) FILTER (WHERE visited) AS accept_length
FROM replay_row WHERE result_key = $result_key GROUP BY sequence ORDER BY sequence LIMIT $limit
"""

# Windows are weighed by what they count, rounds or drafted tokens, when all of them say it, and else alike. Totals since
# the server started are not averaged: the last of a bucket stands for it.
LOG_WINDOWS = """
WITH weighed AS (
    SELECT *, CASE WHEN count(rounds) OVER () = count(*) OVER () THEN rounds
                   WHEN count(drafted) OVER () = count(*) OVER () THEN drafted ELSE 1 END AS weight,
           CASE WHEN count(drafted) OVER () = count(*) OVER () THEN drafted
                WHEN count(rounds) OVER () = count(*) OVER () THEN rounds ELSE 1 END AS drafts,
           row_number() OVER (PARTITION BY rank, warmup, cumulative ORDER BY ordinal) - 1 AS place,
           count(*) OVER (PARTITION BY rank, warmup, cumulative) AS length
    FROM log_window WHERE log = $log),
     size AS (SELECT greatest(1, $max_points // nullif(count(DISTINCT (rank, warmup, cumulative)), 0)) AS n FROM weighed)
SELECT rank, warmup, cumulative, min(line) AS line, max(line) AS line_end, arg_min(time, ordinal) AS time,
       arg_max(time, ordinal) AS time_end, count(*) AS windows,
       CASE WHEN cumulative THEN arg_max(rounds, ordinal) ELSE sum(rounds) END AS rounds,
       CASE WHEN cumulative THEN arg_max(accept_length, ordinal) ELSE coalesce(
           sum(accept_length * weight) / nullif(sum(weight) FILTER (WHERE accept_length IS NOT NULL), 0),
           avg(accept_length)) END AS accept_length,
       min(accept_length) AS accept_length_low, max(accept_length) AS accept_length_high,
       CASE WHEN cumulative THEN arg_max(acceptance_rate, ordinal) ELSE coalesce(
           sum(acceptance_rate * drafts) / nullif(sum(drafts) FILTER (WHERE acceptance_rate IS NOT NULL), 0),
           avg(acceptance_rate)) END AS acceptance_rate,
       avg(running) AS running, avg(throughput) AS throughput
FROM weighed, size GROUP BY rank, warmup, cumulative, place * least(n, length) // length
ORDER BY line, rank NULLS FIRST LIMIT $limit
"""

LOG_SURVIVAL = """
SELECT place - 1 AS position, count(*) AS windows, sum(value * weight) / nullif(sum(weight), 0) AS survival
FROM (SELECT unnest(survival) AS value, generate_subscripts(survival, 1) AS place,
             CASE WHEN count(rounds) OVER () = count(*) OVER () THEN rounds
                  WHEN count(drafted) OVER () = count(*) OVER () THEN drafted ELSE 1 END AS weight
      FROM log_window WHERE log = $log AND survival IS NOT NULL AND NOT warmup)
GROUP BY place ORDER BY place LIMIT $limit
"""

ROUNDS_HISTOGRAM = """
SELECT accepted AS num_accepted, count(*) AS rounds FROM log_round WHERE log = $log
GROUP BY accepted ORDER BY accepted LIMIT $limit
"""

LOG_REQUESTS = """
WITH part AS (SELECT request, count(*) AS rounds, sum(accepted) AS accepted
              FROM log_round WHERE log = $log GROUP BY request),
     size AS (SELECT max(request) + 1 AS length, least($buckets, max(request) + 1) AS n FROM part)
SELECT min(request) AS request, max(request) AS request_end, sum(rounds) AS rounds,
       1 + sum(accepted) / sum(rounds) AS accept_length,
       1 + min(accepted / rounds) AS accept_length_low, 1 + max(accepted / rounds) AS accept_length_high
FROM part, size GROUP BY request * n // length ORDER BY 1
"""

LOG_ROUNDS = """
WITH part AS (SELECT * FROM log_round WHERE log = $log),
     size AS (SELECT max(round) + 1 AS length, least($buckets, max(round) + 1) AS n FROM part)
SELECT min(round) AS round, max(round) AS round_end, count(*) AS rounds, 1 + avg(accepted) AS accept_length
FROM part, size GROUP BY round * n // length ORDER BY 1
"""

RUNS = """
WITH bytes AS (SELECT content, sum(bytes) AS bytes FROM content_tensor JOIN tensor ON tensor = sha256 GROUP BY content)
SELECT name, created, tags, notes, count(*) FILTER (WHERE kind = 'drafter') AS drafters,
       count(*) FILTER (WHERE kind = 'capture') AS captures, count(*) FILTER (WHERE kind = 'log') AS logs,
       count(*) FILTER (WHERE kind = 'target') AS targets, coalesce(sum(bytes), 0)::BIGINT AS bytes
FROM run LEFT JOIN attachment ON run = id LEFT JOIN content USING (sha256) LEFT JOIN bytes ON sha256 = bytes.content
WHERE deleted IS NULL GROUP BY id, name, created, tags, notes ORDER BY id DESC LIMIT $limit
"""

QUERIES = {
    "feature_position_mean": FEATURE_POSITION_MEAN,
    "replay_position": REPLAY_POSITION,
    "replay_sequences": REPLAY_SEQUENCES,
    "log_windows": LOG_WINDOWS,
    "log_survival": LOG_SURVIVAL,
    "rounds_histogram": ROUNDS_HISTOGRAM,
    "log_requests": LOG_REQUESTS,
    "log_rounds": LOG_ROUNDS,
    "runs": RUNS,
}
COUNTS = {"buckets": 200, "max_points": 1000}  # defaults; never more than LIMIT


def frame(cursor: Cursor, name: str, params: dict[str, Any]) -> pandas.DataFrame:
    """Run a named query; its SELECT gives the columns. Raises KeyError on another name."""
    sql = QUERIES[name]
    if "$limit" in sql:
        params = {**params, "limit": LIMIT}
    for count, default in COUNTS.items():
        if f"${count}" in sql:
            params = {**params, count: min(max(int(params.get(count, default)), 1), LIMIT)}
    return cursor.execute(sql, params).df()
