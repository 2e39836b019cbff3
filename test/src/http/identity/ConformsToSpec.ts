/** Compares answers with the document: status, media type, headers, and no member that it does not name. */
import { assert } from "@effect/vitest"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import { resolved } from "../../../../src/http/docs/DocumentJson.ts"
import { type Answer, secretsIn } from "./IdentityClient.ts"
import { answerPath, type Operation, type Schema, spec } from "./Catalogue.ts"

const formats = {
  "uuid": /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  "uri": (text: string) => URL.canParse(text),
  "idn-hostname": (text: string) => text !== "" && URL.canParse(`http://${text}/`),
  "date-time": (text: string) => /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text)),
}

/** A schema with the members of those that it extends. */
const flat = (value: Schema): Schema => {
  if (!("allOf" in value)) return value
  const { allOf, ...own } = value
  const bases: ReadonlyArray<Schema> = allOf.map((base: Schema) => flat(resolved(base, spec)))
  return {
    ...own,
    properties: Object.assign({}, ...bases.map(({ properties }) => properties), own.properties),
    required: [...bases, own].flatMap(({ required = [] }) => required),
  }
}

/** The document lets answers grow for clients; the answers of today have no undocumented member. */
const sealed = (value: Schema): Schema => {
  if (Array.isArray(value)) return value.map(sealed)
  if (typeof value !== "object" || value === null) return value
  const parts = Object.fromEntries(Object.entries(flat(value)).map(([name, part]) => [name, sealed(part)]))
  const closes = "properties" in value && !("additionalProperties" in value) && typeof value.type === "string"
  return closes ? { ...parts, additionalProperties: false } : parts
}

const validators = (document: Schema, id: string, held: typeof formats = formats) => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: held })
  ajv.addSchema(document, id)
  const known = new Map<string, ValidateFunction>()
  return (...path: ReadonlyArray<string>) => {
    const pointer = path.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")
    const found = known.get(pointer) ?? ajv.compile({ $ref: `${id}#/${pointer}` })
    known.set(pointer, found)
    return found
  }
}

const ofDocument = validators(spec, "document")
const ofSealed = validators(sealed(spec), "sealed")
const ofAnyId = validators(spec, "any-id", { ...formats, uuid: /^/ })

const bodyIn = (document: typeof ofDocument, { method, template }: Operation) =>
  document("paths", template, method.toLowerCase(), "requestBody", "content", "application/json", "schema")

/** Whether the document accepts a body. */
export const admits = (operation: Operation, body: unknown): boolean => bodyIn(ofDocument, operation)(body)

/** The same with any text for an id: an id that is not a UUID belongs to no object, and is answered with 404. */
export const admitsBeyondIds = (operation: Operation, body: unknown): boolean => bodyIn(ofAnyId, operation)(body)

export interface Failure {
  readonly operation: string
  readonly requestId: string
  readonly auditId: string | null
  readonly status: number
  readonly code: string
}

/** Every failing answer that was compared with the document. */
export const failures: Array<Failure> = []

/** The headers of an answer that depend on the request. */
const telling = [
  "etag",
  "idempotency-replayed",
  "link",
  "location",
  "ratelimit",
  "ratelimit-policy",
  "retry-after",
  "www-authenticate",
]

const inside = /\n\s+at |node_modules|\.ts:\d|SqlError|SchemaError|PgConnection|postgres:|nats:/

const problem = (operation: Operation, answer: Answer, what: string) => {
  const { body, headers, status } = answer
  assert.strictEqual(body.request_id, headers["x-request-id"], what)
  assert.strictEqual(body.status, status, what)
  assert.strictEqual(body.type, `urn:bailiwick:problem:${body.code}`, what)
  assert.isString(body.detail, what)
  // A machine so busy that a key's first request takes two seconds may take more than one for an audit record, too.
  if (body.code !== "idempotency_in_progress") assert.isString(body.audit_id, what)
  // The template, with those ids filled in that are UUIDs.
  const pattern = operation.template.replaceAll(/\{[a-z_]+\}/g, "(\\{[a-z_]+\\}|[0-9a-f-]{36})")
  assert.match(body.instance, new RegExp(`^${pattern}$`), what)
}

/** Fails where the answer differs from the document; returns the answer. */
export const held = (operation: Operation, answer: Answer, why = ""): Answer => {
  const { headers, status, text } = answer
  const what = `${operation.operationId} ${why} ${status} ${text.slice(0, 2_000)}`
  const documented = operation.responses[String(status)] ?? operation.responses["default"]
  assert.isDefined(documented, `not documented: ${what}`)
  const type = headers["content-type"]?.split(";")[0] ?? ""
  assert.include(Object.keys(documented!.content ?? {}), type, what)
  const validate = ofSealed(...answerPath(operation, String(status)), "content", type, "schema")
  assert.isTrue(validate(answer.body), `${JSON.stringify(validate.errors?.slice(0, 4))} ${what}`)

  const named = Object.fromEntries(
    Object.entries(documented!.headers ?? {}).map(([name, header]) => [name.toLowerCase(), header]),
  )
  for (const [name, { required }] of Object.entries(named)) if (required) assert.property(headers, name, what)
  for (const name of telling) if (name in headers) assert.property(named, name, `${name}: ${what}`)
  assert.match(headers["x-request-id"]!, /^[A-Za-z0-9._-]{1,128}$/, what)
  assert.strictEqual(headers["cache-control"], "no-store", what)
  assert.strictEqual(headers["x-content-type-options"], "nosniff", what)
  if (status === 401) assert.property(headers, "www-authenticate", what)
  if (status === 429) assert.containsAllKeys(headers, ["retry-after", "ratelimit", "ratelimit-policy"], what)

  assert.notMatch(text, inside, what)
  assert.deepStrictEqual(secretsIn(text), [], what)
  if (status >= 400) {
    if (type === "application/problem+json") problem(operation, answer, what)
    failures.push({
      operation: operation.operationId,
      requestId: headers["x-request-id"]!,
      auditId: answer.body.audit_id ?? null,
      status,
      code: answer.body.code ?? "validation_error",
    })
  }
  return answer
}
