/** A backup of a database in use, restored into an empty one, by the parts that the commands are made of. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Buffer } from "node:buffer"
import { createHash } from "node:crypto"
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { constants, getPriority } from "node:os"
import { join } from "node:path"
import { AccessReviews } from "../../../../services/access/AccessReviews.ts"
import { Roles } from "../../../../services/people/Roles.ts"
import { type Backfill, bite, isFilled, progressOf } from "../../../../services/platform/database/Backfills.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { leastIdAt } from "../../../../services/platform/Ids.ts"
import { run } from "../../../../services/platform/database/UnitOfWork.ts"
import { connect } from "../../../../src/cli/backup/BackupConnection.ts"
import { fill } from "../../../../src/cli/backup/RestoreTables.ts"
import { outputTo } from "../../../../src/cli/backup/Output.ts"
import { openBackup } from "../../../../src/cli/backup/BackupReader.ts"
import { writeBackup } from "../../../../src/cli/backup/BackupWriter.ts"
import { tables } from "../../../../src/Migrations.ts"
import { until } from "../../../e2e/support/Until.ts"
import { home, start } from "../../../support/Processes.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { access, identity, institution, member, person, project } from "../../../support/TestIdentity.ts"

const day = Date.parse("2026-01-31T00:00:00Z")
const madeAt = new Date("2026-02-01T00:00:00.000Z")
const options = { tables, tell: () => {} }

const written = Effect.fnUntraced(function* (file: string, meanwhile: () => Promise<void> = () => Promise.resolve()) {
  const { url } = yield* TestDatabase
  const db = yield* connect(url)
  const out = yield* outputTo(file, { force: false })
  let first = true
  const tell = () => {
    if (!first) return
    first = false
    void meanwhile()
  }
  return yield* Effect.promise(() => writeBackup(db, out, { ...options, madeAt, tell }))
}, Effect.scoped)

/** Every row of every table as text, except rows that record the time of a check. */
const contents = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const db = yield* connect(url)
  return yield* Effect.promise(async () => {
    const found: Record<string, unknown> = {}
    for (const table of tables.filter((table) => table !== "installation")) {
      found[table] = await db.rows(`select t::text as row from "${table}" t order by 1`)
    }
    return found
  })
}, Effect.scoped)

const restored = Effect.fnUntraced(function* (file: string) {
  const into = yield* TestDatabase.make
  const db = yield* connect(into.ownerUrl)
  const backup = yield* Effect.promise(() => openBackup(file, () => {}))
  const rows = yield* Effect.promise(() => fill(db, backup, { ...options, now: madeAt }))
  yield* Effect.promise(() => backup.close())
  return { into, db, rows, manifest: backup.manifest }
})

const failure = (work: () => Promise<unknown>) =>
  Effect.promise(() => work().then(() => "nothing", (error) => error instanceof Error ? error.message : String(error)))

