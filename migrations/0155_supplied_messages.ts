/** Messages of a lost time that the broker lost as well and that an operator supplied (services/recovery/SuppliedMessages.ts). */
const statements: ReadonlyArray<string> = [
  `create table supplied_messages (
    stream text not null,
    -- When the broker made the stream: another one counts its sequences anew.
    created text not null,
    -- The sequence; or the id of a message that came another way than by the stream.
    name text not null,
    -- Null: it came another way than by the stream.
    sequence bigint,
    data text not null,
    supplied_at timestamptz not null,
    primary key (stream, created, name)
  )`,
  `create index supplied_messages_sequence on supplied_messages (stream, created, sequence)`,
]

export default statements
