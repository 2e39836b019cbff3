/** The form of every refusal. */
import { assert } from "@effect/vitest"
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