layer(AccessReviews.layer.pipe(Layer.provide(Roles.layer), Layer.provideMerge(identity)), {
  excludeTestServices: true,
  timeout: "2 minutes",
})("Backup", (it) => {
  it.effect("every table of the schema is in the backup", () =>
    Effect.gen(function* () {
      const { owner } = yield* Database
      const found = yield* owner<{ name: string }>`
        select c.relname as name from pg_class c
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
          and c.relname !~ '^(effect_sql|stepped_|cluster_)' order by 1`
      assert.deepStrictEqual(found.map(({ name }) => name), [...tables].sort())
    }))

  it.effect("a restore gives back every row, partition, sequence and trigger", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const fern = yield* institution({ name: 'Färn \\N \\t "quoted"' })
      const [sam, ada, pat] = [yield* person(), yield* person(), yield* person()]
      yield* member(fern, sam, "sponsor")
      yield* member(fern, ada, "administrator")
      const portal = yield* project(fern)
      const accessId = yield* access(fern, portal, pat)
      const reviews = yield* AccessReviews
      const on = { institutionId: fern, reason: "a reason of some length" }
      const { review_id } = yield* run(reviews.propose({
        ...on,
        personId: sam,
        access_id: accessId,
        access_version: 1,
      }))
      yield* run(reviews.approve({ ...on, personId: ada, reviewId: review_id, stepUp: Effect.void }))
      const [from, to] = [leastIdAt(day), leastIdAt(day + 86_400_000)]
      yield* owner.unsafe(`create table deliveries_p20260131 partition of deliveries
        for values from ('${from}') to ('${to}') with (fillfactor = 70)`)
      yield* sql`
        insert into deliveries (id, webhook_id, account_id, event_id, event_type, status, cycle, attempt, created_at,
          response_body)
        select id::uuid, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'email.sent', 'delivered', 1, 1,
          '2026-01-31', repeat('line' || chr(10) || chr(9) || chr(92) || '. ', 50)
        from unnest(${[leastIdAt(day + 1), leastIdAt(0)]}::text[]) id`
      yield* sql`select nextval('claims')`
      yield* sql`insert into vault_keys (kid, check_value, created_at) values ('k1', ${new Uint8Array([
        0,
        255,
        10,
      ])}, '2026-01-01')`

      // A hold of an earlier restore, long over.
      yield* owner`update installation set lost_since = '2026-01-01'`
      const folder = yield* home
      const file = join(folder, "backup")
      const manifest = yield* written(file)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.deepStrictEqual(readdirSync(folder).filter((name) => name.startsWith("backup")), ["backup"])
      assert.deepStrictEqual(manifest.keys, [{ kid: "k1", check: "00ff0a" }])

      const { db, into, manifest: read, rows } = yield* restored(file)
      assert.deepStrictEqual(read, manifest)
      assert.strictEqual(rows, manifest.parts.reduce((sum, part) => sum + part.rows, 0))
      const { url } = yield* TestDatabase
      assert.deepStrictEqual(yield* contents(into.url), yield* contents(url))
      const ask = <Row extends object>(text: string) => Effect.promise(() => db.rows<Row>(text))
      assert.deepStrictEqual(yield* ask(`select count(*)::int as n from deliveries_p20260131`), [{ n: 1 }])
      const [number] = yield* sql<{ last: bigint }>`select last_value as last from claims`
      assert.deepStrictEqual(yield* ask(`select nextval('claims')::text as n`), [{ n: String(number!.last + 1n) }])
      assert.match(
        yield* failure(() => db.rows(`update access_reviews set sponsor_reason = 'another'`)),
        /written once and never changed/,
      )
      assert.deepStrictEqual(
        yield* ask(`select state, held_reason, restored_from, lost_since from installation`),
        [{ state: "held", held_reason: "restored", restored_from: madeAt, lost_since: null }],
      )
    }))

  it.effect("an audit without partitions is restored, also where the target already has months", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const month = (n: number) => leastIdAt(Date.UTC(2026, n))
      yield* owner.unsafe(`create table audit_records_p202601 partition of audit_records
        for values from (minvalue) to ('${month(1)}')`)
      yield* sql`insert into audit_records (id, at, action, outcome)
        select id::uuid, '2026-01-31', 'test.row', 'done' from unnest(${[month(-20), month(0), month(1)]}::text[]) id`
      const file = join(yield* home, "backup")
      yield* written(file)
      const { db } = yield* restored(file)
      const parts = `select count(*)::int as n, tableoid::regclass::text as part from audit_records
        where action = 'test.row' group by 2 order by 2`
      assert.deepStrictEqual(yield* Effect.promise(() => db.rows(parts)), [
        { n: 1, part: "audit_records_default" },
        { n: 2, part: "audit_records_p202601" },
      ])

      const into = yield* TestDatabase.make
      const other = yield* connect(into.ownerUrl)
      yield* Effect.promise(() =>
        other.rows(`create table audit_records_p202512 partition of audit_records
          for values from ('${month(-1)}') to ('${month(0)}')`)
      )
      const backup = yield* Effect.promise(() => openBackup(file, () => {}))
      yield* Effect.promise(() => fill(other, backup, { ...options, now: madeAt }))
      yield* Effect.promise(() => backup.close())
      assert.deepStrictEqual(yield* Effect.promise(() => other.rows(parts)), [{ n: 3, part: "audit_records_default" }])
    }))

  it.effect("a backup is one snapshot, whatever commits while it is written", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const fern = yield* institution()
      const file = join(yield* home, "backup")
      const context = yield* Effect.context<never>()
      const id = yield* person()
      const during = () => Effect.runPromiseWith(context)(sql`update people set status = 'disabled' where id = ${id}`)
      yield* written(file, () => during().then(() => {}))
      const { db } = yield* restored(file)
      assert.deepStrictEqual(
        yield* Effect.promise(() => db.rows(`select status from people where id = $1`, [id])),
        [{ status: "active" }],
      )
      assert.isString(fern)
    }))

  it.effect("a file that was cut off, or has one changed byte, is refused before anything is written", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const file = join(folder, "backup")
      yield* written(file)
      const whole = readFileSync(file)
      const refuses = Effect.fnUntraced(function* (bytes: Uint8Array, why: RegExp) {
        const damaged = join(folder, "damaged")
        writeFileSync(damaged, bytes)
        assert.match(yield* failure(() => openBackup(damaged, () => {})), why)
      })
      yield* refuses(whole.subarray(0, whole.length - 10), /damaged/)
      yield* refuses(whole.subarray(0, 500), /damaged/)
      yield* refuses(Buffer.concat([whole, Buffer.from("more")]), /damaged/)
      yield* refuses(Buffer.from("a file of somebody's"), /damaged or no backup/)
      for (const at of [0.1, 0.4, 0.7, 0.9, 0.999]) {
        const flipped = Buffer.from(whole)
        const place = Math.floor(whole.length * at)
        flipped[place] = flipped[place]! ^ 1
        yield* refuses(flipped, /damaged/)
      }
      // A forged manifest: values that become part of a statement are checked by their form.
      const text = whole.toString("latin1")
      const [, manifest] = /manifest \d+\n(\{.*\})\n[0-9a-f]{64}\n$/.exec(text)!
      const head = text.slice(0, text.lastIndexOf("manifest "))
      const evil = JSON.stringify({
        ...JSON.parse(manifest!),
        partitions: [{ table: "events", name: "events_p1", bound: "DEFAULT; drop table events", storage: "" }],
      })
      const sha256 = createHash("sha256").update(evil).digest("hex")
      yield* refuses(Buffer.from(`${head}manifest ${evil.length}\n${evil}\n${sha256}\n`, "latin1"), /damaged/)
      copyFileSync(file, join(folder, "damaged"))
      const again = yield* Effect.promise(() => openBackup(join(folder, "damaged"), () => {}))
      yield* Effect.promise(() => again.close())
    }))

  it.effect("a backfill goes on where the backup had it, also where a migration has noted that there was nothing to fill", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const lanes: Backfill = {
        name: "lanes",
        table: "outbox_lanes",
        key: "lane",
        left: "true",
        fill: "update outbox_lanes set lane = lane from bite where lane = bite.key",
      }
      const pace = { floor: 4, ceiling: 4 }
      yield* bite(sql, lanes, pace)
      const file = join(yield* home, "backup")
      yield* written(file)
      const into = yield* TestDatabase.make
      yield* Effect.gen(function* () {
        const { owner, sql } = yield* Database
        // As the next start finds an empty table.
        yield* isFilled(owner, { ...lanes, left: "false" })
        const db = yield* connect(into.ownerUrl)
        const backup = yield* Effect.promise(() => openBackup(file, () => {}))
        yield* Effect.promise(() => fill(db, backup, { ...options, now: madeAt }))
        yield* Effect.promise(() => backup.close())
        assert.deepInclude((yield* progressOf(sql))[0], { name: "lanes", read: 1, changed: 1, done: false })
        const next = Effect.tap(bite(sql, lanes, pace), () => sql`update backfills set next_at = 'epoch'`)
        yield* sql`update backfills set next_at = 'epoch'`
        yield* Effect.repeat(next, { until: (wait) => wait === null })
        const [row] = yield* sql<{ n: number }>`select count(*)::int as n from outbox_lanes`
        assert.deepInclude((yield* progressOf(sql))[0], { read: row!.n, changed: row!.n, done: true })
      }).pipe(Effect.provide(Database.layer({ ...into, maxConnections: 2 })))
    }).pipe(Effect.scoped))

  it.effect("a database that is not empty stays as it is", () =>
    Effect.gen(function* () {
      const file = join(yield* home, "backup")
      yield* written(file)
      const { db, into } = yield* restored(file)
      const before = yield* contents(into.url)
      const backup = yield* Effect.promise(() => openBackup(file, () => {}))
      assert.match(yield* failure(() => fill(db, backup, { ...options, now: madeAt })), /not empty/)
      yield* Effect.promise(() => backup.close())
      assert.deepStrictEqual(yield* contents(into.url), before)
    }))

  it.effect("the command lets other programs on the same cores go first", () =>
    Effect.gen(function* () {
      const { ownerUrl, url } = yield* TestDatabase
      const folder = yield* home
      const holder = yield* connect(ownerUrl)
      const other = yield* connect(ownerUrl)
      // The command waits for this lock in the midst of its work.
      yield* Effect.promise(() => holder.rows("begin"))
      yield* Effect.promise(() => holder.rows("lock table webhooks in access exclusive mode"))
      const command = yield* start({
        module: "src/cli/main.ts",
        args: ["backup", join(folder, "backup")],
        env: {
          BAILIWICK_HOME: folder,
          DATABASE_URL: Redacted.value(url),
          DATABASE_OWNER_URL: Redacted.value(ownerUrl),
        },
      })
      yield* until(
        "the lock",
        Effect.promise(() =>
          other.rows<{ n: number }>(`select count(*)::int as n from pg_stat_activity
            where datname = current_database() and application_name = 'bailiwick backup' and wait_event_type = 'Lock'`)
        ),
        ([row]) => row!.n === 1,
      )
      assert.strictEqual(getPriority(command.pid), constants.priority.PRIORITY_BELOW_NORMAL)
      yield* Effect.promise(() => holder.rows("rollback"))
      assert.strictEqual(yield* command.exited, 0, command.output())
    }).pipe(Effect.scoped))
})
