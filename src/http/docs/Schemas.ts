/** Shows JSON Schemas to people: a phrase for a type, rows for the fields of an object, a sample value. */
import { at, type DocumentJson, isObject, type JsonObject, prefix, resolved } from "./DocumentJson.ts"
import { Html, html } from "../../../services/platform/mail/Html.ts"

export const nameOf = (schema: DocumentJson | undefined): string | undefined => {
  const ref = at(schema, "$ref")
  return typeof ref === "string" && ref.startsWith(prefix) ? ref.slice(prefix.length) : undefined
}

type Field = readonly [name: string, schema: DocumentJson, required: boolean]

/** The members of an object schema, each a row of its table; those of the schemas that it extends come first. */
export const fieldsOf = (schema: DocumentJson | undefined, spec: JsonObject): ReadonlyArray<Field> => {
  const bases = at(schema, "allOf")
  return [
    ...new Map(
      [
        ...(Array.isArray(bases) ? bases.flatMap((base) => fieldsOf(resolved(base, spec), spec)) : []),
        ...ownFields(schema),
      ].map((field) => [field[0], field]),
    ).values(),
  ]
}

const ownFields = (schema: DocumentJson | undefined): ReadonlyArray<Field> => {
  const properties = at(schema, "properties")
  const required = at(schema, "required")
  if (!isObject(properties)) return []
  return Object.entries(properties).map(([name, field]) =>
    [name, field, Array.isArray(required) && required.includes(name)] as const
  )
}

const alternatives = (schema: JsonObject): ReadonlyArray<DocumentJson> => {
  const found = schema["anyOf"] ?? schema["oneOf"]
  return Array.isArray(found) ? found : []
}

const span = (least: DocumentJson | undefined, most: DocumentJson | undefined, unit: string): string => {
  if (least === undefined && most === undefined) return ""
  if (least === undefined) return ` up to ${most}${unit}`
  return most === undefined ? ` from ${least}${unit}` : ` ${least} to ${most}${unit}`
}

const limits = (schema: JsonObject): string =>
  span(schema["minLength"], schema["maxLength"], " characters") +
  span(schema["minimum"], schema["maximum"], "") +
  span(schema["minItems"], schema["maxItems"], " items")

/** `string, 2 to 200 characters`, `"a" or "b"`, `list of <a>Webhook</a>`. */
export const phrase = (schema: DocumentJson | undefined): Html => {
  const name = nameOf(schema)
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`
  if (!isObject(schema)) return html`anything`
  const choices = Array.isArray(schema["enum"]) ? schema["enum"] : "const" in schema ? [schema["const"]!] : []
  if (choices.length > 0) {
    return new Html(choices.map((choice) => html`<code>${JSON.stringify(choice)}</code>`.text).join(" or "))
  }
  const members = alternatives(schema)
  if (members.length > 0) return new Html(members.map((member) => phrase(member).text).join(" or "))
  const { type } = schema
  if (Array.isArray(type)) return html`${phrase({ ...schema, type: type[0]! })} or null`
  if (type === "array") return html`list of ${phrase(schema["items"])}${limits(schema)}`
  if (type === "object" || "properties" in schema) {
    return "properties" in schema || "allOf" in schema
      ? html`object`
      : html`map of ${phrase(schema["additionalProperties"])}`
  }
  const { format, pattern } = schema
  return html`${typeof type === "string" ? type : "anything"}${
    typeof format === "string"
      ? html`
        (${format})
      `
      : ""
  }${limits(schema)}${typeof pattern === "string" && format === undefined ? html`, <code>${pattern}</code>` : ""}`
}

/** A table of fields; objects within objects are unfolded in place. */
export const fieldTable = (schema: DocumentJson | undefined, spec: JsonObject, depth = 0): Html => {
  const fields = fieldsOf(schema, spec)
  if (fields.length === 0) return html`<p>${phrase(schema)}</p>`
  return html`
    <table>
      <tbody>${fields.map(([name, field, required]) => {
        const inner = at(field, "type") === "array" ? at(field, "items") : field
        return html`
          <tr>
            <th scope="row"><code>${name}</code>${required
              ? html`
                <span class="req">required</span>
              `
              : ""}</th>
            <td>${phrase(field)}${description(field)}${depth < 3 && fieldsOf(inner, spec).length > 0
              ? fieldTable(inner, spec, depth + 1)
              : ""}</td>
          </tr>
        `
      })}</tbody>
    </table>
  `
}

/** A text with code in backquotes. */
export const prose = (value: string): Html =>
  new Html(
    value.split("`").map((part, index) => (index % 2 === 0 ? html`${part}` : html`<code>${part}</code>`).text).join(""),
  )

/** What a schema says in words, on a line of its own. */
export const description = (schema: DocumentJson | undefined): Html => {
  const text = at(schema, "description")
  return typeof text === "string" ? html`<br><span class="note">${prose(text)}</span>` : html``
}

const formatted: Readonly<Record<string, string>> = {
  "date-time": "2030-01-01T00:00:00.000Z",
  "idn-hostname": "portal.example.org",
  "uri": "https://portal.example.org/",
  "uuid": "0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a11",
}

/** A sample text that the schema admits, so that the examples of the page are not refused for their form. */
const sampleText = ({ format, minLength, pattern }: JsonObject): string => {
  const known = typeof format === "string" ? formatted[format] : undefined
  if (known !== undefined) return known
  if (typeof pattern === "string" && !new RegExp(pattern, "u").test("string")) return "123456"
  return typeof minLength === "number" && minLength > 6
    ? "string ".repeat(minLength).slice(0, minLength + 6).trim()
    : "string"
}

/** A sample value of a schema: its example, its default, its first choice, or the name of its type. */
export const sample = (schema: DocumentJson | undefined, spec: JsonObject, depth = 0): DocumentJson => {
  if (!isObject(schema) || depth > 6) return null
  const name = nameOf(schema)
  if (name !== undefined) return sample(at(spec, "components", "schemas", name), spec, depth + 1)
  const [example] = Array.isArray(schema["examples"]) ? schema["examples"] : []
  if (example !== undefined) return example
  if (schema["default"] !== undefined) return schema["default"]
  if (schema["const"] !== undefined) return schema["const"]
  if (Array.isArray(schema["enum"])) return schema["enum"][0] ?? null
  const [first] = alternatives(schema)
  if (first !== undefined) return sample(first, spec, depth + 1)
  const { type } = schema
  switch (Array.isArray(type) ? type[0] : type) {
    case "array":
      return [sample(schema["items"], spec, depth + 1)]
    case "integer":
    case "number":
      return schema["minimum"] ?? 1
    case "boolean":
      return true
    case "string":
      return sampleText(schema)
    default:
      return Object.fromEntries(
        fieldsOf(schema, spec).filter(([, , required]) => required)
          .map(([field, inner]) => [field, sample(inner, spec, depth + 1)]),
      )
  }
}
