/**
 * The field tables over HTTP, row by row (those of the specification, and docs/api/identity.md for bodies that it does
 * not show): a value at a bound is accepted, a value one past it is refused with exactly one fault, compared whole. The
 * rows are those of FieldRows and DecidedRows.
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { shortInput } from "../../../../schemas/Validation/Bounds.ts"
import { management } from "../../../support/TestManagement.ts"
import { fill, kinds, long, type Row } from "../../../schemas/identity/FieldRows.ts"
import { as, type Headers, key, send } from "./IdentityClient.ts"
import { type Asked, operationOf, pathOf } from "./Catalogue.ts"
import { type Body, caseOf, judged, minimal, nowhere, rows, section, silent, withField } from "./FieldCases.ts"
import { held } from "./ConformsToSpec.ts"
import { judgedBodies, type Refused } from "./PydanticGoldens.ts"
import { type IdentityStage, stage } from "./IdentityStage.ts"

/** The fixture, made once for all rows. */
class Fern extends Context.Service<Fern, IdentityStage>()("bailiwick/test/src/http/identity/Fields") {}

const ask = Effect.fnUntraced(function* (
  kind: string,
  personId: string,
  asked: Asked,
  headers: Headers,
  body: string | Body | undefined = asked.body,
) {
  const operation = operationOf(caseOf(kind))
  const all = { ...(yield* as(personId)), ...asked.headers, ...headers }
  return held(operation, yield* send(operation.method, pathOf(operation, asked), all, body), String(body))
})

/** The repeated part of a refused value: a long text is cut, and a possible secret left out. */
const repeated = (kind: string, value: unknown) => {
  const input = silent.has(kind) ? undefined : shortInput(value)
  return input === undefined ? {} : { input }
}

const shown = (sent: unknown) => [...JSON.stringify(sent)].slice(0, 60).join("")

const accepted = Effect.fnUntraced(function* ({ field, good, kind }: Row) {
  const fixture = yield* Fern
  const one = caseOf(kind)
  const expected = judged[`${kind} | ${field}`] ?? [one.status]
  const met = new Set<number>()
  for (const sent of good) {
    const asked = withField(kind, yield* one.asked(fixture, fixture.people[one.by]), field, sent)
    const { status, text } = yield* ask(kind, fixture.people[one.by], asked, asked.key)
    assert.include(expected, status, `${kind} | ${field}: ${shown(sent)} ${text}`)
    met.add(status)
  }
  assert.sameMembers([...met], [...expected])
})

const refused = Effect.fnUntraced(function* ({ bad, field, kind }: Row) {
  const { people } = yield* Fern
  for (const { at = [], said, sent } of bad) {
    const asked = withField(kind, { params: nowhere, body: minimal[kind]! }, field, sent)
    const { body, status } = yield* ask(kind, people.stranger, asked, asked.key)
    assert.strictEqual(status, 422, `${kind} | ${field}: ${shown(sent)}`)
    const value = at.reduce<unknown>((inner, step) => Reflect.get(Object(inner), step), sent)
    const fault = { ...said, loc: [...section(kind), field, ...at] }
    assert.deepStrictEqual(body, { detail: [{ ...fault, ...repeated(kind, value) }] }, shown(sent))
  }
})

type Step = string | number
const valueAt = (value: unknown, path: ReadonlyArray<Step>) =>
  path.reduce<unknown>((inner, step) => Reflect.get(Object(inner), step), value)

/** The repeated value: the refused one, the object that lacks a member, or `{}` for invalid JSON. */
const inputOf = (type: string, text: string, path: ReadonlyArray<Step>): unknown =>
  type === "json_invalid"
    ? {}
    : type !== "missing"
    ? valueAt(JSON.parse(text), path)
    : path.length === 0
    ? null
    : valueAt(JSON.parse(text), path.slice(0, -1))

