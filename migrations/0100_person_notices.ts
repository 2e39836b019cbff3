/**
 * What people are told by mail of their requests and of what waits for their signature (docs/requests.md), and how each
 * person wants to be told.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // A notice is told once: a person hears of one outcome of one request once.
  `create table person_notices (
    person_id text not null,
    kind text not null,
    -- A request, or a review.
    subject_id uuid not null,
    created_at timestamptz not null,
    -- When it may be mailed; null once it was told, or when the person wants no mail of it.
    due_at timestamptz,
    mail_id uuid,
    primary key (subject_id, kind, person_id)
  ) with (fillfactor = 80)`,
  `create index person_notices_due on person_notices (due_at) where due_at is not null`,
  `create index person_notices_person on person_notices (person_id) where due_at is not null`,
  `create index person_notices_mail on person_notices (mail_id) where mail_id is not null`,
  `create index person_notices_told on person_notices (created_at) where due_at is null`,
  `create table notice_settings (
    person_id text primary key,
    delivery text not null default 'digest' check (delivery in ('immediately', 'digest', 'off')),
    -- When the last mail of notices was made.
    mailed_at timestamptz
  )`,
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
