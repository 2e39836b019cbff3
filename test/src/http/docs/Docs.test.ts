import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { OpenApi } from "effect/http-api"
import { once } from "node:events"
import { get, type IncomingMessage } from "node:http"
import { buffer } from "node:stream/consumers"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { Api } from "../../../../schemas/api/Api.ts"
import { DeliveryStatus } from "../../../../schemas/mail/Delivery.ts"
import { eventTypes } from "../../../../schemas/mail/MailEvent.ts"
import { generateSecret, headersFor } from "../../../../services/webhooks/Signer.ts"
import { fastApiSchemas } from "../../../../schemas/Validation.ts"
import { partNames } from "../../../../src/http/docs/ApiParts.ts"
import * as Docs from "../../../../src/http/docs/Docs.ts"
import { document } from "../../../../src/http/docs/Document.ts"
import { at, type DocumentJson, resolved } from "../../../../src/http/docs/DocumentJson.ts"
import { html } from "../../../../services/platform/mail/Html.ts"
import { descriptions } from "../../../../src/http/docs/OperationDescriptions.ts"
import { page } from "../../../../src/http/docs/DocsPage.ts"
import { partDocument } from "../../../../src/http/docs/PartDocuments.ts"
import { examplePath, examples } from "../../../../src/http/docs/RecordedExamples.ts"
import { Audit } from "../../../../services/platform/observability/Audit.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../../src/http/Server.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { TestApi } from "../edge/TestApi.ts"
import { call } from "../edge/TestServer.ts"

const spec = document(TestApi)
const body = (path: string) => at(spec, "paths", path, "post", "requestBody")

const refs = (value: DocumentJson): ReadonlyArray<string> =>
  Array.isArray(value)
    ? value.flatMap(refs)
    : typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, inner]) => key === "$ref" ? [String(inner)] : refs(inner))
    : []

describe("the OpenAPI document", () => {
  it("is 3.1.0, version 0.2.0, with FastAPI's validation schemas word for word", () => {
    assert.strictEqual(spec["openapi"], "3.1.0")
    assert.strictEqual(at(spec, "info", "version"), "0.2.0")
    assert.deepStrictEqual(at(spec, "components", "schemas", "HTTPValidationError"), fastApiSchemas.HTTPValidationError)
    assert.deepStrictEqual(at(spec, "components", "schemas", "ValidationError"), fastApiSchemas.ValidationError)
    assert.deepStrictEqual(
      at(spec, "components", "responses", "Invalid", "content", "application/json", "schema"),
      { $ref: "#/components/schemas/HTTPValidationError" },
    )
  })

  it("holds everything that it refers to, and no schema named `Encoded`", () => {
    const whole = document(Api)
    for (const ref of [...refs(spec), ...refs(whole)]) {
      assert.isDefined(resolved({ $ref: ref }, whole) ?? resolved({ $ref: ref }, spec), ref)
      assert.notMatch(ref, /schemas\/.*Encoded$/)
    }
  })

  it("describes what lax scalars accept", () => {
    const taken = {
      integer: "Also as a string: `10`, `+10`, `1_000`, `10.0`.",
      boolean: "Also `t`, `yes`, `y`, `on`, `1` and their opposites.",
    }
    const properties = at(body("/v1/things/{id}"), "content", "application/json", "schema", "properties")
    assert.deepStrictEqual(at(properties, "size"), {
      type: "integer",
      description: taken.integer,
      minimum: 1,
      maximum: 10,
    })
    assert.deepStrictEqual(at(properties, "on"), { type: "boolean", description: taken.boolean })
    const parameters = at(spec, "paths", "/v1/things", "get", "parameters") as ReadonlyArray<DocumentJson>
    assert.deepStrictEqual(parameters.map((parameter) => at(parameter, "schema")), [
      { type: "integer", description: taken.integer, minimum: 1, maximum: 100 },
      { type: "boolean", description: taken.boolean },
    ])
  })

  it("closes only bodies that refuse unknown members, and requires only those that must be sent", () => {
    const strict = at(body("/v1/strict"), "content", "application/json", "schema")
    assert.strictEqual(at(strict, "additionalProperties"), false)
    assert.isUndefined(at(body("/v1/things/{id}"), "content", "application/json", "schema", "additionalProperties"))
    assert.strictEqual(at(body("/v1/strict"), "required"), true)
    assert.strictEqual(at(body("/v1/optional"), "required"), false)
    assert.strictEqual(at(body("/v1/named"), "required"), true)
  })

  it("documents validation where it can fail, and the problems that any operation can meet once", () => {
    const statuses = (path: string, method: string) =>
      Object.keys(at(spec, "paths", path, method, "responses") as object)
    assert.deepStrictEqual(statuses("/v1/current", "get"), ["200", "4XX", "default"])
    assert.includeMembers(statuses("/v1/things", "get"), ["200", "422"])
    assert.includeMembers(statuses("/v1/strict", "post"), ["422", "default"])
    assert.deepStrictEqual(at(spec, "paths", "/v1/strict", "post", "responses", "default"), {
      $ref: "#/components/responses/Any",
    })
  })
})

