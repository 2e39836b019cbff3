import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { SchemaBinary } from "effect/encoding"
import { WorkspaceId } from "../../../schemas/BrandedIds.ts"
import { DomainActor } from "../../../schemas/actors/DomainActor.ts"
import { Accept, Force, Initiate } from "../../../schemas/mail/DomainCommands.ts"

const origin = Schema.Struct({ requestId: Schema.NullOr(Schema.String), route: Schema.NullOr(Schema.String) })
const identified = { origin, commandId: Schema.String }
const byAccount = { ...identified, accountId: Schema.String }
const onTransfer = { transferId: Schema.String }

/** The messages of version 0.2.0, as its processes write and read them. */
const before: Readonly<Record<string, Schema.Struct<Schema.Struct.Fields>>> = {
  Initiate: Schema.Struct({ ...byAccount, targetEmail: Schema.String, note: Schema.NullOr(Schema.String) }),
  Accept: Schema.Struct({
    ...byAccount,
    ...onTransfer,
    byToken: Schema.Boolean,
    orgId: Schema.NullOr(Schema.String),
    rotateDkim: Schema.Boolean,
  }),
  Decline: Schema.Struct({ ...byAccount, ...onTransfer }),
  Cancel: Schema.Struct({ ...byAccount, ...onTransfer }),
  Stop: Schema.Struct({ ...identified, ...onTransfer }),
  Force: Schema.Struct({ ...byAccount, targetEmail: Schema.String, rotateDkim: Schema.Boolean }),
}

const values: Readonly<Record<string, unknown>> = {
  origin: { requestId: "request", route: null },
  commandId: "command",
  accountId: "account",
  transferId: "transfer",
  targetEmail: "bob@example.com",
  note: null,
  byToken: true,
  orgId: "workspace",
  rotateDkim: true,
}

const codecOf = (schema: unknown) => SchemaBinary.toCodec(schema as Schema.Codec<unknown>)

describe("commands on the transfers of a domain", () => {
  it("are messages that a process of version 0.2.0 reads, and the other way round", () => {
    assert.deepStrictEqual([...DomainActor.protocol.requests.keys()], Object.keys(before))
    for (const [tag, { payloadSchema }] of DomainActor.protocol.requests) {
      const [old, young] = [codecOf(before[tag]), codecOf(payloadSchema)]
      const message = Object.fromEntries(Object.keys(before[tag]!.fields).map((name) => [name, values[name]]))
      const there = Schema.decodeUnknownSync(young)(Schema.encodeUnknownSync(old)(message))
      const back = Schema.decodeUnknownSync(old)(Schema.encodeUnknownSync(young)(message))
      assert.deepStrictEqual([there, back], [message, message], tag)
    }
  })

  it("have the fields of their body under their own names, with a default for what may be left out", () => {
    const target_email = "bob@example.com"
    const targetEmail = target_email
    assert.deepStrictEqual(Initiate.body.read({ target_email }), { targetEmail, note: null })
    assert.deepStrictEqual(Initiate.body.read({ target_email, note: "take it" }), { targetEmail, note: "take it" })
    assert.deepStrictEqual(Accept.body.read({}), { orgId: null, rotateDkim: false })
    assert.deepStrictEqual(Accept.body.read({ target_org_id: WorkspaceId.make("one"), rotate_dkim: true }), {
      orgId: WorkspaceId.make("one"),
      rotateDkim: true,
    })
    assert.deepStrictEqual(Force.body.read({ target_email, rotate_dkim: null }), { targetEmail, rotateDkim: true })
    assert.deepStrictEqual(Force.body.read({ target_email, rotate_dkim: false }), { targetEmail, rotateDkim: false })
  })
})
