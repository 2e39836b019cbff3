import { assert, describe, it } from "@effect/vitest"
import { Schema, type SchemaAST } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Api } from "../../../schemas/api/Api.ts"
import { strictBody } from "../../../schemas/api/RequestValidation.ts"
import { maxFaults, maxUnknown, shortInput, shortName, toldOf } from "../../../schemas/Validation/Bounds.ts"
import { tooManyIn } from "../../../schemas/Validation/Complaints.ts"
import type { Fault } from "../../../schemas/Validation/Fault.ts"
import { type RequestDecoders, sectionsOf } from "../../../src/http/edge/RequestDecoders.ts"

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length

/** The decoder of a body of this schema, as the program makes it. */
const sectionsFor = (payload: Schema.Top, strict = false): RequestDecoders => {
  const endpoint = HttpApiEndpoint.post("post", "/post", { payload }) as unknown as HttpApiEndpoint.Top
  const group = HttpApiGroup.make("group") as unknown as HttpApiGroup.Top
  return sectionsOf(endpoint, strict ? group.annotate(HttpApi.PayloadParseOptions, strictBody) : group)
}

/** A text that counts how often it is read. */
const counted = () => {
  const looks = { at: 0 }
  const Item = Schema.String.check(Schema.makeFilter((text) => ++looks.at > 0 && text !== "bad"))
  return { Item, looks }
}

describe("the work for a wrong body", () => {
  it("no item of an overlong list is decoded, and the other members' faults are reported beside it", () => {
    const { Item, looks } = counted()
    const { body, overflows } = sectionsFor(Schema.Struct({
      list: Schema.Array(Item).check(Schema.isMaxLength(10)),
      other: Schema.NullOr(Schema.Array(Item).check(Schema.isMaxLength(2))),
      name: Schema.String,
    }))
    const sent = { list: Array.from({ length: 60_000 }, () => "bad"), other: ["a", "b", "c"] }
    assert.isTrue(overflows(sent))
    assert.deepStrictEqual(body(sent).map(({ input: _, ...fault }) => fault), [
      {
        type: "too_long",
        loc: ["body", "list"],
        msg: "List should have at most 10 items after validation, not 60000",
        ctx: { field_type: "List", max_length: 10, actual_length: 60_000 },
      },
      {
        type: "too_long",
        loc: ["body", "other"],
        msg: "List should have at most 2 items after validation, not 3",
        ctx: { field_type: "List", max_length: 2, actual_length: 3 },
      },
      { type: "missing", loc: ["body", "name"], msg: "Field required" },
    ])
    assert.strictEqual(looks.at, 0)
    assert.isFalse(overflows({ list: Array.from({ length: 10 }, () => "bad"), other: null, name: "" }))
  })

  it("nor an item of an overlong list that may be a scalar instead, or within another choice", () => {
    const { Item, looks } = counted()
    const inner = Schema.Union([Schema.Array(Item).check(Schema.isMaxLength(2)), Schema.Finite, Schema.String])
    const { body, overflows } = sectionsFor(Schema.Union([Schema.Struct({ a: Item }), inner]))
    assert.isTrue(overflows(["bad", "bad", "bad"]))
    assert.deepStrictEqual(body(["bad", "bad", "bad"]).map(({ type }) => type), ["too_long"])
    assert.strictEqual(looks.at, 0)
  })

  it("a long list is decoded up to its hundredth wrong item", () => {
    const { Item, looks } = counted()
    const { body } = sectionsFor(Schema.Struct({ list: Schema.Array(Item).check(Schema.isMaxLength(10_000)) }))
    const list = Array.from({ length: 10_000 }, (_, i) => i % 2 === 1 ? "bad" : "good")
    assert.deepStrictEqual(body({ list }).map(({ loc }) => loc[2]), Array.from({ length: 100 }, (_, i) => 2 * i + 1))
    assert.strictEqual(looks.at, 400)
  })

  it("a map is decoded up to its hundredth wrong member, and an overlong one not at all", () => {
    const { Item, looks } = counted()
    const { body, overflows } = sectionsFor(Schema.Record(Schema.String, Item).check(Schema.isMaxProperties(1_000)))
    const map = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, "bad"]))
    assert.lengthOf(body(map(1_000)), maxFaults)
    assert.strictEqual(looks.at, 200)
    assert.isTrue(overflows(map(1_001)))
    assert.deepStrictEqual(body(map(1_001)), [{
      type: "too_long",
      loc: ["body"],
      msg: "Dictionary should have at most 1000 items after validation, not 1001",
      ctx: { field_type: "Dictionary", max_length: 1_000, actual_length: 1_001 },
    }])
    assert.strictEqual(looks.at, 200)
  })

  it("twenty unknown members are reported one by one, and the others by their number", () => {
    const { body } = sectionsFor(Schema.Struct({ name: Schema.String }), true)
    const members = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, i]))
    const msg = "Extra inputs are not permitted"
    const told = Array.from({ length: maxUnknown }, (_, i) => ({
      type: "extra_forbidden",
      loc: ["body", `k${i}`],
      msg,
      input: i,
    }))
    assert.deepStrictEqual(body({ ...members(20), name: "a" }), told)
    assert.deepStrictEqual(body({ ...members(4_000), name: "a" }), [
      ...told,
      { type: "extra_forbidden", loc: ["body"], msg: `${msg}: 3980 more`, ctx: { more: 3_980 } },
    ])
    assert.deepStrictEqual(
      body(JSON.parse('{"__proto__":{"name":"a"}}')).map(({ loc, type }) => [type, ...loc]),
      [["missing", "body", "name"], ["extra_forbidden", "body", "__proto__"]],
    )
  })
})

