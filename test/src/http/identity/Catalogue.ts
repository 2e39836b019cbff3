/** Every operation of the identity API: a valid request of it, and its entry in the served document. */
import { HttpApi } from "effect/http-api"
import { resolved } from "../../../../src/http/docs/DocumentJson.ts"
import { document } from "../../../../src/http/docs/Document.ts"
import { Api } from "../../../../schemas/api/Api.ts"
import type { Asked, Case } from "./Catalogue/Case.ts"
import { operator } from "./Catalogue/OperatorCases.ts"
import { institutions } from "./Catalogue/InstitutionsCases.ts"
import { own } from "./Catalogue/OwnCases.ts"
import { projects } from "./Catalogue/ProjectsCases.ts"

export type { Asked, Case, Fixture } from "./Catalogue/Case.ts"

export const catalogue: ReadonlyArray<Case> = [...own, ...institutions, ...projects, ...operator]

// deno-lint-ignore no-explicit-any
export type Schema = any

export interface Operation {
  /** Its group and the document's id: `policies.approvePolicyReview`. */
  readonly operationId: string
  readonly method: string
  /** With its parameters in braces. */
  readonly template: string
  readonly parameters: ReadonlyArray<{
    readonly name: string
    readonly in: "path" | "query" | "header"
    readonly required: boolean
    readonly schema: Schema
  }>
  readonly requestBody?: { readonly required: boolean; readonly content: Record<string, { readonly schema: Schema }> }
  /** Without references; `default` stands for the common problems. */
  readonly responses: Record<string, {
    readonly headers?: Record<string, { readonly required?: boolean; readonly schema: Schema }>
    readonly content?: Record<string, { readonly schema: Schema }>
  }>
}

export const spec: Schema = document(Api)

/** The name that tests give an operation: its group and the document's id of it. */
const names = new Map<string, string>()
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, group }) =>
    void names.set(endpoint.identifier, `${group.identifier}.${endpoint.identifier}`),
})

const whole = (part: Schema): Schema => resolved(part, spec)

const wholeAnswer = (part: Schema): Schema => {
  const { headers, ...answer } = whole(part)
  if (headers === undefined) return answer
  const named = Object.entries<Schema>(headers).map(([name, header]) => [name, whole(header)])
  return { ...answer, headers: Object.fromEntries(named) }
}

const streams = (operation: Operation) => "text/event-stream" in (operation.responses["200"]?.content ?? {})

/**
 * The operations that take a management token. A live stream's answer has no end and is no JSON: its callers and answers
 * are tested in test/src/http/handlers/OperatorEvents.test.ts.
 */
export const operations: ReadonlyArray<Operation> = Object.entries<Record<string, Schema>>(spec.paths).flatMap((
  [template, methods],
) =>
  Object.entries(methods).filter(([, { security = spec.security }]) =>
    JSON.stringify(security) === `[{"management":[]}]`
  ).map((
    [method, operation],
  ): Operation => ({
    ...operation,
    operationId: names.get(operation.operationId),
    parameters: operation.parameters.map(whole),
    responses: Object.fromEntries(
      Object.entries<Schema>(operation.responses).map(([status, answer]) => [status, wholeAnswer(answer)]),
    ),
    method: method.toUpperCase(),
    template,
  }))
).filter((operation) => !streams(operation))

/** The pointer to the answer of a status in the document; the common problems' where the operation names none. */
export const answerPath = ({ method, template }: Operation, status: string): ReadonlyArray<string> => {
  const { responses } = spec.paths[template][method.toLowerCase()]
  const key = status in responses ? status : "default"
  const ref: string | undefined = responses[key].$ref
  return ref === undefined ? ["paths", template, method.toLowerCase(), "responses", key] : ref.split("/").slice(1)
}

export const operationOf = ({ operation }: Pick<Case, "operation">): Operation =>
  operations.find(({ operationId }) => operationId === operation)!

export const pathOf = ({ template }: Operation, { params = {}, query = "" }: Asked): string =>
  template.replaceAll(/\{([a-z_]+)\}/g, (_, name: string) => encodeURIComponent(params[name]!)) + query
