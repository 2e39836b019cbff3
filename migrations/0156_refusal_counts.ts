/**
 * Refused tokens, counted by each process: its totals only grow, so that a write is repeated without counting twice.
 * Programs of earlier versions add to `signal_refusals`, which is read as well until its rows are pruned.
 */
const statements: ReadonlyArray<string> = [
  `create table signal_refusal_counts (
    transmitter text not null,
    hour timestamptz not null,
    err text not null,
    process uuid not null,
    tokens bigint not null,
    primary key (transmitter, hour, err, process)
  ) with (fillfactor = 50)`,
]

export default statements
