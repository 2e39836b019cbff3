/** What a refusal must look like, and the audit record that it leads to. */
import { assert } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { Database } from "../../../../services/platform/Database.ts"
import type { Reply } from "./TestServer.ts"

export const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

export const isProblem = (reply: Reply, status: number, code: string, instance: string) => {
  assert.strictEqual(reply.status, status)
  assert.strictEqual(reply.headers.get("content-type"), "application/problem+json")
  assert.deepStrictEqual(
    {
      type: reply.json["type"],
      status: reply.json["status"],
      code: reply.json["code"],
      instance: reply.json["instance"],
    },
    { type: `urn:bailiwick:problem:${code}`, status, code, instance },
  )
  assert.strictEqual(reply.json["request_id"], reply.headers.get("x-request-id"))
  assert.isString(reply.json["detail"])
  assert.isString(reply.json["title"])
  assert.match(String(reply.json["audit_id"]), uuidv7)
}

interface Row {
  readonly id: string
  readonly action: string
  readonly actor: string | null
  readonly route: string | null
  readonly status: number
  readonly code: string
  readonly outcome: string
  readonly details: {
    readonly request_ids?: ReadonlyArray<string>
    readonly count?: number
    readonly credential?: string
  }
}

/** The audit record that a request id leads to, once it is there. */
export const audited = Effect.fnUntraced(function* (requestId: string) {
  const { sql } = yield* Database
  return yield* sql<
    Row
  >`select * from audit_records where request_id = ${requestId} or details->'request_ids' ? ${requestId}`
    .pipe(
      Effect.flatMap(([row]) => row ? Effect.succeed(row) : Effect.fail("not yet")),
      Effect.retry(Schedule.spaced("50 millis")),
      Effect.timeout("60 seconds"),
    )
})
