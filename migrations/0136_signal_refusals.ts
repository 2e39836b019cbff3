/** What was refused of transmitters, by hour and reason, and since when a transmitter is polled. */
const statements: ReadonlyArray<string> = [
  `create table signal_refusals (
    transmitter text not null,
    hour timestamptz not null,
    err text not null,
    tokens bigint not null,
    primary key (transmitter, hour, err)
  ) with (fillfactor = 50)`,
  // Null: a program of before wrote the row.
  `alter table signal_polls add column listed_at timestamptz`,
]

export default statements
