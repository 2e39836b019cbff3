import { assert, describe, it } from "@effect/vitest"
import { Exit, Redacted, Schema } from "effect"
import { type Fault, secretInput, valueError } from "../../../schemas/Validation/Fault.ts"
import { complains } from "../../../schemas/Validation/Fault.ts"
import { BodyBoolean, BodyInt, QueryBoolean, QueryInt, Text } from "../../../schemas/Validation/Scalars.ts"
import { faultsOf } from "../../../schemas/Validation/Translate.ts"
import { Uuid } from "../../../schemas/Wire.ts"

const refuse = <A, I>(schema: Schema.Codec<A, I>, sent: unknown, section = "body"): ReadonlyArray<Fault> => {
  const exit = Schema.decodeUnknownExit(schema, { errors: "all", reportInput: true, onExcessProperty: "error" })(sent)
  if (Exit.isSuccess(exit)) return []
  return exit.cause.reasons.flatMap((reason) =>
    reason._tag === "Fail" ? faultsOf(reason.error, section, sent, true) : []
  )
}

const field = <A, I>(schema: Schema.Codec<A, I>, sent: unknown) => refuse(Schema.Struct({ f: schema }), { f: sent })

/** What pydantic 2.13.5 wrote for the same declarations and inputs. */
describe("faults in pydantic's words", () => {
  const cases: ReadonlyArray<readonly [string, Schema.Codec<unknown, unknown>, unknown, Omit<Fault, "loc" | "input">]> =
    [
      ["a number for a string", Schema.String, 5, { type: "string_type", msg: "Input should be a valid string" }],
      ["null for a string", Schema.String, null, { type: "string_type", msg: "Input should be a valid string" }],
      ["a short string", Text(8, 500), "abc", {
        type: "string_too_short",
        msg: "String should have at least 8 characters",
        ctx: { min_length: 8 },
      }],
      ["an empty string", Text(1, 2), "", {
        type: "string_too_short",
        msg: "String should have at least 1 character",
        ctx: { min_length: 1 },
      }],
      ["a long string", Text(1, 2), "abc", {
        type: "string_too_long",
        msg: "String should have at most 2 characters",
        ctx: { max_length: 2 },
      }],
      ["an empty list", Schema.Array(Schema.String).check(Schema.isMinLength(1)), [], {
        type: "too_short",
        msg: "List should have at least 1 item after validation, not 0",
        ctx: { field_type: "List", min_length: 1, actual_length: 0 },
      }],
      ["a long list", Schema.Array(Schema.String).check(Schema.isMaxLength(2)), ["a", "b", "c"], {
        type: "too_long",
        msg: "List should have at most 2 items after validation, not 3",
        ctx: { field_type: "List", max_length: 2, actual_length: 3 },
      }],
      ["a string for a list", Schema.Array(Schema.String), "a", {
        type: "list_type",
        msg: "Input should be a valid list",
      }],
      ["a string for a map", Schema.Record(Schema.String, Schema.String), "a", {
        type: "dict_type",
        msg: "Input should be a valid dictionary",
      }],
      ["a string for an object", Schema.Struct({ a: Schema.String }), "a", {
        type: "model_attributes_type",
        msg: "Input should be a valid dictionary or object to extract fields from",
      }],
      ["an unknown literal of two", Schema.Literals(["staging", "production"]), "x", {
        type: "literal_error",
        msg: "Input should be 'staging' or 'production'",
        ctx: { expected: "'staging' or 'production'" },
      }],
      ["an unknown literal of three", Schema.Literals(["a", "b", "c"]), 3, {
        type: "literal_error",
        msg: "Input should be 'a', 'b' or 'c'",
        ctx: { expected: "'a', 'b' or 'c'" },
      }],
      ["a literal true", Schema.Literal(true), false, {
        type: "literal_error",
        msg: "Input should be True",
        ctx: { expected: "True" },
      }],
      ["below the least", BodyInt({ min: 1 }), 0, {
        type: "greater_than_equal",
        msg: "Input should be greater than or equal to 1",
        ctx: { ge: 1 },
      }],
      ["above the most", BodyInt({ max: 10 }), "11", {
        type: "less_than_equal",
        msg: "Input should be less than or equal to 10",
        ctx: { le: 10 },
      }],
      ["a list for an integer", BodyInt(), [], { type: "int_type", msg: "Input should be a valid integer" }],
      ["a fraction for an integer", BodyInt(), 1.5, {
        type: "int_from_float",
        msg: "Input should be a valid integer, got a number with a fractional part",
      }],
      ["letters for an integer", BodyInt(), "abc", {
        type: "int_parsing",
        msg: "Input should be a valid integer, unable to parse string as an integer",
      }],
      ["a strict integer with a fraction", Schema.Int, 1.5, {
        type: "int_from_float",
        msg: "Input should be a valid integer, got a number with a fractional part",
      }],
      ["null for a boolean", BodyBoolean, null, { type: "bool_type", msg: "Input should be a valid boolean" }],
      ["two for a boolean", BodyBoolean, 2, {
        type: "bool_parsing",
        msg: "Input should be a valid boolean, unable to interpret input",
      }],
      ["a pattern", Schema.String.check(Schema.isPattern(/^([1-9][0-9]?|100)$/)), "0", {
        type: "string_pattern_mismatch",
        msg: "String should match pattern '^([1-9][0-9]?|100)$'",
        ctx: { pattern: "^([1-9][0-9]?|100)$" },
      }],
      ["no UUID", Uuid, "nope", {
        type: "uuid_parsing",
        msg: "Input should be a valid UUID, invalid character: found `n` at 1",
        ctx: { error: "invalid character: found `n` at 1" },
      }],
      ["half a UUID", Uuid, "abc", {
        type: "uuid_parsing",
        msg: "Input should be a valid UUID, invalid length: expected length 32 for simple format, found 3",
        ctx: { error: "invalid length: expected length 32 for simple format, found 3" },
      }],
      ["a UUID with a short group", Uuid, "0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a1", {
        type: "uuid_parsing",
        msg: "Input should be a valid UUID, invalid group length in group 4: expected 12, found 11",
        ctx: { error: "invalid group length in group 4: expected 12, found 11" },
      }],
      ["a number for a UUID", Uuid, 4, {
        type: "uuid_type",
        msg: "UUID input should be a string, bytes or UUID object",
      }],
      ["U+0000", Text(1, 9), "a\u0000b", {
        type: "string_pattern_mismatch",
        msg: "String should match pattern '^[^\\x00]*$'",
        ctx: { pattern: "^[^\\x00]*$" },
      }],
      [
        "a rule of ours",
        Schema.String.check(Schema.makeFilter((text: string) => text === "x", complains(valueError("must be x")))),
        "y",
        { type: "value_error", msg: "Value error, must be x", ctx: { error: {} } },
      ],
      ["a nullable string", Schema.NullOr(Schema.String), 5, {
        type: "string_type",
        msg: "Input should be a valid string",
      }],
    ]

  for (const [name, schema, sent, { type, msg, ctx }] of cases) {
    it(name, () => {
      const expected: Fault = { type, loc: ["body", "f"], msg, input: sent, ...(ctx ? { ctx } : {}) }
      assert.strictEqual(JSON.stringify(field(schema, sent)), JSON.stringify([expected]))
    })
  }

  it("all faults are given in the schema's order, unknown fields last", () => {
    const schema = Schema.Struct({
      b: Schema.String,
      a: BodyInt(),
      list: Schema.Array(Schema.Struct({ c: Schema.String })),
    })
    const sent = { zz: 1, list: [{ c: "x" }, {}], a: "x" }
    assert.deepStrictEqual(refuse(schema, sent).map(({ type, loc }) => [type, ...loc]), [
      ["missing", "body", "b"],
      ["int_parsing", "body", "a"],
      ["missing", "body", "list", 1, "c"],
      ["extra_forbidden", "body", "zz"],
    ])
    assert.deepStrictEqual(refuse(schema, sent)[0]!.input, sent)
    assert.deepStrictEqual(refuse(schema, sent)[2]!.input, {})
  })

  it("members of a tagged union are told apart", () => {
    const schema = Schema.Union([
      Schema.Struct({ type: Schema.Literal("totp"), code: Schema.String }),
      Schema.Struct({ type: Schema.Literal("confirm"), acknowledged: Schema.Literal(true) }),
    ])
    assert.deepStrictEqual(field(schema, { type: "x" }), [{
      type: "union_tag_invalid",
      loc: ["body", "f"],
      msg: "Input tag 'x' found using 'type' does not match any of the expected tags: 'totp', 'confirm'",
      input: { type: "x" },
      ctx: { discriminator: "'type'", tag: "x", expected_tags: "'totp', 'confirm'" },
    }])
    assert.strictEqual(field(schema, {})[0]!.type, "union_tag_not_found")
    assert.deepStrictEqual(field(schema, { type: "totp", code: 1 }).map((fault) => [fault.type, ...fault.loc]), [
      ["string_type", "body", "f", "totp", "code"],
    ])
  })

  it("no secret is repeated, nor an object that holds one", () => {
    const schema = Schema.Struct({
      code: Schema.String.check(Schema.isMinLength(6)).annotate(secretInput),
      token: Schema.Redacted(Schema.String),
      other: Schema.String,
    })
    const faults = refuse(schema, { code: "12345", token: Redacted.make("x"), other: 1 })
    assert.deepStrictEqual(faults.map((fault) => "input" in fault), [false, true])
    assert.isFalse("input" in refuse(schema, { code: "123456", token: Redacted.make("x") })[0]!)
    assert.notInclude(JSON.stringify(refuse(schema, { code: 12345, token: "hidden", other: "x" })), "12345")
    assert.notInclude(JSON.stringify(refuse(schema, { code: "123456", token: "hidden", other: "x" })), "hidden")
  })

  it("beside a secret, other members are repeated, in a union and by a transformation too; a rule of the whole is not", () => {
    const struct = Schema.Struct({
      code: Schema.String.annotate(secretInput),
      on: BodyBoolean,
      other: Schema.String,
    })
    const ruled = struct.check(Schema.makeFilter(() => false, { expected: "nothing" }))
    const nested = Schema.Struct({ inner: struct })
    for (const schema of [struct, Schema.Union([struct]), Schema.Union([struct, Schema.Null])]) {
      const faults = refuse(schema as Schema.Codec<unknown>, { code: 1, on: "perhaps", other: 7 })
      assert.deepStrictEqual(faults.map(({ input, loc }) => [loc.at(-1), input]), [
        ["code", undefined],
        ["on", "perhaps"],
        ["other", 7],
      ])
    }
    const sent = { code: "hidden", on: true, other: "x" }
    assert.lengthOf(refuse(ruled, sent), 1)
    assert.notInclude(JSON.stringify(refuse(ruled, sent)), "hidden")
    const missed = refuse(nested, { inner: { code: "hidden", on: true } })
    assert.lengthOf(missed, 1)
    assert.notInclude(JSON.stringify(missed), "hidden")
    assert.notInclude(JSON.stringify(refuse(Schema.Union([struct, Schema.String]), { code: "hidden" })), "hidden")
  })

  it("a query value is repeated as it was sent", () => {
    const faults = refuse(
      Schema.Struct({ limit: QueryInt({ max: 100 }), all: QueryBoolean }),
      { limit: "1_000" },
      "query",
    )
    assert.deepStrictEqual(faults.map(({ loc, input }) => [...loc, input]), [["query", "limit", "1_000"], [
      "query",
      "all",
      null,
    ]])
  })
})