const sentAs = Effect.fnUntraced(function* (kind: string, text: string) {
  const { people } = yield* Fern
  const whole = text.startsWith(",") ? `${JSON.stringify(minimal[kind]).slice(0, -1)}${text}}` : text
  const headers = { ...key(), "content-type": "application/json" }
  return { whole, answer: yield* ask(kind, people.stranger, { params: nowhere }, headers, whole) }
})

const judgedAlike = Effect.fnUntraced(function* (kind: string, [text, ...faults]: Refused) {
  const { answer, whole } = yield* sentAs(kind, text)
  const detail = faults.map(([said, ...path]) => ({
    ...said,
    loc: ["body", ...path],
    ...repeated(kind, inputOf(said.type, whole, path)),
  }))
  assert.deepStrictEqual(answer.body, { detail }, text)
})

const notFinite = { type: "finite_number", msg: "Input should be a finite number" }
const expectingValue = {
  type: "json_invalid",
  msg: "JSON decode error",
  ctx: { error: "Expecting value" },
  input: {},
}
const tags = "'webauthn.create', 'totp', 'confirm'"

/** Cases in which FastAPI fails or repeats possible secrets, and those in which our bounds are narrower. */
const ours: ReadonlyArray<readonly [kind: string, text: string, ...faults: ReadonlyArray<object>]> = [
  ["Transition", ',"expected_version":1e400', { ...notFinite, loc: ["body", "expected_version"] }],
  ["Transition", `,"expected_version":${"9".repeat(250)}e99`, { ...notFinite, loc: ["body", "expected_version"] }],
  ["Transition", ',"reason":-1e999,"other":[1E+400]', { ...notFinite, loc: ["body", "reason"] }, {
    ...notFinite,
    loc: ["body", "other", 0],
  }],
  ["Transition", `,"expected_version":${"9".repeat(400)}`, { ...notFinite, loc: ["body", "expected_version"] }],
  ["Reason", "NaN", { ...expectingValue, loc: ["body", 0] }],
  ["Reason", '{"reason":-Infinity}', { ...expectingValue, loc: ["body", 10] }],
  ["Reason", `${"[".repeat(33)}${"]".repeat(33)}`, {
    ...expectingValue,
    loc: ["body", 32],
    ctx: { error: "Nesting deeper than 32 levels" },
  }],
  ["Reason", '{"reason":"\\ud83d 12345678"}', {
    type: "string_unicode",
    loc: ["body", "reason"],
    input: "\ud83d 12345678",
    msg: "Input should be a valid string, unable to parse raw data as a unicode string",
  }],
  ["Reason", '{"reason":"\\u0000 12345678"}', {
    type: "string_pattern_mismatch",
    loc: ["body", "reason"],
    input: "\u0000 12345678",
    msg: "String should match pattern '^[^\\x00]*$'",
    ctx: { pattern: "^[^\\x00]*$" },
  }],
  ["FinishAction", '{"proof":{"type":"a secret by mistake"}}', {
    type: "union_tag_invalid",
    loc: ["body", "proof"],
    msg: `Input tag found using 'type' does not match any of the expected tags: ${tags}`,
    ctx: { discriminator: "'type'", expected_tags: tags },
  }],
]