describe("the document of the whole contract", () => {
  const whole = document(Api)
  const parameters = Object.entries(whole["paths"] as Readonly<Record<string, DocumentJson>>).flatMap((
    [path, methods],
  ) =>
    Object.values(methods as Readonly<Record<string, DocumentJson>>).flatMap((operation) =>
      (at(operation, "parameters") as ReadonlyArray<DocumentJson>).map((parameter) => ({
        path,
        parameter: resolved(parameter, whole),
      }))
    )
  )
  const schemaOf = (path: string, name: string) =>
    at(parameters.find((one) => one.path === path && at(one.parameter, "name") === name)?.parameter, "schema")

  it("gives every page and limit its default, and every status its values", () => {
    const deliveries = "/v1/webhooks/{webhook_id}/deliveries"
    assert.deepInclude(schemaOf(deliveries, "page"), {
      type: "integer",
      minimum: 0,
      maximum: 100_000_000,
      default: 0,
    })
    assert.deepStrictEqual(schemaOf(deliveries, "status"), { type: "string", enum: [...DeliveryStatus.literals] })
    for (const { path, parameter } of parameters) {
      const name = String(at(parameter, "name"))
      // A list that the specification answers whole has pages only where they are asked for.
      const whole = name === "limit" && path.endsWith("/access-grant-reviews")
      if (!whole && ["page", "limit", "unread", "include_paused", "wait"].includes(name)) {
        assert.isDefined(at(parameter, "schema", "default"), `${path} ${name}`)
      }
      if (["status", "state", "category"].includes(name)) {
        assert.isArray(at(parameter, "schema", "enum"), `${path} ${name}`)
      }
    }
    const rotation = at(whole, "components", "schemas", "SecretRotation", "properties", "overlap_seconds")
    assert.deepInclude(rotation, { type: "integer", minimum: 0, maximum: 604_800, default: 86_400 })
    const blocker = at(whole, "components", "schemas", "TransferBlocker", "properties", "status", "enum")
    assert.deepStrictEqual(blocker, ["scheduled", "sending"])
  })

  it("describes the request of each of the eight events, by the schema of the catalogue", () => {
    const webhooks = whole["webhooks"] as Readonly<Record<string, DocumentJson>>
    assert.deepStrictEqual(Object.keys(webhooks), [...eventTypes])
    for (const [type, item] of Object.entries(webhooks)) {
      const media = at(item, "post", "requestBody", "content", "application/json")
      assert.deepStrictEqual(at(media, "schema"), { $ref: "#/components/schemas/WebhookBody" })
      assert.strictEqual(at(media, "example", "event"), type)
      const sent = headersFor({
        deliveryId: "d",
        eventType: type,
        attempt: 1,
        timestampSeconds: 1,
        body: "",
        secrets: [generateSecret()],
      })
      const described = (at(item, "post", "parameters") as ReadonlyArray<DocumentJson>)
        .map((parameter) => String(at(resolved(parameter, whole), "name")))
      const others = ["content-type", "user-agent"]
      const names = Object.keys(sent).map((name) => name.toLowerCase()).filter((name) => !others.includes(name))
      assert.sameMembers(described, names)
    }
  })

  it("introduces what all operations have in common", () => {
    const introduction = String(at(whole, "info", "description"))
    for (const title of ["Authentication", "Errors", "Idempotency", "Limits", "Pages of lists", "Versions"]) {
      assert.include(introduction, `\n\n## ${title}\n\n`)
    }
  })

  it("describes every operation, and none that it lacks", () => {
    const operations = Object.values(whole["paths"] as Readonly<Record<string, DocumentJson>>)
      .flatMap((methods) => Object.values(methods as Readonly<Record<string, DocumentJson>>))
    const ids = operations.map((operation) => String(at(operation, "operationId")))
    const described = Object.keys(descriptions)
    const file = "src/http/docs/OperationDescriptions.ts"
    assert.deepStrictEqual(ids.filter((id) => !described.includes(id)), [], `give each a sentence in ${file}`)
    assert.deepStrictEqual(described.filter((id) => !ids.includes(id)), [], `take these out of ${file}`)
    for (const operation of operations) {
      const id = String(at(operation, "operationId"))
      assert.isString(at(operation, "description"), id)
      assert.isString(at(operation, "summary"), `${id}: annotate OpenApi.Summary at the endpoint`)
    }
  })

  it("is small enough to be read, and its parts to be generated from", () => {
    const hint = "shorten descriptions, and give an identifier to schemas that repeat, before you raise this bound"
    // An operation takes 1,790 characters with its part of what is shared: of these, 600 are references, 290 its own
    // words and those of its answers and schemas. Each new operation may take as many.
    const count = Object.values(whole["paths"] as Readonly<Record<string, object>>).flatMap(Object.keys).length
    assert.isBelow(JSON.stringify(whole).length / count, 1_800, hint)
    for (const part of partNames) {
      assert.isBelow(JSON.stringify(partDocument(whole, part)).length, 200_000, `${part}: ${hint}`)
    }
  })

  it("is the sum of its parts, each of which holds what it refers to and nothing else", () => {
    const keysOf = (value: DocumentJson | undefined) => Object.keys(value as Readonly<Record<string, DocumentJson>>)
    const operationsOf = (one: DocumentJson) =>
      keysOf(at(one, "paths")).flatMap((path) => keysOf(at(one, "paths", path)).map((method) => `${method} ${path}`))
    const all = partNames.map((part) => partDocument(whole, part))
    const file = "src/http/docs/ApiParts.ts"
    assert.sameMembers(all.flatMap(operationsOf), operationsOf(whole), `give the tag of a new group a part in ${file}`)
    for (const one of all) {
      const found = new Set(refs(one))
      for (const ref of found) assert.isDefined(resolved({ $ref: ref }, one), ref)
      const schemes = JSON.stringify([at(one, "security") ?? null, at(one, "paths") ?? null])
      for (const name of keysOf(at(one, "components", "securitySchemes"))) assert.include(schemes, `"${name}":[]`)
      for (const section of ["schemas", "responses", "parameters", "headers"]) {
        for (const name of keysOf(at(one, "components", section))) {
          assert.isTrue(found.has(`#/components/${section}/${name}`), `${section} ${name}`)
        }
      }
    }
  })

  it("names in its parts where the recorded example of an operation is served", () => {
    for (const part of partNames) {
      for (const methods of Object.values(partDocument(whole, part)["paths"] as Readonly<Record<string, object>>)) {
        for (const operation of Object.values(methods)) {
          assert.strictEqual(at(operation, "externalDocs", "url"), examplePath(operation.operationId))
        }
      }
    }
  })

  it("says which ids are UUIDs", () => {
    // Ids of a directory or of a key, or tokens and digests.
    const others = ["institution_id", "project_id", "person_id", "access_id", "token", "stop_token", "digest", "kid"]
    for (const { path, parameter } of parameters.filter(({ parameter }) => at(parameter, "in") === "path")) {
      const name = String(at(parameter, "name"))
      const hint = `${path} ${name}: a UUID by its schema, or else in the list above`
      assert.strictEqual(at(parameter, "schema", "format") === "uuid", !others.includes(name), hint)
    }
    for (const name of ["Webhook", "WebhookDelivery", "Notification", "DomainTransfer", "GrantRead", "OwnRequest"]) {
      assert.strictEqual(at(whole, "components", "schemas", name, "properties", "id", "format"), "uuid", name)
    }
    assert.strictEqual(at(whole, "components", "schemas", "DomainDkim", "properties", "domain_id", "format"), "uuid")
    const transfer = at(whole, "components", "schemas", "DkimKey", "properties", "transfer_id")
    assert.deepStrictEqual(transfer, { type: ["string", "null"], format: "uuid" })
  })
})

