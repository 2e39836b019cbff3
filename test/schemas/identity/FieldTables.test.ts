/**
 * The specification's field tables (000, Requests and registration), row by row: a value at a bound is accepted, a
 * value one past it is refused, in pydantic's words. Lengths count code points, so the fill is an astral character.
 */
import { assert, describe, it } from "@effect/vitest"
import { Exit, Schema } from "effect"
import type { Fault } from "../../../schemas/Validation/Fault.ts"
import { faultsOf } from "../../../schemas/Validation/Translate.ts"
import { decidedKinds, decidedRows } from "./DecidedRows.ts"
import { kinds, rows as specified, website } from "./FieldRows.ts"

type Body = Readonly<Record<string, unknown>>

const tables: Readonly<Record<string, { readonly schema: Schema.Codec<unknown, unknown>; readonly minimal: Body }>> = {
  ...kinds,
  ...decidedKinds,
}
const rows = [...specified, ...decidedRows]

const faults = (kind: string, body: Body): ReadonlyArray<Fault> => {
  const { schema } = tables[kind]!
  const exit = Schema.decodeUnknownExit(schema, { errors: "all", reportInput: true, onExcessProperty: "error" })(body)
  if (Exit.isSuccess(exit)) return []
  return exit.cause.reasons.flatMap((reason) =>
    reason._tag === "Fail" ? faultsOf(reason.error, "body", body, true) : []
  )
}

const shown = (sent: unknown) => {
  const json = JSON.stringify(sent)
  return json.length > 40 ? `${[...json].slice(0, 30).join("")}… (${json.length})` : json
}

describe("the specification's field tables", () => {
  it("every row of the tables has a case", () => {
    assert.strictEqual(specified.length, 38)
    assert.isAtLeast(rows.length, 60)
    for (const [kind, { minimal }] of Object.entries(tables)) {
      const required = rows.filter((row) => row.kind === kind && row.required).map(({ field }) => field)
      assert.deepStrictEqual(Object.keys(minimal).sort(), [...new Set(required)].sort(), kind)
    }
  })

  for (const [kind, { minimal }] of Object.entries(tables)) {
    it(`${kind}: the smallest body is accepted, an unknown field is not`, () => {
      assert.deepStrictEqual(faults(kind, minimal), [])
      assert.deepStrictEqual(faults(kind, { ...minimal, extra: 1 }), [
        { type: "extra_forbidden", loc: ["body", "extra"], msg: "Extra inputs are not permitted", input: 1 },
      ])
      assert.deepStrictEqual(
        faults(kind, {}).map(({ loc, msg, type }) => ({ loc, msg, type })),
        rows.filter((row) => row.kind === kind && row.required).map(({ field }) => ({
          loc: ["body", field],
          msg: "Field required",
          type: "missing",
        })).sort((a, b) => order(kind, String(a.loc[1])) - order(kind, String(b.loc[1]))),
      )
    })
  }

  for (const { bad, field, good, kind } of rows) {
    const { minimal } = tables[kind]!
    for (const sent of good) {
      it(`${kind} | ${field}: ${shown(sent)} is accepted`, () => {
        assert.deepStrictEqual(faults(kind, { ...minimal, [field]: sent }), [])
      })
    }
    for (const { at = [], said, sent } of bad) {
      it(`${kind} | ${field}: ${shown(sent)} is refused`, () => {
        const [fault, ...more] = faults(kind, { ...minimal, [field]: sent })
        assert.deepStrictEqual(more, [])
        const { input: _, ...told } = fault!
        assert.deepStrictEqual(told, { ...said, loc: ["body", field, ...at] })
      })
    }
  }

  it("loopback addresses are accepted for staging only, in every field", () => {
    const local = "http://LOCALHOST/cb"
    const body = {
      ...kinds[website].minimal,
      environment: "production",
      redirect_uris: ["https://a.example", local],
      post_logout_redirect_uris: [local],
      backchannel_logout_uri: local,
    }
    assert.deepStrictEqual(faults(website, { ...body, environment: "staging" }), [])
    assert.deepStrictEqual(
      faults(website, body).map(({ input, loc, msg, type }) => [type, loc, msg, input]),
      [["redirect_uris", 1], ["post_logout_redirect_uris", 0], ["backchannel_logout_uri"]].map((path) => [
        ...["value_error", ["body", ...path], "Value error, http://localhost is for staging only", local],
      ]),
    )
  })

  it("every fault of a body is reported at once", () => {
    const sent = { ...kinds.RequestFields.minimal, name: "a", domains: [], contacts: [{}], reason: "short" }
    assert.deepStrictEqual(faults("RequestFields", sent).map(({ loc, type }) => [loc.join("."), type]), [
      ["body.name", "string_too_short"],
      ["body.domains", "too_short"],
      ["body.contacts.0.name", "missing"],
      ["body.contacts.0.email", "missing"],
      ["body.reason", "string_too_short"],
    ])
  })
})

/** Faults come in the order of the schema's fields. */
function order(kind: string, field: string): number {
  const { schema } = tables[kind]!
  return "fields" in schema ? Object.keys(Object(schema.fields)).indexOf(field) : 0
}