layer(Layer.effect(Fern, stage).pipe(Layer.provideMerge(management())), {
  excludeTestServices: true,
  timeout: "2 minutes",
})("the field tables over HTTP", (it) => {
  it.effect("every row belongs to an operation", () =>
    Effect.sync(() => {
      assert.isAtLeast(rows.length, 60)
      for (const { kind } of rows) assert.isDefined(caseOf(kind), kind)
    }))

  for (const row of rows) {
    it.effect(`${row.kind} | ${row.field}: values at its bounds are accepted`, () => accepted(row), 30_000)
    if (row.bad.length > 0) {
      it.effect(
        `${row.kind} | ${row.field}: values past its bounds are refused with their fault`,
        () => refused(row),
        30_000,
      )
    }
  }

  for (const kind of Object.keys(kinds)) {
    it.effect(`${kind}: missing fields are reported in the table's order, and unknown ones refused`, () =>
      Effect.gen(function* () {
        const { people } = yield* Fern
        const required = rows.filter((row) => row.kind === kind && row.required).map(({ field }) => field)
        const told = (input: Body) => [
          ...required.map((field) => ({ type: "missing", loc: ["body", field], msg: "Field required", input })),
          ...Object.entries(input).map(([name, value]) => ({
            type: "extra_forbidden",
            loc: ["body", name],
            msg: "Extra inputs are not permitted",
            input: value,
          })),
        ]
        for (const body of [{}, { other: null, Reason: [1, { a: "b" }] }]) {
          const answer = yield* ask(kind, people.stranger, { params: nowhere, body }, key())
          assert.deepStrictEqual(answer.body, { detail: told(body) })
        }
      }))
  }

  for (const [kind, refusals] of Object.entries(judgedBodies)) {
    it.effect(
      `${kind}: wrong bodies are refused as by pydantic`,
      () => Effect.forEach(refusals, (refused) => judgedAlike(kind, refused)),
      30_000,
    )
  }

  it.effect("bodies that pydantic cannot answer, or answers at length, are refused in its manner", () =>
    Effect.forEach(
      ours,
      Effect.fnUntraced(function* ([kind, text, ...detail]) {
        assert.deepStrictEqual((yield* sentAs(kind, text)).answer.body, { detail }, text)
      }),
    ))

  it.effect("an integer has no largest value: a version out of reach is another version", () =>
    Effect.gen(function* () {
      const fixture = yield* Fern
      const one = caseOf("Transition")
      const asked = yield* one.asked(fixture, fixture.people[one.by])
      for (const expected_version of ["9007199254740993", "9".repeat(300), 2 ** 70]) {
        const answer = yield* ask("Transition", fixture.people[one.by], {
          ...asked,
          body: { ...asked.body, expected_version },
        }, key())
        assert.strictEqual(answer.body.code, "version_conflict")
      }
    }))

  it.effect("a browser's texts about an authenticator are counted in code points as well", () =>
    Effect.gen(function* () {
      const proof = (transport: string) => {
        const response = { clientDataJSON: "a", attestationObject: "a", transports: [transport] }
        const credential = { id: "a", rawId: "a", type: "public-key", response }
        return JSON.stringify({ proof: { type: "webauthn.create", credential } })
      }
      assert.strictEqual((yield* sentAs("FinishAction", proof(fill(32)))).answer.status, 404)
      const path = ["proof", "webauthn.create", "credential", "response", "transports", 0]
      assert.deepStrictEqual((yield* sentAs("FinishAction", proof(fill(33)))).answer.body, {
        detail: [{ ...long(32), loc: ["body", ...path] }],
      })
    }))

  it.effect("the smallest body that the tables allow is accepted", () =>
    Effect.gen(function* () {
      const fixture = yield* Fern
      for (const kind of ["RequestFields", "PersonCreate", "EnrollmentCreate"] as const) {
        const one = caseOf(kind)
        const { params = {} } = yield* one.asked(fixture, fixture.people[one.by])
        const body = kind === "PersonCreate" ? { ...minimal[kind], subject: randomUUID() } : minimal[kind]!
        const { status, text } = yield* ask(kind, fixture.people[one.by], { params, body }, key())
        assert.strictEqual(status, 201, text)
      }
      const one = caseOf("Website registration")
      const { params = {}, body = {} } = yield* one.asked(fixture, fixture.people[one.by])
      const least = {
        ...minimal["Website registration"],
        owner_person_id: body["owner_person_id"],
        website: "  least ",
      }
      const answer = yield* ask("Website registration", fixture.people[one.by], { params, body: least }, key())
      assert.deepInclude(answer.body, { website: "  least ", connector_kind: "standard_oidc", redirect_uris: [] })
    }))
})
