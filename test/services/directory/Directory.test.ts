import { assert, layer } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Directory, type FileProgress, type RefusedLine } from "../../../services/directory/Directory.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { account, credential, domain, fresh, removal, uuid } from "../../support/DirectoryLines.ts"
import { ground } from "../../support/TestAccounts.ts"

const tags = (results: ReadonlyArray<{ readonly _tag: string }>) => results.map(({ _tag }) => _tag)

layer(ground)("Directory", (it) => {
  it.effect("newer lines are applied, older and equal ones ignored, within a batch and across batches", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const id = fresh()
      const results = yield* directory.apply([
        account(id, 2, { name: "two" }),
        account(id, 1, { name: "one" }),
        account(id, 5, { name: "five" }),
        account(id, 5, { name: "five again" }),
      ])
      assert.deepStrictEqual(tags(results), ["applied", "ignored", "applied", "ignored"])
      assert.deepStrictEqual(tags(yield* directory.apply([account(id, 4), account(id, 6, { name: "six" })])), [
        "ignored",
        "applied",
      ])
      const [row] = yield* sql`select name, version from accounts where id = ${id}::uuid`
      assert.deepStrictEqual(row, { name: "six", version: 6n })
    }))

  it.effect("a tombstone holds against a late line, and yields to a newer one", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const id = fresh()
      assert.deepStrictEqual(
        tags(yield* directory.apply([removal("account", id, 3), account(id, 2), removal("account", id, 3)])),
        ["applied", "ignored", "ignored"],
      )
      const state = sql<{ removed: boolean }>`select removed from accounts where id = ${id}::uuid`
      assert.isTrue((yield* state)[0]!.removed)
      yield* directory.apply([account(id, 4)])
      assert.isFalse((yield* state)[0]!.removed)
    }))

  it.effect("lines out of bounds are rejected one by one, and the rest is applied", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const deep = `${'{"a":'.repeat(40)}1${"}".repeat(40)}`
      const results = yield* directory.apply([
        "not json",
        deep,
        account(fresh(), 1, { name: "x".repeat(70_000) }),
        account("../../etc", 1),
        account(fresh(), 0),
        account(fresh(), 1, { name: "nul\u0000" }),
        account(fresh(), 1, { plan: "platinum", email: "nobody" }),
        account(fresh(), 1, { name: "half \ud800" }),
        domain(fresh(), 1, fresh(), { verified_at: "2026-02-30T00:00:00Z" }),
        domain(fresh(), 1, fresh(), { verified_at: "9999-01-01T00:00:00Z" }),
        JSON.stringify({ kind: "person", id: fresh(), version: 1 }),
        account(fresh(), 1),
      ])
      assert.deepStrictEqual(
        results.map((result) => result._tag === "rejected" ? result.reason : result._tag),
        [
          "malformed_json",
          "too_deep",
          "too_large",
          "invalid_line",
          "invalid_line",
          "invalid_line",
          "invalid_line",
          "invalid_line",
          "invalid_line",
          "invalid_line",
          "unknown_kind",
          "applied",
        ],
      )
      const faulty = results[6]!
      assert.strictEqual(faulty._tag === "rejected" ? faulty.detail : "", "at fault: email, plan")
    }))

  it.effect("a reference to an unknown object is kept", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const [owner, id] = [fresh(), fresh()]
      yield* directory.apply([domain(id, 1, owner)])
      const joined = sql`
        select from domains d join accounts a on a.id = d.account_id where d.id = ${id}::uuid`
      assert.lengthOf(yield* joined, 0)
      yield* directory.apply([account(owner, 1)])
      assert.lengthOf(yield* joined, 1)
    }))

  it.effect("a credential whose account is not the domain's owner is revoked, in either order of lines", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const [owner, stranger] = [fresh(), fresh()]
      const revoked = (id: string) =>
        Effect.map(
          sql<{ ours: boolean }>`
            select locally_revoked_at is not null as ours from smtp_credentials where id = ${id}::uuid`,
          ([row]) => row!.ours,
        )
      const [d1, d2, c1, c2, good] = [fresh(), fresh(), fresh(), fresh(), fresh()]
      yield* directory.apply([domain(d1, 1, owner), credential(c1, 1, d1, stranger), credential(good, 1, d1, owner)])
      yield* directory.apply([credential(c2, 1, d2, stranger)])
      assert.isFalse(yield* revoked(c2))
      yield* directory.apply([domain(d2, 1, owner)])
      assert.deepStrictEqual(yield* Effect.all([revoked(c1), revoked(c2), revoked(good)]), [true, true, false])
      yield* directory.apply([domain(d1, 2, stranger), credential(c1, 2, d1, stranger)])
      assert.deepStrictEqual(yield* Effect.all([revoked(c1), revoked(good)]), [true, true])
      const told = yield* sql<{ payload: string }>`
        select payload from outbox where stream = 'DIRECTORY' and subject in ${
        sql.in([c1, c2, good].map((id) => `directory.v1.smtp_credential.${id}`))
      }`
      assert.deepStrictEqual(
        new Set(told.map(({ payload }) => JSON.parse(payload).id as string)),
        new Set([c1, c2, good]),
      )
    }))

  it.effect("after a transfer the feed's owner is ignored until it has once named the new owner", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const [id, before, after, third] = [fresh(), fresh(), fresh(), fresh()]
      const home = uuid(0xeeee)
      yield* directory.apply([domain(id, 1, before)])
      yield* sql`update domains set account_id = ${after}::uuid, workspace_id = ${home}::uuid, owner_held = true
        where id = ${id}::uuid`
      const read = Effect.map(
        sql`select account_id::text, workspace_id::text, dkim_selector, revision, owner_held from domains
          where id = ${id}::uuid`,
        ([row]) => row,
      )
      yield* directory.apply([domain(id, 2, third, { dkim_selector: "s2" })])
      assert.deepStrictEqual(yield* read, {
        account_id: after,
        workspace_id: home,
        dkim_selector: "s2",
        revision: 2n,
        owner_held: true,
      })
      yield* directory.apply([domain(id, 3, after, { workspace_id: home })])
      yield* directory.apply([domain(id, 4, third)])
      assert.deepStrictEqual(yield* read, {
        account_id: third,
        workspace_id: uuid(0xffff),
        dkim_selector: "s1",
        revision: 4n,
        owner_held: false,
      })
    }))

  it.effect("the new owner counts as named where a newer line comes in the same batch", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const [id, before, after, third] = [fresh(), fresh(), fresh(), fresh()]
      yield* directory.apply([domain(id, 1, before)])
      yield* sql`update domains set account_id = ${after}::uuid, owner_held = true where id = ${id}::uuid`
      const lines = [domain(id, 2, before), domain(id, 3, after), domain(id, 4, third)]
      assert.deepStrictEqual(tags(yield* directory.apply(lines)), ["applied", "applied", "applied"])
      const [row] = yield* sql`select account_id::text, owner_held from domains where id = ${id}::uuid`
      assert.deepStrictEqual(row, { account_id: third, owner_held: false })
    }))

  it.effect("applying a file reports the number and reason of each rejected line", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const lines = Array.from({ length: 250 }, () => account(fresh(), 1))
      lines[3] = ""
      lines[120] = "{"
      const told: Array<FileProgress> = []
      const faulty: Array<RefusedLine> = []
      const total = yield* directory.applyFile(Stream.fromIterable(lines), (progress, rejected) =>
        Effect.sync(() => {
          told.push(progress)
          faulty.push(...rejected)
        }))
      assert.deepStrictEqual(total, { applied: 248, ignored: 0, rejected: 1 })
      assert.deepStrictEqual(told.map(({ applied, rejected }) => applied + rejected), [100, 200, 249])
      assert.deepStrictEqual(faulty.map(({ line, reason }) => [line, reason]), [[121, "malformed_json"]])
    }))

  it.effect("concurrent appliers of a new row leave the newest line", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const many = Array.from({ length: 40 }, fresh)
      yield* Effect.forEach(many, (id) =>
        Effect.all(
          [3, 1, 2].map((v) => directory.apply([account(id, v, { name: `v${v}` })])),
          {
            concurrency: "unbounded",
          },
        ), { concurrency: 2 })
      const rows = yield* sql`select from accounts where ${sql.in("id", many)} and version = 3 and name = 'v3'`
      assert.lengthOf(rows, 40)
    }))

  it.effect("appliers of the same lines in opposite orders do not deadlock", () =>
    Effect.gen(function* () {
      const directory = yield* Directory
      const { sql } = yield* Database
      const many = Array.from({ length: 80 }, fresh)
      const lines = many.map((id) => account(id, 1))
      yield* Effect.forEach([lines, lines.toReversed(), lines, lines.toReversed()], (run) => directory.apply(run), {
        concurrency: 4,
      })
      assert.lengthOf(yield* sql`select from accounts where ${sql.in("id", many)}`, 80)
    }))
})
