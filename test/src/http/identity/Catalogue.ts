/** Every operation of the identity API: a valid request of it, and its entry in the served document. */
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
  readonly responses: Record<string, {
    readonly headers?: Record<string, { readonly required?: boolean; readonly schema: Schema }>
    readonly content?: Record<string, { readonly schema: Schema }>
  }>
}

export const spec: Schema = document(Api)

/** The operations that take a management token. */
export const operations: ReadonlyArray<Operation> = Object.entries<Record<string, Schema>>(spec.paths).flatMap((
  [template, methods],
) =>
  Object.entries(methods).filter(([, { security }]) => JSON.stringify(security) === `[{"management":[]}]`).map((
    [method, operation],
  ): Operation => ({ ...operation, method: method.toUpperCase(), template }))
)

export const operationOf = ({ operation }: Pick<Case, "operation">): Operation =>
  operations.find(({ operationId }) => operationId === operation)!

export const pathOf = ({ template }: Operation, { params = {}, query = "" }: Asked): string =>
  template.replaceAll(/\{([a-z_]+)\}/g, (_, name: string) => encodeURIComponent(params[name]!)) + query
