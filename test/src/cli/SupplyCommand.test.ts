/** The command `installation supply`: what it takes for a message, and what it says of a file. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../services/platform/database/Database.ts"
import { givenMessage } from "../../../src/cli/GivenMessage.ts"
import * as Processes from "../../support/Processes.ts"
import { uuid } from "../../support/DirectoryLines.ts"
import { TestBus } from "../../support/TestBus.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { servers, slow, type, written } from "./Terminal.ts"

const stored = (subject: string, seq: number, data: string) =>
  JSON.stringify({ subject, seq, data: Buffer.from(data).toString("base64"), time: "2026-11-28T12:00:00Z" })

const about = `transfers.v1.${uuid(2)}`

const transfer = (status: string) => JSON.stringify({ id: uuid(1), domain_id: uuid(2), target_org_id: null, status })

it("a line is a message as the broker's command prints it, a signed event, or neither", () => {
  const told = { stream: "TRANSFERS", sequence: 7, subject: "transfers.v1.x.pending", data: "{}" }
  assert.deepStrictEqual<unknown>(givenMessage(stored("transfers.v1.x.pending", 7, "{}")), told)
  const event = { stream: "LIFECYCLE", sequence: null, subject: null, data: "a.b-_.c" }
  assert.deepStrictEqual<unknown>(givenMessage(" a.b-_.c "), event)
  const neither = [
    stored("webhooks.v1.retry.x", 7, "{}"),
    stored("toString.v1.x", 7, "{}"),
    stored("transfers.v1.x.pending", 0, "{}"),
    stored("transfers.v1.x.pending", 1.5, "{}"),
    JSON.stringify({ subject: "transfers.v1.x.pending", seq: 7, data: Buffer.of(0xff).toString("base64") }),
    JSON.stringify({ subject: "transfers.v1.x.pending", seq: 7, data: "%" }),
    stored("transfers.v1.x.pending", 7, "x".repeat(1_048_577)),
    `a.b.${"c".repeat(1_048_573)}`,
    "a.b",
    "a.b.c.d",
    "{",
  ]
  for (const line of neither) assert.isNull(givenMessage(line), line)
})

it.live(
  "supplies a file, names the line that is refused, and says where nothing is missing",
  () =>
    Effect.gen(function* () {
      const env = yield* servers
      const home = yield* Processes.home
      const { sql } = yield* Database
      const supply = (file: string) =>
        type(home, env, ["installation", "supply", file, "--reason", "from the mirror", "--as", "oz"])
      const good = yield* written(
        home,
        [
          stored(`${about}.pending`, 5, transfer("pending")),
          "",
          stored(`${about}.declined`, 6, transfer("declined")),
        ]
          .join("\n"),
      )
      const open = yield* supply(good)
      assert.strictEqual(open.code, 1)
      assert.include(open.stderr, "is not held for missing messages")
      yield* sql`
      update installation set state = 'held', held_since = now(), held_reason = 'messages_missing',
        missing = ${sql.json([{ stream: "TRANSFERS", first: 5, last: 6 }])}`
      const bad = yield* written(
        home,
        `${stored(`${about}.pending`, 5, transfer("pending"))}\n\n${
          stored(`${about}.pending`, 8, transfer("pending"))
        }\n`,
      )
      const refused = yield* supply(bad)
      assert.strictEqual(refused.code, 1)
      assert.include(refused.stderr, "line 3: sequence 8 of TRANSFERS is not missing; supplied before it: 0")
      const taken = yield* supply(good)
      assert.strictEqual(taken.code, 0, taken.stderr)
      assert.match(taken.stdout, /^supplied 2; /)
      assert.match((yield* supply(good)).stdout, /^supplied 0; /)
      const audited = yield* sql<{ details: object; actor: string }>`
      select details, actor from audit_records where action = 'installation.supplied'`
      assert.deepStrictEqual(audited, [{ details: { reason: "from the mirror", messages: 2 }, actor: "operator:oz" }])
    }).pipe(Effect.provide(Layer.merge(TestDatabase.layer, TestBus.layer))),
  slow,
)