describe("the page", () => {
  it("folds every operation, and unfolds the one that its address names", () => {
    const folds = page(document(Api), "https://mail.example.com").text
    const operations = Object.values(document(Api)["paths"] as Readonly<Record<string, DocumentJson>>)
      .flatMap((methods) => Object.values(methods as Readonly<Record<string, DocumentJson>>))
    for (const operation of operations) {
      // A browser opens the details around the target of an address, not the details that are the target.
      const id = String(at(operation, "operationId"))
      assert.match(folds, new RegExp(`</summary>\\s*<article id="${id}">`))
    }
  })

  it("shows the recorded example of every operation, and links to it", () => {
    const whole = page(document(Api), "https://mail.example.com").text
    for (const id of Object.keys(examples)) assert.include(whole, `href="${examplePath(id)}"`)
    assert.include(whole, "<code>POST /v1/webhooks/\n")
    assert.include(whole, "<code>HTTP/1.1 201\n")
  })

  it("says in words what parameters and members mean, with code as code", () => {
    const whole = page(document(Api), "https://mail.example.com").text
    assert.include(whole, "The <code>after_id</code> of the next page; null on the last page")
    const [, deliveries] = /<article id="listAllDeliveries">([\s\S]*?)<\/article>/.exec(whole)!
    assert.match(deliveries!, /<code>response_status<\/code>(?:(?!<\/tr>)[\s\S])*class="note">[^<]/)
    const [prose] = whole.replaceAll(/<pre>[\s\S]*?<\/pre>/g, "").match(/`[^`<>]*`/) ?? []
    assert.isUndefined(prose)
  })

  const text = page(spec, "https://mail.example.com").text

  it("has every operation, with a curl line", () => {
    for (const [path, methods] of Object.entries(spec["paths"] as Record<string, object>)) {
      for (const method of Object.keys(methods)) {
        assert.include(text, `${method.toUpperCase()}</span> <code>${path}</code>`)
        assert.include(text, `https://mail.example.com${path}`)
      }
    }
  })

  it("links only to what it holds, and loads nothing from elsewhere", () => {
    for (const [, target] of text.matchAll(/href="#([^"]+)"/g)) assert.include(text, `id="${target}"`)
    for (const [, target] of text.matchAll(/(?:href|src)="([^#"][^"]*)"/g)) assert.match(target ?? "", /^\/v1\//)
    assert.notMatch(text, /<script|<img|style=|onclick/)
  })

  it("escapes the contract's texts", () => {
    const Evil = TestApi.annotateMerge(OpenApi.annotations({ title: "<script>alert(1)</script>" }))
    const written = page(document(Evil), "x").text
    assert.notInclude(written, "<script>")
    assert.include(written, "&lt;script&gt;alert(1)")
    assert.strictEqual(html`<a title="${`"><&'`}">`.text, `<a title="&quot;&gt;&lt;&amp;&#39;">`)
  })
})

const unpackings = { br: brotliDecompressSync, gzip: gunzipSync }

/** An answer as it was sent; `fetch` would decompress it. */
const packedAnswer = Effect.fnUntraced(function* (path: string, headers: Readonly<Record<string, string>>) {
  const { url } = yield* Server
  return yield* Effect.promise(async () => {
    const sent = get(url + path, { headers })
    const [answer] = await once(sent, "response") as [IncomingMessage]
    return { status: answer.statusCode, headers: answer.headers, body: await buffer(answer) }
  })
})

const serving = Server.layer(Docs.layer(TestApi, "http://localhost"), { host: "127.0.0.1", port: 0 }).pipe(
  Layer.provide(RejectionAudit.layer.pipe(Layer.provide(Audit.layer))),
  Layer.provide(TestDatabase.layer),
)

layer(serving, { excludeTestServices: true, timeout: "2 minutes" })("over a socket", (it) => {
  it.effect("all are public and cacheable, and admit no script", () =>
    Effect.gen(function* () {
      const paths = ["/v1/openapi.json", "/v1/openapi/mail.json", "/v1/docs", "/v1/docs/", "/v1/docs/style.css"]
      for (const path of paths) {
        const reply = yield* call("GET", path, undefined, { accept: "text/html" })
        assert.strictEqual(reply.status, 200)
        assert.strictEqual(reply.headers.get("cache-control"), "public, max-age=60")
        assert.match(reply.headers.get("content-security-policy") ?? "", /^default-src 'none'; style-src 'self';/)
        const again = yield* call("GET", path, undefined, { "if-none-match": reply.headers.get("etag") ?? "" })
        assert.deepStrictEqual([again.status, again.text], [304, ""])
        for (const [encoding, unpack] of Object.entries(unpackings)) {
          const packed = yield* packedAnswer(path, { "accept-encoding": encoding })
          assert.strictEqual(packed.headers["content-encoding"], encoding)
          assert.strictEqual(packed.headers["vary"], "accept-encoding")
          assert.strictEqual(unpack(packed.body).toString(), reply.text)
          assert.isBelow(packed.body.length, reply.text.length * 0.6)
          const held = yield* packedAnswer(path, {
            "accept-encoding": encoding,
            "if-none-match": packed.headers["etag"] ?? "",
          })
          assert.deepStrictEqual([held.status, held.body.length], [304, 0])
        }
      }
      const served = yield* call("GET", "/v1/openapi.json")
      assert.deepStrictEqual(served.json, spec)
    }))

  it.effect("every recorded example is served, whole and by its bodies", () =>
    Effect.gen(function* () {
      for (const [id, example] of Object.entries(examples)) {
        assert.deepStrictEqual<unknown>((yield* call("GET", examplePath(id))).json, example)
        const { answer, request } = example
        for (const [part, { body }] of Object.entries({ request, answer }) as Array<["request", typeof request]>) {
          const reply = yield* call("GET", examplePath(id, part))
          if (body === undefined) assert.strictEqual(reply.status, 404, id)
          else assert.deepStrictEqual<unknown>(reply.json, body, id)
        }
      }
    }))
})
