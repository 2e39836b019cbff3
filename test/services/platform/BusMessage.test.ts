import { assert, describe, it } from "@effect/vitest"
import { headers, type Msg, type NatsConnection } from "@nats-io/transport-node"
import { BusMessage } from "../../../services/platform/messaging/Bus/BusMessages.ts"

const text = (word: unknown) => word instanceof Uint8Array ? new TextDecoder().decode(word) : word

/** A message of the broker and what is answered to it; `asked` names what was read of it beyond subject and data. */
const handed = (reply: string) => {
  const [asked, answers]: [Array<string>, Array<readonly [string, unknown]>] = [[], []]
  const message = {
    subject: "intake.v1.mail-events.sent",
    data: new TextEncoder().encode("{}"),
    get headers() {
      asked.push("headers")
      const own = headers()
      own.set("Nats-Msg-Id", "a.1")
      return own
    },
    get reply() {
      asked.push("reply")
      return reply
    },
  }
  const nc = { isClosed: () => false, publish: (to: string, word: unknown) => answers.push([to, text(word)]) }
  return {
    asked,
    answers,
    message: new BusMessage(nc as unknown as NatsConnection, message as unknown as Msg),
  }
}

const short = "$JS.ACK.EVENTS.mail-events.3.4711.12.1795443973122500000.100"
const long = "$JS.ACK.hub.A1B2.EVENTS.mail-events.3.4711.12.1795443973122500000.100.token"

describe("BusMessage", () => {
  it("that is acknowledged is answered once, and nothing of it is decoded", () => {
    const { answers, asked, message } = handed(short)
    assert.strictEqual(message.text, "{}")
    message.ack()
    message.nak()
    assert.deepStrictEqual(answers, [[short, "+ACK"]])
    assert.deepStrictEqual(asked, ["reply"])
  })

  it("tells headers and the broker's figures when they are asked for, with and without a domain", () => {
    for (const reply of [short, long]) {
      const { message } = handed(reply)
      assert.deepStrictEqual([message.deliveries, message.seq, message.storedAtMillis], [3, 4711, 1795443973122])
      assert.deepStrictEqual([message.header("nats-msg-id"), message.header("other")], ["a.1", null])
    }
  })
})
