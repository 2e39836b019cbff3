/** The reference page, made from the OpenAPI document alone: no scripts, no content from other hosts. */
import { partNames, partPath } from "./ApiParts.ts"
import { at, type DocumentJson, isObject, type JsonObject, resolved } from "./DocumentJson.ts"
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { examplePath, examples, type RecordedExample } from "./RecordedExamples.ts"
import { description, fieldTable, phrase, prose, sample } from "./Schemas.ts"

interface Operation {
  readonly id: string
  readonly tag: string
  readonly method: string
  readonly path: string
  readonly value: JsonObject
}

const text = (value: DocumentJson | undefined): string => typeof value === "string" ? value : ""

const list = (value: DocumentJson | undefined): ReadonlyArray<DocumentJson> => Array.isArray(value) ? value : []

/** An operation without references to parameters and answers. */
const whole = (value: JsonObject, spec: JsonObject): JsonObject => ({
  security: spec["security"]!,
  ...value,
  parameters: list(value["parameters"]).map((parameter) => resolved(parameter, spec)!),
  responses: Object.fromEntries(
    Object.entries(value["responses"] as JsonObject).map(([status, answer]) => [status, resolved(answer, spec)!]),
  ),
})

const operations = (spec: JsonObject): ReadonlyArray<Operation> =>
  Object.entries(spec["paths"] as JsonObject).flatMap(([path, methods]) =>
    Object.entries(methods as JsonObject).flatMap(([method, value]) =>
      isObject(value)
        ? [{
          id: text(value["operationId"]),
          tag: text(list(value["tags"])[0]),
          method: method.toUpperCase(),
          path,
          value: whole(value, spec),
        }]
        : []
    )
  )

const quote = (value: string) => `'${value.replaceAll("'", `'\\''`)}'`

const curl = ({ method, path, value }: Operation, spec: JsonObject, base: string): string => {
  const query = list(value["parameters"]).filter((parameter) =>
    at(parameter, "in") === "query" && at(parameter, "required") === true
  ).map((parameter) => `${text(at(parameter, "name"))}=${String(sample(at(parameter, "schema"), spec))}`)
  const headers = list(value["parameters"]).filter((parameter) =>
    at(parameter, "in") === "header" && at(parameter, "required") === true
  ).map((parameter) => ` \\\n  -H ${quote(`${text(at(parameter, "name"))}: …`)}`)
  const body = at(value, "requestBody", "content", "application/json", "schema")
  return [
    `curl ${method === "GET" ? "" : `-X ${method} `}${
      quote(`${base}${path}${query.length > 0 ? `?${query.join("&")}` : ""}`)
    }`,
    list(value["security"]).length > 0 ? ` \\\n  -H ${quote("Authorization: Bearer …")}` : "",
    ...headers,
    body === undefined
      ? ""
      : ` \\\n  -H ${quote("Content-Type: application/json")} \\\n  -d ${quote(JSON.stringify(sample(body, spec)))}`,
  ].join("")
}

const parameters = (operation: Operation): Html => {
  const all = list(operation.value["parameters"])
  return all.length === 0 ? html`` : html`
    <h4>Parameters</h4>
    <table>
      <tbody>${all.map((parameter) =>
        html`
          <tr>
            <th scope="row"><code>${text(at(parameter, "name"))}</code> <span class="note">${text(
              at(parameter, "in"),
            )}</span>${at(parameter, "required") === true
              ? html`
                <span class="req">required</span>
              `
              : ""}</th>
            <td>${phrase(at(parameter, "schema"))}${description(at(parameter, "schema"))}</td>
          </tr>
        `
      )}</tbody>
    </table>
  `
}

const named = (schema: DocumentJson | undefined): Html => html`<p>${phrase(schema)}</p>`

/** The fields of a schema, under its name where it has one. */
const unfolded = (schema: DocumentJson | undefined, spec: JsonObject): Html => {
  const inner = resolved(schema, spec)
  return inner === schema ? fieldTable(schema, spec) : html`${named(schema)}${fieldTable(inner, spec)}`
}

const body = (operation: Operation, spec: JsonObject): Html => {
  const schema = at(operation.value, "requestBody", "content", "application/json", "schema")
  return schema === undefined ? html`` : html`<h4>Body</h4>${unfolded(schema, spec)}`
}

const response = (status: string, value: DocumentJson, spec: JsonObject): Html => {
  const content = at(value, "content")
  const [entry] = isObject(content) ? Object.entries(content) : []
  const schema = entry && at(entry[1], "schema")
  const summary = html`<code>${status}</code> ${prose(text(at(value, "description")))} ${
    entry ? html`<span class="note">${entry[0]}</span>` : ""
  }`
  if (schema === undefined) return html`<p class="reply">${summary}</p>`
  return html`<details${
    status.startsWith("2")
      ? html`
        open
      `
      : ""
  }><summary>${summary}</summary>${status.startsWith("2") ? unfolded(schema, spec) : named(schema)}</details>`
}

/** A request or an answer as it is sent: its first line, its headers, and its body. */
const message = (line: string, { body, headers }: RecordedExample["request"] | RecordedExample["answer"]): string =>
  [
    line,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined ? [] : ["", typeof body === "string" ? body.trimEnd() : JSON.stringify(body, null, 2)]),
  ].join("\n")

/** A request and its answer of a run of the tests. */
const recorded = ({ id, method, path }: Operation): Html => {
  const example = examples[id]
  // A document of another contract may have an operation of the same name.
  if (example === undefined || example.request.method !== method || !isOf(path, example)) return html``
  const { answer, request } = example
  return html`
    <details>
      <summary>A recorded example, with a list of at most two items</summary>
      <pre><code>${message(`${request.method} ${request.path}`, request)}</code></pre>
      <pre><code>${message(`HTTP/1.1 ${answer.status}`, answer)}</code></pre>
      <p><a href="${examplePath(id)}">The example as JSON</a></p>
    </details>
  `
}

/** Whether an example is of an operation with this path. */
const isOf = (path: string, { request }: RecordedExample): boolean =>
  request.path.startsWith(path.split("{")[0]!.replace(/\/$/, ""))

/** The document's own Markdown: headings of the second level, and paragraphs. */
const introduction = (value: string): ReadonlyArray<Html> =>
  value.split("\n\n").map((part) =>
    part.startsWith("## ") ? html`<h2>${part.slice("## ".length)}</h2>` : html`<p>${prose(part)}</p>`
  )

// The ids stand inside the folded parts: a browser that goes to an id unfolds the part that holds it.
const folded = (id: string, head: Html, content: Html): Html =>
  html`
    <details class="fold">
      <summary>${head}</summary>
      <article id="${id}">${content}</article>
    </details>
  `

const verb = ({ method }: Operation): Html => html`<span class="verb ${method.toLowerCase()}">${method}</span>`

const section = (operation: Operation, spec: JsonObject, base: string): Html =>
  folded(
    operation.id,
    html`<h3>${verb(operation)} <code>${operation.path}</code></h3> <span class="note">${
      text(operation.value["summary"])
    }</span>`,
    html`<p>${prose(text(operation.value["description"]))}</p>
