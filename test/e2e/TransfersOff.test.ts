/** With DOMAIN_TRANSFERS_ENABLED=false transfers are 404 before a credential or a body is read. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { fixture } from "./support/ProgramFixture.ts"

const id = randomUUID()
const paths = [
  ["POST", `/v1/domains/${id}/transfer`],
  ["GET", `/v1/domains/${id}/dkim`],
  ["GET", "/v1/domain-transfers/incoming"],
  ["GET", "/v1/domain-transfers/outgoing"],
  ["GET", "/v1/domain-transfers/received"],
  ["GET", "/v1/admin/domain-transfers"],
  ["GET", "/v1/domain-transfers/accept-eligibility"],
  ["GET", `/v1/domain-transfers/${id}`],
  ["POST", "/v1/domain-transfers/some-token/accept"],
  ["POST", `/v1/domain-transfers/by-id/${id}/accept`],
  ["POST", `/v1/domain-transfers/${id}/decline`],
  ["DELETE", `/v1/domain-transfers/${id}`],
  ["POST", "/v1/domain-transfers/stop/some-token"],
  ["POST", `/v1/admin/domain-transfers/${id}`],
] as const

const pages = ["/transfers/accept/some-token", "/transfers/stop/some-token"]

const bodies = [
  { body: "{", type: "application/json" },
  { body: "x".repeat(300_000), type: "application/json" },
  { body: "a=b", type: "text/plain" },
  { body: null, type: null },
]

const ask = (origin: string, method: string, path: string, body: string | null, type: string | null) =>
  Effect.promise(async () => {
    const response = await fetch(origin + path, {
      method,
      headers: type === null ? {} : { "content-type": type },
      body: method === "GET" ? null : body,
    })
    const problem = await response.json() as { readonly code?: string }
    return [response.status, problem.code]
  })

const typeOf = (origin: string, path: string) =>
  Effect.promise(async () => {
    const response = await fetch(origin + path)
    await response.text()
    return response.headers.get("content-type")
  })

/** The parts of the served document that are about transfers. */
const documented = (origin: string) =>
  Effect.promise(async () => {
    const { components, paths, tags } = await (await fetch(`${origin}/v1/openapi.json`)).json()
    return {
      paths: Object.keys(paths).filter((path) => /transfer|dkim/.test(path)).length,
      schemas: Object.keys(components.schemas).filter((name) => /^DomainTransfer/.test(name)).length,
      tag: (tags as ReadonlyArray<{ readonly name: string }>).some(({ name }) => /transfers/i.test(name)),
    }
  })

describe("the transfers' switch", () => {
  it.live(
    "off: all eleven paths, both pages and wrong methods on them are 404; on: they are served",
    () =>
      Effect.gen(function* () {
        const { instance } = yield* fixture({ DOMAIN_TRANSFERS_ENABLED: "false" })
        for (const [method, path] of paths) {
          for (const { body, type } of bodies) {
            assert.deepStrictEqual(yield* ask(instance.origin(), method, path, body, type), [404, "not_found"], path)
          }
          assert.deepStrictEqual(yield* ask(instance.origin(), "PUT", path, "{", "application/json"), [
            404,
            "not_found",
          ])
        }
        for (const path of pages) {
          for (const method of ["GET", "POST", "PUT"]) {
            for (const { body, type } of bodies) {
              assert.deepStrictEqual(yield* ask(instance.origin(), method, path, body, type), [404, "not_found"], path)
            }
          }
        }
        assert.deepStrictEqual(yield* documented(instance.origin()), { paths: 0, schemas: 0, tag: false })
        yield* instance.end("SIGTERM")
        yield* instance.start({ DOMAIN_TRANSFERS_ENABLED: "true" })
        const { paths: there, tag } = yield* documented(instance.origin())
        assert.deepStrictEqual({ there, tag }, { there: new Set(paths.map(([, path]) => path)).size, tag: true })
        for (const [method, path] of paths) {
          const expected = path.includes("/stop/") ? [404, "not_found"] : [401, "invalid_credentials"]
          assert.deepStrictEqual(yield* ask(instance.origin(), method, path, null, null), expected, path)
          const known = yield* ask(instance.origin(), "PUT", path, null, null)
          assert.deepStrictEqual(known, [405, "method_not_allowed"], path)
        }
        // An unknown link explains itself to a person.
        for (const path of pages) assert.match((yield* typeOf(instance.origin(), path)) ?? "", /^text\/html/)
      }).pipe(Effect.scoped),
    240_000,
  )
})