describe("the size of an answer", () => {
  it("a refused value is repeated up to 1 KiB: texts are cut, longer lists and objects left out", () => {
    const whole = ["a".repeat(1_022), { a: ["é".repeat(400)] }, null, 0, false, [], {}]
    for (const value of whole) assert.deepStrictEqual(shortInput(value), value)
    for (const text of ["a".repeat(1_023), "𝒳".repeat(600), "\u0000".repeat(2_000), "x".repeat(250_000)]) {
      const cut = shortInput(text)
      assert.isString(cut)
      assert.isAtMost(bytesOf(cut), 1_024)
      assert.isTrue(String(cut).isWellFormed())
      assert.isTrue(text.startsWith(String(cut).slice(0, -1)) && String(cut).endsWith("…"))
    }
    for (const value of [Array.from({ length: 600 }, () => 0.5), { a: "a".repeat(1_100) }, ["é".repeat(600)]]) {
      assert.isUndefined(shortInput(value))
    }
  })

  it("names and tags are cut after a hundred characters", () => {
    assert.strictEqual(shortName("n".repeat(100)), "n".repeat(100))
    assert.strictEqual(shortName("n".repeat(101)), `${"n".repeat(100)}…`)
    const { body } = sectionsFor(Schema.Struct({ name: Schema.optionalKey(Schema.String) }), true)
    assert.deepStrictEqual(body({ ["n".repeat(9_000)]: 1 })[0]?.loc, ["body", `${"n".repeat(100)}…`])
  })

  it("an answer holds at most a hundred faults, and at most 60 KB of them", () => {
    const fault = (bytes: number): Fault => ({ loc: ["body"], type: "t", msg: "m".repeat(bytes) })
    assert.lengthOf(toldOf(Array.from({ length: 500 }, () => fault(1))), 100)
    const long = toldOf(Array.from({ length: 500 }, () => fault(2_000)))
    assert.isAbove(long.length, 20)
    assert.isAtMost(bytesOf(long), 60_002)
  })
})

interface Place {
  readonly path: ReadonlyArray<string>
  readonly ast: SchemaAST.AST
}

/** The lists and maps in a body, each with its path. */
const composites = (ast: SchemaAST.AST, path: ReadonlyArray<string>): ReadonlyArray<Place> => {
  if (ast._tag === "Union") return ast.types.flatMap((type) => composites(type, path))
  if (ast._tag === "Arrays") return [{ path, ast }, ...ast.rest.flatMap((item) => composites(item, [...path, "[]"]))]
  if (ast._tag !== "Objects") return []
  return [
    ...(ast.indexSignatures.length > 0 ? [{ path, ast }] : []),
    ...ast.propertySignatures.flatMap(({ name, type }) => composites(type, [...path, String(name)])),
    ...ast.indexSignatures.flatMap(({ type }) => composites(type, [...path, "{}"])),
  ]
}

const bodies: Array<
  { readonly name: string; readonly payload: Schema.Constraint; readonly sections: RequestDecoders }
> = []
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, group }) => {
    const json = endpoint.payload.get("application/json")
    if (json === undefined) return
    bodies.push({ name: endpoint.name, payload: Schema.Union(json.schemas), sections: sectionsOf(endpoint, group) })
  },
})

/** A body with this value at one path. */
const placed = (path: ReadonlyArray<string>, value: unknown): unknown => {
  const [step, ...rest] = path
  if (step === undefined) return value
  return step === "[]" ? [placed(rest, value)] : { [step === "{}" ? "key" : step]: placed(rest, value) }
}

describe("the contract", () => {
  it("every list and map of a body is bounded", () => {
    assert.isAtLeast(bodies.length, 30)
    const found = bodies.flatMap(({ name, payload }) =>
      composites(payload.ast, [name]).map((place) => ({ ...place, name: place.path.join(".") }))
    )
    assert.isAtLeast(found.length, 20)
    const many = Array.from({ length: 10_001 }, () => "a")
    for (const { ast, name } of found) {
      assert.isDefined(tooManyIn(ast, ast._tag === "Arrays" ? many : Object.fromEntries(many.entries())), name)
    }
  })

  it("any value at any path is answered with at most 64 KiB", () => {
    const wrong = [
      Array.from({ length: 60_000 }, () => 0),
      Array.from({ length: 60_000 }, () => ({})),
      Object.fromEntries(Array.from({ length: 4_900 }, (_, i) => [`${"k".repeat(40)}${i}`, i])),
      "\u0001".repeat(40_000),
      "𝒳".repeat(60_000),
      Array.from({ length: 100 }, () => "\u0001".repeat(400)),
      Array.from({ length: 16 }, () => "x".repeat(15_000)),
    ]
    for (const { name, payload, sections } of bodies) {
      const fields = payload.ast._tag === "Union"
        ? payload.ast.types.flatMap((type) =>
          type._tag === "Objects" ? type.propertySignatures.map((property) => [String(property.name)]) : []
        )
        : []
      const places = [[], ...fields, ...composites(payload.ast, []).map(({ path }) => path)]
      for (const path of places) {
        for (const value of wrong) {
          const told = toldOf(sections.body(placed(path, value)))
          assert.isAtMost(bytesOf({ detail: told }), 65_536, `${name} ${path.join(".")}`)
        }
      }
    }
  })
})
