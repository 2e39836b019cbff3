import { Buffer } from "node:buffer"
import { createHmac } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { Webhook } from "standardwebhooks"
import {
  generateSecret,
  headersFor,
  HmacKey,
  secretsKept,
  signature,
  standardSignature,
} from "../../../services/webhooks/Signer.ts"

describe("HmacKey", () => {
  it("gives the results of RFC 4231", () => {
    const hi = Buffer.from("Hi There")
    const want = Buffer.from("what do ya want for nothing?")
    const large = Buffer.from("Test Using Larger Than Block-Size Key - Hash Key First")
    assert.strictEqual(
      new HmacKey(Buffer.alloc(20, 0x0b)).digest("", hi, "hex"),
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    )
    assert.strictEqual(
      new HmacKey(Buffer.from("Jefe")).digest("", want, "hex"),
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    )
    assert.strictEqual(
      new HmacKey(Buffer.alloc(131, 0xaa)).digest("", large, "hex"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    )
  })

  it("equals node:crypto's createHmac for any key, head and message", () =>
    fc.assert(fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.string({ unit: "grapheme-ascii", maxLength: 80 }),
      fc.uint8Array({ maxLength: 4_000 }),
      fc.constantFrom("hex" as const, "base64" as const),
      fc.boolean(),
      (key, head, message, encoding, byNode) => {
        const hmac = byNode ? new HmacKey(key, () => null) : new HmacKey(key)
        const expected = createHmac("sha256", key).update(head).update(message).digest(encoding)
        assert.strictEqual(hmac.digest(head, message, encoding), expected)
        assert.strictEqual(hmac.digest(head, message, encoding), expected, "a key can be used again")
      },
    )))
})

describe("X-Webhook-Signature", () => {
  it("gives the result in GitHub's documentation", () => {
    assert.strictEqual(
      signature("It's a Secret to Everybody", "Hello, World!"),
      "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    )
  })

  it("is keyed with the bytes of the whole secret", () =>
    fc.assert(fc.property(fc.string({ unit: "binary" }), (body) => {
      const secret = generateSecret()
      assert.strictEqual(signature(secret, body), createHmac("sha256", secret).update(body, "utf8").digest("hex"))
    })))

  it("signs bodies of different sizes one after the other", () => {
    const secret = generateSecret()
    for (const size of [0, 70_000, 3, 65_536, 300_000, 1]) {
      const body = Buffer.alloc(size, "é")
      assert.strictEqual(signature(secret, body), createHmac("sha256", secret).update(body).digest("hex"), `${size}`)
    }
  })

  it("is right for more secrets than the cache holds", () => {
    const secrets = Array.from(
      { length: 5_000 },
      (_, index) => `whsec_${Buffer.from(`key ${index}`).toString("base64")}`,
    )
    for (const secret of [...secrets, ...secrets.slice(0, 100)]) {
      assert.strictEqual(signature(secret, "x"), createHmac("sha256", secret).update("x").digest("hex"))
    }
  })
})

describe("webhook-signature", () => {
  it("gives the known results of Standard Webhooks", () => {
    assert.strictEqual(
      standardSignature(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        `{"test": 2432232314}`,
      ),
      "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    )
    assert.strictEqual(
      standardSignature(
        ["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"],
        "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
        1649367553,
        `{"email":"test@example.com","username":"test_user"}`,
      ),
      "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
    )
  })

  it("equals the signature of the npm package", () =>
    fc.assert(fc.property(
      fc.uuid(),
      fc.integer({ min: 0, max: 4_000_000_000 }),
      fc.string({ unit: "binary" }).map((text) => text.toWellFormed()),
      (id, seconds, body) => {
        const secret = generateSecret()
        const theirs = new Webhook(secret).sign(id, new Date(seconds * 1_000), body)
        assert.strictEqual(standardSignature([secret], id, seconds, body), theirs)
      },
    )))
})

describe("generateSecret", () => {
  it("is whsec_ and 32 bytes, different each time", () => {
    const secrets = Array.from({ length: 100 }, generateSecret)
    assert.strictEqual(new Set(secrets).size, 100)
    for (const secret of secrets) {
      assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
      assert.strictEqual(Buffer.from(secret.slice(6), "base64").length, 32)
    }
  })
})

describe("headersFor", () => {
  const body = JSON.stringify({ event: "email.delivered", recipient: "ünïcode@example.com" })
  const [current, previous] = [generateSecret(), generateSecret()]
  // The package compares the timestamp with the system's clock.
  const timestampSeconds = Math.floor((performance.timeOrigin + performance.now()) / 1_000)
  const delivery = { deliveryId: "0190-id", eventType: "email.delivered", attempt: 3, timestampSeconds, body }

  it("gives all headers of a delivery", () => {
    assert.deepStrictEqual(headersFor({ ...delivery, secrets: [current] }), {
      "content-type": "application/json",
      "User-Agent": "Bailiwick-Webhooks/0.2.0",
      "X-Webhook-Signature": createHmac("sha256", current).update(body).digest("hex"),
      "X-Webhook-Event": "email.delivered",
      "X-Webhook-Delivery": "0190-id",
      "X-Webhook-Attempt": "3",
      "webhook-id": "0190-id",
      "webhook-timestamp": String(timestampSeconds),
      "webhook-signature": new Webhook(current).sign("0190-id", new Date(timestampSeconds * 1_000), body),
    })
  })

  it("during an overlap verifies with both secrets; X-Webhook-Signature uses the new one alone", () => {
    const headers = headersFor({ ...delivery, secrets: [current, previous] })
    assert.lengthOf(headers["webhook-signature"]!.split(" "), 2)
    for (const secret of [current, previous]) {
      assert.deepStrictEqual(new Webhook(secret).verify(body, headers), JSON.parse(body))
    }
    assert.throws(() => new Webhook(generateSecret()).verify(body, headers))
    assert.strictEqual(headers["X-Webhook-Signature"], signature(current, body))
  })

  it("signs bytes and text alike; a changed byte makes the signatures invalid", () => {
    const secrets = [current] as const
    const bytes = Buffer.from(body)
    assert.deepStrictEqual(headersFor({ ...delivery, secrets, body: bytes }), headersFor({ ...delivery, secrets }))
    bytes[0]! ^= 1
    const changed = headersFor({ ...delivery, secrets, body: bytes })
    assert.notStrictEqual(changed["X-Webhook-Signature"], signature(current, body))
    assert.throws(() => new Webhook(current).verify(body, changed))
  })
})

it("caches the keys of at most 4,096 secrets, and signs with others as well", () => {
  const secrets = Array.from({ length: 10_000 }, generateSecret)
  const first = signature(secrets[0]!, "body")
  for (const secret of secrets) signature(secret, "body")
  assert.isAtMost(secretsKept(), 4_096)
  assert.strictEqual(signature(secrets[0]!, "body"), first)
})