${parameters(operation)}${body(operation, spec)}
<h4>Answers</h4>${
      Object.entries(operation.value["responses"] as JsonObject).map(([status, value]) => response(status, value, spec))
    }
${recorded(operation)}
<h4>Try it</h4><pre><code>${curl(operation, spec, base)}</code></pre>`,
  )

const models = (spec: JsonObject): Html =>
  html`<section><h2 id="schemas">Schemas</h2>${
    Object.entries((at(spec, "components", "schemas") ?? {}) as JsonObject).map(([name, schema]) =>
      folded(`schema-${name}`, html`<h3><code>${name}</code></h3>`, fieldTable(schema, spec))
    )
  }</section>`

const events = (spec: JsonObject): Html => {
  const all = Object.entries((spec["webhooks"] ?? {}) as JsonObject)
  return all.length === 0 ? html`` : html`<section><h2 id="events">Events</h2>${
    all.map(([type, item]) => {
      const operation = at(item, "post")
      const example = at(operation, "requestBody", "content", "application/json", "example") ?? null
      return folded(
        `event-${type}`,
        html`<h3><code>${type}</code></h3> <span class="note">${text(at(operation, "summary"))}</span>`,
        html`
          <p>${prose(text(at(operation, "description")))}</p>
          <pre><code>${JSON.stringify(example, null, 2)}</code></pre>
        `,
      )
    })
  }</section>`
}

/** The page; `base` is the origin that its examples call. */
export const page = (spec: JsonObject, base: string): Html => {
  const all = operations(spec)
  const tags = list(spec["tags"]).map((tag) => ({ name: text(at(tag, "name")), note: text(at(tag, "description")) }))
  const title = text(at(spec, "info", "title"))
  return html`
    <!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <title>${title} ${text(at(spec, "info", "version"))}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <link rel="stylesheet" href="/v1/docs/style.css">
      </head>
      <body>
        <header>
          <h1>${title}</h1>
          <p>Version ${text(
            at(spec, "info", "version"),
          )} · <a href="/v1/openapi.json">OpenAPI document</a>, by parts: ${partNames.map((part) =>
            html`
              <a href="${partPath(part)}">${part}</a>
            `
          )} · <a href="/v1/asyncapi.json">AsyncAPI document of the bus</a></p>
        </header>
        <nav aria-label="Endpoints">${tags.map((tag) =>
          html`
            <details>
              <summary>
                <h2>${tag.name}</h2>
              </summary>
              <ul>${all.filter((operation) => operation.tag === tag.name).map((operation) =>
                html`<li><a href="#${operation.id}"><span class="verb ${operation.method.toLowerCase()}">${operation.method}</span> ${operation.path}</a></li>`
              )}</ul>
            </details>
          `
        )}${spec["webhooks"] === undefined
          ? ""
          : html`<h2><a href="#events">Events</a></h2>`}<h2><a href="#schemas">Schemas</a></h2></nav>
        <main><section class="introduction">${introduction(text(at(spec, "info", "description")))}</section>${tags.map((
          tag,
        ) =>
          html`<section><h2>${tag.name}</h2><p>${prose(tag.note)}</p>${
            all.filter((operation) => operation.tag === tag.name).map((operation) => section(operation, spec, base))
          }</section>`
        )}${events(spec)}${models(spec)}</main>
      </body>
    </html>
  `
}
