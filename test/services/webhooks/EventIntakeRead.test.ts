/** Reading events: generated from the schema, and mutilated. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Result, Schema } from "effect"
import fc from "fast-check"
import { MailEvent, metadataFields } from "../../../schemas/mail/MailEvent.ts"
import type { Incoming } from "../../../services/platform/messaging/BusIntake.ts"
import { read } from "../../../services/webhooks/EventIntake.ts"

const subjectOf = (event: string) => `intake.v1.mail-events.${event.slice("email.".length)}`
const messageOf = (value: unknown, subject: string) => ({
  subject,
  data: new TextEncoder().encode(JSON.stringify(value)),
})
const sample = {
  id: "e-1",
  event: "email.bounced",
  account_id: "6E9E5D12-2C0B-4B5E-9C5A-3A4B6D7E8F90",
  email_id: "m-1",
  recipient: "pat@example.com",
  timestamp: "2026-03-10T13:00:00.5+01:00",
  metadata: {
    subject: "Hi",
    tag: null,
    dsn: "5.1.1",
    response: "550 no",
    bounce_type: "hard",
    own: { deep: [1, null] },
  },
} as const
const bounced = subjectOf(sample.event)

const reasonOf = (message: Pick<Incoming, "subject" | "data">) => {
  const event = read(message)
  return Result.isFailure(event) ? event.failure : null
}
const reject = (fields: object, subject = bounced) => reasonOf(messageOf({ ...sample, ...fields }, subject))

describe("EventIntake.read", () => {
  it("makes the specified payload: members in order, the time in UTC, metadata unchanged", () => {
    const accepted = Result.getOrThrow(read(messageOf(sample, bounced)))
    assert.deepStrictEqual({ ...accepted, body: JSON.parse(accepted.body) }, {
      sourceId: "e-1",
      accountId: sample.account_id.toLowerCase(),
      event: "email.bounced",
      body: {
        event: "email.bounced",
        email_id: "m-1",
        recipient: "pat@example.com",
        timestamp: "2026-03-10T12:00:00.500Z",
        metadata: sample.metadata,
      },
    })
    assert.deepStrictEqual(Object.keys(JSON.parse(accepted.body)), [
      "event",
      "email_id",
      "recipient",
      "timestamp",
      "metadata",
    ])
  })

  it.effect("accepts generated events on their own subject and on no other", () =>
    Effect.gen(function* () {
      const generated = yield* Arbitrary.sampleEffect(Arbitrary.schema(MailEvent), { count: 300, seed: 7 })
      for (const event of generated) {
        const message = messageOf(event, subjectOf(event.event))
        if (message.data.length > 65_536) continue
        const accepted = read(message)
        if (Result.isFailure(accepted)) {
          // The schema's pattern allows 31 June.
          assert.strictEqual(accepted.failure.detail, "at fault: timestamp", JSON.stringify(event))
          continue
        }
        const body = JSON.parse(accepted.success.body)
        assert.deepStrictEqual(body.metadata, JSON.parse(JSON.stringify(event.metadata)))
        assert.match(body.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        for (const other of Object.keys(metadataFields).filter((type) => type !== event.event)) {
          assert.strictEqual(reasonOf({ ...message, subject: subjectOf(other) })?.reason, "wrong_subject")
        }
      }
    }))

  it("rejects mutilated events with the field's name and never its value", () => {
    const secret = "s3cr3t-value"
    const wrong = fc.constantFrom<unknown>(null, 7, true, [], {}, "", secret + "\u0000", "x".repeat(400) + secret)
    const field = fc.constantFrom("id", "event", "account_id", "email_id", "recipient", "timestamp", "metadata")
    fc.assert(fc.property(field, fc.option(wrong, { nil: undefined }), (name, value) => {
      const fault = reject({ [name]: value })
      assert.strictEqual(fault?.reason, "invalid_event")
      assert.match(fault!.detail, new RegExp(`^at fault: ${name}`))
      assert.notInclude(fault!.detail, secret)
    }))
    assert.strictEqual(reject({ metadata: { subject: "a" } })?.detail, "at fault: metadata.tag")
    assert.strictEqual(reject({ metadata: {} })?.detail, "at fault: metadata.subject, metadata.tag")
    assert.strictEqual(reasonOf(messageOf([sample], bounced))?.reason, "invalid_event")
  })

  it("never throws, whatever bytes arrive", () => {
    const whole = messageOf(sample, bounced).data
    const cut = fc.nat(whole.length - 1).map((at) => whole.slice(0, at))
    const flipped = fc.tuple(fc.nat(whole.length - 1), fc.nat(255)).map(([at, byte]) => {
      const data = whole.slice()
      data[at] = byte
      return data
    })
    fc.assert(fc.property(fc.oneof(cut, flipped, fc.uint8Array()), (data) => {
      const event = read({ subject: bounced, data })
      if (Result.isFailure(event)) {
        assert.include(["malformed_json", "invalid_event", "wrong_subject", "too_deep"], event.failure.reason)
      }
    }))
  })

  it("a day that does not exist is rejected", () => {
    for (const day of ["2026-02-29", "2026-02-30", "2026-04-31", "2100-02-29"]) {
      assert.strictEqual(reject({ timestamp: `${day}T00:00:00Z` })?.detail, "at fault: timestamp", day)
    }
    for (const day of ["2028-02-29", "2026-12-31"]) assert.isNull(reject({ timestamp: `${day}T23:59:59.999999999Z` }))
  })

  it("a time outside the years 0 to 9999 in UTC, or with second 60, is rejected", () => {
    for (const timestamp of ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "2026-01-01T00:00:60Z"]) {
      assert.strictEqual(reject({ timestamp })?.detail, "at fault: timestamp", timestamp)
    }
  })

  it("metadata with names like `__proto__` passes through", () => {
    const text = JSON.stringify(sample).replace('"own":', '"__proto__":{"a":1},"constructor":2,"own":')
    const accepted = Result.getOrThrow(read({ subject: bounced, data: new TextEncoder().encode(text) }))
    assert.include(accepted.body, '"__proto__":{"a":1},"constructor":2')
    assert.isFalse("a" in {})
  })

  it("the quick check accepts exactly what the schema accepts", () => {
    const usual = { ...sample, timestamp: "2026-03-10T12:00:00.500Z" }
    const values = fc.constantFrom<unknown>(
      ...[null, 7, true, [], {}, "", "x", "\u0085", "\ud800", "é".repeat(200), "x".repeat(201), "😀".repeat(160)],
      ...["2026-02-28T23:59:59.999Z", "2026-02-28T24:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-03-10T12:00:00Z"],
      ...["email.sent", "email.other", "constructor", "6e9e5d12-2c0b-4b5e-9c5a-3a4b6d7e8f9g", "{6e9e5d12}"],
      ...["6e9e5d12-2c0b-fb5e-0c5a-3a4b6d7e8f90", { subject: "a" }, { subject: "a", tag: 1 }, {
        subject: null,
        tag: "",
      }],
    )
    const field = fc.constantFrom(...Object.keys(usual))
    fc.assert(
      fc.property(field, values, (name, value) => {
        const event = JSON.parse(JSON.stringify({ ...usual, [name]: value }))
        assert.strictEqual(
          reasonOf(messageOf(event, subjectOf(String(event.event)))) === null,
          Schema.is(MailEvent)(event),
        )
      }),
      { numRuns: 500 },
    )
    assert.isNull(reject({ timestamp: usual.timestamp }))
    for (const gone of Object.keys(usual)) {
      assert.isNotNull(reject({ timestamp: usual.timestamp, [gone]: undefined }), gone)
    }
  })
})
