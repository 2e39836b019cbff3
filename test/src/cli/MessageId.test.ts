import { assert, describe, it } from "@effect/vitest"
import { messageId } from "../../../src/cli/MessageId.ts"

const events = "intake.v1.mail-events.sent"
const directory = "intake.v1.directory.domain"

describe("the message id of a line", () => {
  it("is made of the parts that its subject needs", () => {
    const line = JSON.stringify({ kind: "domain", id: "i", version: 3, account_id: "a" })
    assert.strictEqual(messageId(events, line), "a.i")
    assert.strictEqual(messageId(directory, line), "domain.i.3")
    assert.strictEqual(messageId("intake.v1.identity-directory.person", line), "domain.i.3")
    assert.strictEqual(messageId("intake.v1.notifications", line), "a.i")
  })

  it("is missing where a part is missing or not fit for a header", () => {
    const lines = [
      "not json",
      "null",
      "[]",
      "3",
      `{"id":"i"}`,
      `{"account_id":"a","id":null}`,
      `{"account_id":"a","id":""}`,
    ]
    for (const line of [...lines, `{"account_id":"a","id":{}}`, `{"account_id":"a","id":"\\r\\nX: y"}`]) {
      assert.isNull(messageId(events, line), line)
    }
    assert.isNull(messageId(directory, `{"kind":"domain","id":"i","account_id":"a"}`))
    assert.isNull(messageId(events, JSON.stringify({ account_id: "a", id: "x".repeat(600) })))
  })
})
