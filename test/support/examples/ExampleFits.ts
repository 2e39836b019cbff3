/** Whether a recorded example is what the document says of its operation. */
import { Ajv2020 } from "ajv/dist/2020.js"
import { at, type DocumentJson, isObject, type JsonObject, resolved } from "../../../src/http/docs/DocumentJson.ts"
import type { RecordedExample } from "../../../src/http/docs/RecordedExamples.ts"

export interface Described {
  readonly id: string
  readonly method: string
  readonly template: string
  readonly value: JsonObject
}

/** The operations of a document. */
export const describedIn = (spec: JsonObject): ReadonlyArray<Described> =>
  Object.entries(spec["paths"] as JsonObject).flatMap(([template, methods]) =>
    Object.entries(methods as JsonObject).flatMap(([method, value]) =>
      isObject(value) && "operationId" in value
        ? [{ id: String(value["operationId"]), method: method.toUpperCase(), template, value }]
        : []
    )
  )

/** A pattern of the paths of an operation, which may end with a slash. */
export const pathsOf = ({ template }: Described): RegExp =>
  new RegExp(`^${template.replaceAll(/[.*+?]/g, "\\$&").replaceAll(/\{\w+\}/g, "[^/]+").replace(/\/$/, "")}/?$`)

const json = "application/json"

/** Returns what is wrong with an example of an operation; nothing where it fits. */
export const examplesOf = (spec: JsonObject) => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
  ajv.addSchema(spec, "document")
  const wrong = (schema: DocumentJson | undefined, body: DocumentJson | undefined): ReadonlyArray<string> => {
    if (schema === undefined) return []
    const text = JSON.stringify(schema).replaceAll(`"#/`, `"document#/`)
    return ajv.validate(JSON.parse(text), body) ? [] : ajv.errors!.map((one) => `${one.instancePath} ${one.message}`)
  }
  return (operation: Described, { answer, request }: RecordedExample): ReadonlyArray<string> => {
    const { method, value } = operation
    const responses = value["responses"] as JsonObject
    const documented = resolved(responses[String(answer.status)], spec)
    if (documented === undefined) return [`no answer ${answer.status}`]
    const content = at(documented, "content")
    const type = answer.headers["content-type"]?.split(";")[0] ?? ""
    const named = content === undefined ? answer.body === undefined : isObject(content) && type in content
    const body = at(value, "requestBody", "content", json, "schema")
    const path = request.path.replace(/\?.*/, "")
    return [
      ...(request.method === method && pathsOf(operation).test(path) ? [] : [`${request.method} ${path}`]),
      ...(named ? [] : [`media type ${type}`]),
      ...(request.body === undefined ? [] : wrong(body, request.body)),
      ...(type === json ? wrong(at(documented, "content", json, "schema"), answer.body) : []),
    ]
  }
}
