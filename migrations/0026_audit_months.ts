/**
 * Partitions the audit by the month in the UUIDv7 of its records. The existing table becomes the partition of the
 * present month and of everything before: it is read once, to check that it fits, and not written again.
 */
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"

const indexes = ["pkey", "request", "subject", "actor", "gathered"]

/** The smallest UUIDv7 of a millisecond. */
const floorOf = (millis: number) => {
  const digits = millis.toString(16).padStart(12, "0")
  return `${digits.slice(0, 8)}-${digits.slice(8)}-7000-8000-000000000000`
}

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  const end = floorOf(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1))
  const old = `audit_records_p${now.toISOString().slice(0, 7).replace("-", "")}`
  const [{ full }] = (yield* sql.unsafe<{ full: boolean }>(
    `select exists (select from audit_records) as full`,
  )) as unknown as readonly [{ full: boolean }]
  const statements = [
    // Reads some gigabytes.
    `set local statement_timeout = '5min'`,
    `lock table audit_records in access exclusive mode`,
    `alter table audit_records rename to ${old}`,
    ...indexes.map((index) => `alter index audit_records_${index} rename to ${old}_${index}`),
    `create table audit_records (like ${old} including defaults including constraints) partition by range (id)`,
    `alter table audit_records add constraint audit_records_pkey primary key (id)`,
    `create index audit_records_request on audit_records (request_id) where request_id is not null`,
    `create index audit_records_subject on audit_records (subject, id) where subject is not null`,
    `create index audit_records_actor on audit_records (actor, id) where actor is not null`,
    `create index audit_records_gathered on audit_records using gin ((details->'request_ids') jsonb_path_ops)
      where details ? 'request_ids'`,
    `create table audit_records_default partition of audit_records default`,
    // A process of the last version still writes before this version has granted its role its rights.
    `do $$
    declare grantee text;
    begin
      for grantee in
        select distinct r.rolname from pg_class c, aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
        where c.oid = '${old}'::regclass and a.privilege_type = 'INSERT' and a.grantee <> c.relowner
      loop
        execute format('grant select, insert on audit_records to %I', grantee);
      end loop;
    end $$`,
    ...(full
      ? [
        // Of a clock that was ahead.
        `with late as (delete from ${old} where id >= '${end}' returning *) insert into audit_records_default select * from late`,
        `alter table audit_records attach partition ${old} for values from (minvalue) to ('${end}')`,
      ]
      : [`drop table ${old}`]),
  ]
  for (const statement of statements) yield* sql.unsafe(statement)
  yield* sql.unsafe(`set local statement_timeout = '60s'`)
})
